"""KV events as vLLM publishes them, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Final

from app.contexts import KVEvent, Piece, Sentence
from app.rendering.words import count
from engine.block_hash import short_hash
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent

MOST_REMOVED: Final = 4
MOST_EVENTS: Final = 60
MOST_HASHES: Final = 8


def event_sentences(events: Iterable[KVCacheEvent]) -> Iterator[Sentence]:
    """One sentence an event; removals that follow each other are one sentence."""
    for kind, some in groupby(events, type):
        if kind is BlockRemoved:
            yield Sentence("event", (Piece(_removed([event for event in some if isinstance(event, BlockRemoved)])),))
            continue
        for event in some:
            if isinstance(event, BlockStored):
                yield Sentence("event", (Piece(_stored(event)),))
            elif isinstance(event, AllBlocksCleared):
                yield Sentence("event", (Piece("AllBlocksCleared."),))


def _stored(event: BlockStored) -> str:
    """As "BlockStored: 6 hashes, 96 tokens, parent …93cb."."""
    parent = f"parent …{short_hash(event.parent_block_hash)[-4:]}" if event.parent_block_hash else "no parent"
    hashes = count(len(event.block_hashes), "hash", "hashes")
    return f"BlockStored: {hashes}, {count(len(event.token_ids), 'token')}, {parent}."


def _removed(events: list[BlockRemoved]) -> str:
    """As "BlockRemoved: …93cb, …02ab and 3 more."."""
    names = ", ".join(f"…{short_hash(event.block_hash)[-4:]}" for event in events[:MOST_REMOVED])
    more = f" and {len(events) - MOST_REMOVED} more" if len(events) > MOST_REMOVED else ""
    return f"BlockRemoved: {names}{more}."


def published(events: Iterable[KVCacheEvent]) -> tuple[KVEvent, ...]:
    """The first 60 events, field by field."""
    return tuple(_published(event) for event in islice(events, MOST_EVENTS))


def _published(event: KVCacheEvent) -> KVEvent:
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
            )
        case BlockRemoved(block_hash, group, medium):
            return KVEvent("BlockRemoved", (short_hash(block_hash),), group=group, medium=medium)
    return KVEvent("AllBlocksCleared")
