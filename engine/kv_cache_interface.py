"""What each KV-cache group stores: one frozen spec a kind (behaviour 0.3, 7.3).

Specs compare by value: groups with equal specs form one spec group in prefix lookups.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import EngineConfig, GroupConfig


@dataclass(frozen=True, slots=True)
class KVCacheSpec:
    """A group's block size in tokens, common to every kind."""

    block_size: int


@dataclass(frozen=True, slots=True)
class FullAttentionSpec(KVCacheSpec):
    """Every earlier token is seen, so every block is kept."""


@dataclass(frozen=True, slots=True)
class SlidingWindowSpec(KVCacheSpec):
    """A token sees itself and the `sliding_window` - 1 tokens before it."""

    sliding_window: int


@dataclass(frozen=True, slots=True)
class ChunkedLocalAttentionSpec(KVCacheSpec):
    """A token sees only its own chunk of `attention_chunk_size` tokens."""

    attention_chunk_size: int


@dataclass(frozen=True, slots=True)
class MambaSpec(KVCacheSpec):
    """A block holds a state; in mode "align" only the newest one is kept."""

    mode: str
    num_speculative_blocks: int


def cdiv(a: int, b: int) -> int:
    """The ceiling of a / b, for b > 0."""
    return -(-a // b)


def spec_of(group: GroupConfig) -> KVCacheSpec:
    """The spec of one configured group."""
    size = group.block_size
    match group.kind:
        case "sliding_window":
            assert group.sliding_window is not None
            return SlidingWindowSpec(size, group.sliding_window)
        case "chunked_local_attention":
            assert group.attention_chunk_size is not None
            return ChunkedLocalAttentionSpec(size, group.attention_chunk_size)
        case "mamba":
            return MambaSpec(size, group.mamba_cache_mode, group.num_speculative_blocks)
    return FullAttentionSpec(size)


def specs_of(config: EngineConfig) -> list[KVCacheSpec]:
    """One spec a group, in configuration order."""
    return [spec_of(group) for group in config.groups]
