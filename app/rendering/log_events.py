"""KV events as vLLM publishes them, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Final

from app.contexts import KVEvent, Piece, Sentence
from app.rendering.groups import in_group
from app.rendering.words import count
from engine.block_hash import BlockHash, short_hash
from engine.config import EngineConfig
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent

MOST_REMOVED: Final = 4
MOST_EVENTS: Final = 60
MOST_HASHES: Final = 8


def event_sentences(config: EngineConfig, events: Iterable[KVCacheEvent]) -> Iterator[Sentence]:
    """One sentence an event; removals of a group that follow each other are one sentence."""
    for (kind, group), some in groupby(events, lambda event: (type(event), getattr(event, "group", 0))):
        where = in_group(config, group)
        if kind is BlockRemoved:
            removed = [event for event in some if isinstance(event, BlockRemoved)]
            yield Sentence("event", (Piece(_removed(removed, where)),))
            continue
        for event in some:
            if isinstance(event, BlockStored):
                yield Sentence("event", (Piece(_stored(event, where)),))
            elif isinstance(event, AllBlocksCleared):
                yield Sentence("event", (Piece("AllBlocksCleared."),))


def _stored(event: BlockStored, where: str) -> str:
    """As "BlockStored: 6 hashes, 96 tokens, parent …93cb."."""
    parent = f"parent …{short_hash(event.parent_block_hash)[-4:]}" if event.parent_block_hash else "no parent"
    hashes = count(len(event.block_hashes), "hash", "hashes")
    return f"BlockStored: {hashes}, {count(len(event.token_ids), 'token')}, {parent}{where}."


def _removed(events: list[BlockRemoved], where: str) -> str:
    """As "BlockRemoved: …93cb, …02ab and 3 more."."""
    names = ", ".join(f"…{short_hash(event.block_hash)[-4:]}" for event in events[:MOST_REMOVED])
    more = f" and {len(events) - MOST_REMOVED} more" if len(events) > MOST_REMOVED else ""
    return f"BlockRemoved: {names}{more}{where}."


def published(events: Iterable[KVCacheEvent], causes: Mapping[BlockHash, int]) -> tuple[KVEvent, ...]:
    """The first 60 events, field by field; `causes`: hash -> the number of the request that stored or removed it."""
    return tuple(_published(event, causes) for event in islice(events, MOST_EVENTS))


def _published(event: KVCacheEvent, causes: Mapping[BlockHash, int]) -> KVEvent:
    match event:
        case BlockStored(hashes, parent, token_ids, block_size, group, lora, extra, medium):
            return KVEvent(
                "BlockStored",
                tuple(short_hash(one) for one in hashes[:MOST_HASHES]),
                max(len(hashes) - MOST_HASHES, 0),
                short_hash(parent) if parent else "",
                len(token_ids),
                block_size,
                group,
                lora or "",
                sum(keys is not None for keys in extra),
                medium,
                tuple(dict.fromkeys(causes[one] for one in hashes if one in causes)),
            )
        case BlockRemoved(block_hash, group, medium):
            requests = (causes[block_hash],) if block_hash in causes else ()
            return KVEvent("BlockRemoved", (short_hash(block_hash),), group=group, medium=medium, requests=requests)
    return KVEvent("AllBlocksCleared")
