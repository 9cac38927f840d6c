"""A prefix lookup over several groups: every kind cuts the hit until nobody cuts it any more (behaviour 7.3, 7.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.block_hash import BlockHash
from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.kv_cache_interface import FullAttentionSpec, KVCacheSpec, MambaSpec, cdiv
from engine.single_type_kv_cache_manager import Found, Lookup, manager_class
from engine.trace import Search


@dataclass(frozen=True, slots=True)
class SpecGroup:
    """Groups with equal specs, looked up together (7.3)."""

    spec: KVCacheSpec
    members: tuple[int, ...]
    eagle: bool

    @property
    def is_full_attention(self) -> bool:
        """Whether a shorter hit of it is again a hit."""
        return isinstance(self.spec, FullAttentionSpec)


@dataclass(slots=True)
class Progress:
    """Where a lookup stands: what each spec group found last, and the longest hit that any search gave."""

    found: dict[SpecGroup, Found] = field(default_factory=dict)
    verified: set[SpecGroup] = field(default_factory=set)
    longest: int = 0
    rounds: list[Search] = field(default_factory=list)


class HybridLookup:
    """The lookup for one config."""

    def __init__(self, config: EngineConfig, specs: Sequence[KVCacheSpec]) -> None:
        members: dict[KVCacheSpec, list[int]] = {}
        for group, spec in enumerate(specs):
            members.setdefault(spec, []).append(group)
        groups = [SpecGroup(spec, tuple(ids), config.eagle_groups[ids[0]]) for spec, ids in members.items()]
        self._spec_groups = sorted(groups, key=lambda group: not group.is_full_attention)
        self._num_groups = len(specs)
        self._hash_size, self._alignment = config.hash_size, config.alignment
        self._partial_hits = config.partial_hits
        self._one_round = len(groups) == 2 and self._spec_groups[0].is_full_attention

    def find(
        self, pool: BlockPool, hashes: Sequence[BlockHash], limit: int
    ) -> tuple[tuple[list[int], ...], int, tuple[Search, ...], int]:
        """Blocks of each group, tokens hit, the searches, and a longer prefix that only some groups hold (0: none)."""
        progress = Progress()
        length, round_number = limit, 0
        while True:
            reached = self._search_all(pool, hashes, length, round_number, progress)
            if reached >= length:
                break
            length, round_number = reached, round_number + 1
            if self._one_round:
                break
        blocks: list[list[int]] = [[] for _ in range(self._num_groups)]
        for group, found in progress.found.items():
            for member, table in zip(group.members, found.blocks, strict=True):
                blocks[member] = table[: cdiv(length, group.spec.block_size)] if group.is_full_attention else table
        boundary = progress.longest if progress.longest > length else 0
        return tuple(blocks), length, tuple(progress.rounds), boundary

    def _search_all(
        self, pool: BlockPool, hashes: Sequence[BlockHash], length: int, number: int, progress: Progress
    ) -> int:
        """One round: each spec group cuts the length that the one before it left (7.5 step 1)."""
        for group in self._spec_groups:
            before = progress.found.get(group)
            if group.is_full_attention and before is not None:
                length = min(length, before.num_tokens)
                continue
            drop = group.eagle and group not in progress.verified
            bound = self._with_margin(group, length, len(hashes)) if drop else length
            lookup = Lookup(pool, hashes, self._hash_size, self._alignment, group.members, bound, drop)
            found = manager_class(group.spec).find_longest_cache_hit(group.spec, lookup)
            if drop:
                progress.verified.add(group)
            elif found.num_tokens < length:
                progress.verified.clear()
            length = found.num_tokens
            progress.found[group] = found
            progress.longest = max(progress.longest, length)
            progress.rounds.append(Search(number, group.members, bound, drop, found.num_found, length, found.missing))
        return length

    def _with_margin(self, group: SpecGroup, length: int, num_hashes: int) -> int:
        """A search that will drop a block may look one block further (7.5 step 1b)."""
        if isinstance(group.spec, MambaSpec):
            return length
        size = group.spec.block_size
        margin = self._hash_size if self._partial_hits and group.is_full_attention and size > self._hash_size else size
        return min(length + margin, num_hashes * self._hash_size)
