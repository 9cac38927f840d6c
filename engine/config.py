"""The configuration of the engine (0.3): every option once, with its meaning, range and vLLM's own flag.

The dataclass fields are the one table of options: the parser, the JSON Schema (`engine.schema`) and the config form of
the page read the `Option` in each field's metadata.
"""

import math
from dataclasses import dataclass, field, fields
from typing import Final, Self

from engine import config_rules, strict_json
from engine.config_options import Option, about, differing, options_of, read_all

KINDS: Final = ("full_attention", "sliding_window", "chunked_local_attention", "mamba")
POLICIES: Final = ("fcfs", "priority")
HASH_ALGORITHMS: Final = ("sha256_cbor", "sha256", "xxhash_cbor", "xxhash")
MAMBA_CACHE_MODES: Final = ("align", "all", "none")


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """One KV-cache group: layers that share a block table (0.3). `block_size` is resolved: never "as the config's"."""

    kind: str = field(metadata=about("string", "What the group's layers attend to.", choices=KINDS))
    block_size: int = field(
        metadata=about("integer", "Tokens in a block of this group; by default the config's block_size.", minimum=1)
    )
    sliding_window: int | None = field(
        default=None,
        metadata=about(
            "integer",
            "A token sees itself and the tokens just before it, this many in all.",
            minimum=1,
            kinds=("sliding_window",),
        ),
    )
    attention_chunk_size: int | None = field(
        default=None,
        metadata=about(
            "integer",
            "Tokens in a chunk; a token sees only its own chunk.",
            minimum=1,
            kinds=("chunked_local_attention",),
        ),
    )
    mamba_cache_mode: str = field(
        default="align",
        metadata=about(
            "string",
            "Which states are kept: those at block boundaries (align), or as the other modes do.",
            choices=MAMBA_CACHE_MODES,
            kinds=("mamba",),
        ),
    )
    num_speculative_blocks: int = field(
        default=0,
        metadata=about("integer", "Extra state blocks a request holds for drafts.", minimum=0, kinds=("mamba",)),
    )
    eagle: bool = field(
        default=False, metadata=about("boolean", "Marks the group of a draft model: the EAGLE rules hold for it.")
    )

    @classmethod
    def from_json(cls, obj: object, block_size: int, where: str) -> Self:
        """Reads a group; `block_size` (tokens) is taken where the group names none."""
        known = cls.options()
        written = strict_json.record(obj, where, known, ("kind",))
        kind = known["kind"].read(written["kind"], strict_json.join(where, "kind"))
        for key in written:
            config_rules.check_group_key(key, str(kind), known[key].kinds, strict_json.join(where, key))
        config_rules.check_group_size(written, str(kind), where)
        return cls(**{"block_size": block_size, **read_all(known, written, where)})  # type: ignore[arg-type]

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options of a group by name."""
        return options_of(cls)

    def to_json(self, block_size: int) -> dict[str, object]:
        """The group as one writes it: what differs from the defaults, and `kind`."""
        return {"kind": self.kind, **differing(self, {"block_size": block_size})}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The whole configuration, with the keys of 0.3. `groups=()` becomes one full-attention group of `block_size`."""

    num_blocks: int = field(
        metadata=about(
            "integer", "All blocks of the pool, the null block included.", flag="--num-gpu-blocks-override", minimum=1
        )
    )
    block_size: int = field(
        default=16,
        metadata=about(
            "integer", "Tokens in a block of every group that doesn't name its own.", flag="--block-size", minimum=1
        ),
    )
    max_model_len: int = field(
        default=8192,
        metadata=about(
            "integer", "The longest sequence in tokens, prompt plus output.", flag="--max-model-len", minimum=1
        ),
    )
    max_num_batched_tokens: int = field(
        default=2048,
        metadata=about("integer", "The token budget of a step.", flag="--max-num-batched-tokens", minimum=1),
    )
    max_num_seqs: int = field(
        default=128,
        metadata=about("integer", "The most requests that run at once.", flag="--max-num-seqs", minimum=1),
    )
    enable_prefix_caching: bool = field(
        default=True,
        metadata=about(
            "boolean",
            "Keeps computed blocks by their hash, so that equal prefixes are shared.",
            flag="--enable-prefix-caching",
        ),
    )
    enable_chunked_prefill: bool = field(
        default=True,
        metadata=about("boolean", "Lets a prompt be computed in several steps.", flag="--enable-chunked-prefill"),
    )
    long_prefill_token_threshold: int = field(
        default=0,
        metadata=about(
            "integer",
            "The most tokens one request gets in a step while others are there; 0 is off.",
            flag="--long-prefill-token-threshold",
            minimum=0,
        ),
    )
    policy: str = field(
        default="fcfs",
        metadata=about(
            "string",
            "Who is served first: who came first, or who has the smallest priority.",
            flag="--scheduling-policy",
            choices=POLICIES,
        ),
    )
    watermark: float = field(
        default=0.0,
        metadata=about("number", "The fraction of num_blocks that admissions leave free.", minimum=0, below=1),
    )
    scheduler_reserve_full_isl: bool = field(
        default=True,
        metadata=about("boolean", "Admits a request only if its whole sequence so far fits, not only its first chunk."),
    )
    prefix_caching_hash_algo: str = field(
        default="sha256_cbor",
        metadata=about(
            "string", "The function that hashes blocks.", flag="--prefix-caching-hash-algo", choices=HASH_ALGORITHMS
        ),
    )
    num_speculative_tokens: int = field(
        default=0,
        metadata=about(
            "integer",
            "Drafts proposed for each request in a step; part of vLLM's speculative config.",
            flag="--speculative-config",
            minimum=0,
        ),
    )
    num_lookahead_tokens: int = field(
        default=0,
        metadata=about("integer", "Extra slots reserved behind the tokens that are scheduled.", minimum=0),
    )
    use_eagle: bool = field(
        default=False,
        metadata=about(
            "boolean", "Turns the EAGLE rules on; part of vLLM's speculative config.", flag="--speculative-config"
        ),
    )
    groups: tuple[GroupConfig, ...] = field(
        default=(), metadata=about("array", "The KV-cache groups; by default one of full attention.")
    )
    hash_block_size: int | None = field(
        default=None,
        metadata=about(
            "integer",
            "Tokens in a block hash; null: the block size of the one group, or the largest that divides those of all.",
            minimum=1,
            nullable=True,
        ),
    )
    prefix_cache_retention_interval: int | None = field(
        default=None,
        metadata=about(
            "integer",
            "Hashes window and Mamba blocks only so many tokens apart; null: all, 0: only at the prompt's end.",
            minimum=0,
            nullable=True,
        ),
    )
    needs_kv_cache_zeroing: bool = field(
        default=False,
        metadata=about("boolean", "Reports the new blocks that must be zeroed; always on with a Mamba group."),
    )

    @classmethod
    def options(cls) -> dict[str, Option]:
        """The options of a config by name, in the order of 0.3."""
        return options_of(cls)

    def __post_init__(self) -> None:
        """Resolves the default of `groups`."""
        if not self.groups:
            object.__setattr__(self, "groups", (GroupConfig("full_attention", self.block_size),))

    @classmethod
    def from_json(cls, obj: object, where: str = "config") -> Self:
        """Reads a config and checks every rule of 0.3.

        Raises:
            ScenarioError: unknown or missing key, wrong JSON type.
            ConfigError: the engine would reject it, or nothing is defined for it.
        """
        known = cls.options()
        written = dict(strict_json.record(obj, where, known, ("num_blocks",)))
        groups_where = strict_json.join(where, "groups")
        groups = strict_json.array(written.pop("groups"), groups_where, "groups") if "groups" in written else None
        values = read_all(known, written, where)
        if groups is not None:
            config_rules.check_group_count(groups, groups_where)
            size = values.get("block_size", 16)
            assert isinstance(size, int)
            values["groups"] = tuple(
                GroupConfig.from_json(group, size, f"{groups_where}[{i}]") for i, group in enumerate(groups)
            )
        config = cls(**values)  # type: ignore[arg-type]
        config.check(where)
        return config

    def check(self, where: str = "config") -> None:
        """Applies every rule of 0.3 that concerns the config alone.

        Raises:
            ConfigError: the first rule that is broken, with what would be right.
        """
        config_rules.check(self, where)

    def to_json(self) -> dict[str, object]:
        """The config as one writes it: `num_blocks`, and what differs from the defaults."""
        written: dict[str, object] = {"num_blocks": self.num_blocks, **differing(self, {})}
        if self.groups == (GroupConfig("full_attention", self.block_size),):
            del written["groups"]
        else:
            written["groups"] = [group.to_json(self.block_size) for group in self.groups]
        return written

    @property
    def scheduler_block_size(self) -> int:
        """S: the lcm of all groups' block sizes, in tokens (7.2)."""
        return math.lcm(*(group.block_size for group in self.groups))

    @property
    def hash_size(self) -> int:
        """H: tokens in a block hash (7.2)."""
        if self.hash_block_size is not None:
            return self.hash_block_size
        if self.enable_prefix_caching:
            return math.gcd(*(group.block_size for group in self.groups))
        return self.scheduler_block_size

    @property
    def watermark_blocks(self) -> int:
        """Blocks that admissions leave free (5.2)."""
        return int(self.watermark * self.num_blocks)

    @property
    def partial_hits(self) -> bool:
        """Whether a hit may end inside a block (7.4)."""
        hash_size = self.hash_size
        return (
            self.enable_prefix_caching
            and any(
                g.kind == "mamba" and g.mamba_cache_mode == "align" and g.block_size > hash_size for g in self.groups
            )
            and all(g.block_size == hash_size or g.kind in ("full_attention", "mamba") for g in self.groups)
        )

    @property
    def alignment(self) -> int:
        """A: hit lengths are multiples of it, in tokens (7.4)."""
        return self.hash_size if self.partial_hits else self.scheduler_block_size

    @property
    def eagle_groups(self) -> tuple[bool, ...]:
        """For each group whether the EAGLE rules hold for it (7.3): marked, or equal in spec to a marked one."""
        marked = {_spec(group) for group in self.groups if group.eagle}
        if not marked:
            return (self.use_eagle,) * len(self.groups)
        return tuple(_spec(group) in marked for group in self.groups)


def _spec(group: GroupConfig) -> tuple[object, ...]:
    """What makes groups equal in spec: all but the EAGLE mark."""
    return tuple(getattr(group, item.name) for item in fields(group) if item.name != "eagle")
