"""The rules of 0.3 that a config must obey, one function a rule, each with what would be right.

Some describe what the engine rejects at start, the last two what is undefined.
"""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from engine.errors import ConfigError, LimitError, ScenarioError, shown
from engine.strict_json import join

if TYPE_CHECKING:
    from engine.config import EngineConfig

SIZE_KEYS: Final = {"sliding_window": "sliding_window", "chunked_local_attention": "attention_chunk_size"}
"""The key that a kind of group can't do without."""

MAX_GROUPS: Final = 100


def check_group_key(key: str, kind: str, kinds: Collection[str], where: str) -> None:
    """A key that has a meaning only for other kinds of group is refused."""
    if kinds and kind not in kinds:
        message = f'"{key}" means nothing for a group of kind {kind}'
        raise ScenarioError("unknown_key", message, where, f"it only in a group of kind {', '.join(kinds)}")


def check_group_size(keys: Collection[str], kind: str, where: str) -> None:
    """A window needs its length and a chunked group its chunk size."""
    needed = SIZE_KEYS.get(kind)
    if needed is not None and needed not in keys:
        raise ScenarioError(
            "missing_key", f'the key "{needed}" is missing', where, f'"{needed}" to be given, in tokens'
        )


def check_group_count(groups: list[object], where: str) -> None:
    """There is at least one group, and not so many that their common block size can't be handled."""
    if not groups:
        raise ConfigError("invalid_config", "there is no group at all", where, 'at least one, or no "groups" key')
    if len(groups) > MAX_GROUPS:
        message = f"{len(groups)} groups are more than this program takes"
        raise LimitError("over_limit", message, where, f"at most {MAX_GROUPS}")


def check(config: "EngineConfig", where: str) -> None:
    """Applies every rule, in the order of 0.3.

    Raises:
        ConfigError: the first rule that is broken.
    """
    _check_ranges(config, where)
    for rule in _RULES:
        rule(config, where)


def _check_ranges(config: "EngineConfig", where: str) -> None:
    """Each value for itself; needed for a config that wasn't read from JSON."""
    for name, option in config.options().items():
        if name != "groups":
            option.read(getattr(config, name), join(where, name))
    for i, group in enumerate(config.groups):
        place = f"{where}.groups[{i}]"
        written = {name for name, option in group.options().items() if getattr(group, name) is not None}
        check_group_size(written, group.kind, place)
        for name in written:
            group.options()[name].read(getattr(group, name), join(place, name))


def _check_seqs(config: "EngineConfig", where: str) -> None:
    """A step has a token for every request that may run."""
    if config.max_num_batched_tokens < config.max_num_seqs:
        raise _rejected(
            f"a step of {config.max_num_batched_tokens} tokens is less than max_num_seqs, {config.max_num_seqs}",
            f"{where}.max_num_batched_tokens",
            f"at least {config.max_num_seqs}, or a smaller max_num_seqs",
        )


def _check_whole_prefill(config: "EngineConfig", where: str) -> None:
    """Without chunked prefill the longest prompt must fit into one step."""
    if not config.enable_chunked_prefill and config.max_num_batched_tokens < config.max_model_len:
        raise _rejected(
            f"without chunked prefill a step of {config.max_num_batched_tokens} tokens can't hold max_model_len, "
            f"{config.max_model_len}",
            f"{where}.max_num_batched_tokens",
            f"at least {config.max_model_len}, a smaller max_model_len, or chunked prefill on",
        )


def _check_threshold(config: "EngineConfig", where: str) -> None:
    """The long-prefill threshold stays within max_model_len."""
    if config.long_prefill_token_threshold > config.max_model_len:
        raise _rejected(
            f"{config.long_prefill_token_threshold} is above max_model_len, {config.max_model_len}",
            f"{where}.long_prefill_token_threshold",
            f"0 (off), or at most {config.max_model_len}",
        )


def _check_retention(config: "EngineConfig", where: str) -> None:
    """A retention interval needs groups that it applies to, and is a multiple of S (7.8)."""
    interval, size = config.prefix_cache_retention_interval, config.scheduler_block_size
    common = shown(size)
    place = f"{where}.prefix_cache_retention_interval"
    if not interval:
        return
    if not any(group.kind in ("sliding_window", "mamba") for group in config.groups):
        raise _rejected(
            f"{interval} has nothing to apply to: no group is sliding_window or mamba",
            place,
            "null or 0, or such a group",
        )
    if interval % size:
        raise _rejected(
            f"{interval} is not a multiple of {common}, the lcm of the groups' block sizes",
            place,
            f"null, 0 or a multiple of {common}",
        )


def _check_hash_size(config: "EngineConfig", where: str) -> None:
    """H divides S; with caching on it also fits the groups' block sizes (7.2)."""
    hash_size = config.hash_block_size
    if hash_size is None:
        return
    place = f"{where}.hash_block_size"
    sizes = [group.block_size for group in config.groups]
    common = shown(config.scheduler_block_size)
    if config.scheduler_block_size % hash_size:
        raise _rejected(
            f"{hash_size} does not divide {common}, the lcm of the groups' block sizes",
            place,
            f"null or a divisor of {common}",
        )
    if not config.enable_prefix_caching:
        return
    if len(sizes) == 1 and hash_size != sizes[0]:
        raise _rejected(f"{hash_size} differs from the only group's block size", place, f"null or {sizes[0]}")
    odd = next((size for size in sizes if size % hash_size), None)
    if odd is not None:
        divisor = math.gcd(*sizes)
        raise _rejected(f"{hash_size} does not divide the block size {odd}", place, f"null or a divisor of {divisor}")


def _check_drafts(config: "EngineConfig", where: str) -> None:
    """Undefined: a threshold that would cut a request's drafts."""
    threshold, drafts = config.long_prefill_token_threshold, config.num_speculative_tokens
    if 1 <= threshold <= drafts:
        raise _undefined(
            f"with {drafts} drafts a step a threshold of {threshold} would cut a request in the middle of its drafts",
            f"{where}.long_prefill_token_threshold",
            f"0 (off), or at least {drafts + 1}",
        )


def _check_chunked_local(config: "EngineConfig", where: str) -> None:
    """Undefined: a prefix lookup in a chunked-local group that is an EAGLE group, or whose B isn't A (7.4, 7.6)."""
    if not config.enable_prefix_caching:
        return
    eagle, alignment = config.eagle_groups, config.alignment
    for i, group in enumerate(config.groups):
        if group.kind != "chunked_local_attention":
            continue
        if eagle[i]:
            raise _undefined(
                "with prefix caching on, a chunked_local_attention group can't be an EAGLE group",
                f"{where}.groups[{i}]",
                '"eagle": true on another group only, use_eagle off, or prefix caching off',
            )
        if group.block_size != alignment:
            raise _undefined(
                f"with prefix caching on, a chunked_local_attention group of block size {group.block_size} can't stand "
                f"where hits are multiples of {shown(alignment)} tokens",
                f"{where}.groups[{i}].block_size",
                f"{shown(alignment)}, or prefix caching off",
            )


def _rejected(message: str, where: str, expected: str) -> ConfigError:
    """The engine rejects this at start."""
    return ConfigError("invalid_config", message, where, expected)


def _undefined(message: str, where: str, expected: str) -> ConfigError:
    """Nothing says what the engine would do: mostly it stops with an assertion."""
    return ConfigError("undefined_config", message, where, expected)


_RULES: Final = (
    _check_seqs,
    _check_whole_prefill,
    _check_threshold,
    _check_retention,
    _check_hash_size,
    _check_drafts,
    _check_chunked_local,
)
