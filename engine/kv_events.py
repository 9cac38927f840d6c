"""KV events as vLLM publishes them (behaviour 1.11)."""

from __future__ import annotations

from typing import NamedTuple

from engine.block_hash import BlockHash

MEDIUM = "GPU"


class BlockStored(NamedTuple):
    """Blocks of one group were given hashes; `token_ids` are the tokens of the whole range, chosen blocks or not."""

    block_hashes: tuple[BlockHash, ...]
    parent_block_hash: BlockHash | None
    token_ids: tuple[int, ...]
    block_size: int
    group: int
    lora_name: str | None = None
    extra_keys: tuple[tuple[str, ...] | None, ...] = ()
    """One entry a hash: the adapter's name and, for the first block, the salt; None for neither."""
    medium: str = MEDIUM


class BlockRemoved(NamedTuple):
    """One block lost one hash."""

    block_hash: BlockHash
    group: int
    medium: str = MEDIUM


class AllBlocksCleared(NamedTuple):
    """The whole prefix cache was reset."""


KVCacheEvent = BlockStored | BlockRemoved | AllBlocksCleared
