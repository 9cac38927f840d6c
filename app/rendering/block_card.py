"""The card of one block: its state, its hashes, who holds it, and every event in its life so far."""

from __future__ import annotations

from itertools import islice
from typing import Final

from app.contexts import BlockContext, HashLine, LifeEvent, Owner, Words
from app.rendering.groups import in_group
from app.rendering.moment import Moment
from app.rendering.transport import view
from app.rendering.words import sentence
from engine.block_hash import short_hash
from engine.kv_cache_block import Key, KVCacheBlock
from engine.step_trace import BlockEvent

MOST_EVENTS: Final = 100
MOST_OWNERS: Final = 20


def block_card(moment: Moment, block_id: int, *, whole_page: bool) -> BlockContext:
    """The card of a block of this pool."""
    block = moment.pool.block(block_id)
    life = list(moment.columns.life(block_id, moment.at))
    shown = [_life_event(moment, action, event) for action, event in islice(life, MOST_EVENTS)]
    holders = moment.history.holders.get(block_id, ())
    return BlockContext(
        view=view(moment),
        block=block_id,
        state=state_words(block),
        ref_cnt=block.ref_cnt,
        place=_place(block, moment.pool.num_free_blocks),
        hashes=tuple(hash_line(moment, key) for key in moment.pool.keys_of(block_id)),
        owners=tuple(owner_of(moment, name, block_id) for name in holders[:MOST_OWNERS]),
        life=tuple(reversed(shown)),
        life_before=len(life) - len(shown),
        whole_page=whole_page,
    )


def state_words(block: KVCacheBlock) -> str:
    """Its state, as the card says it."""
    if block.is_null:
        return "null"
    if not block.ref_cnt:
        return "free but cached" if block.block_hash else "free and empty"
    return "held" if block.ref_cnt == 1 else "shared"


def _place(block: KVCacheBlock, free: int) -> str:
    if block.place is None:
        return ""
    if block.place == 0:
        return f"first of {free}: handed out next"
    return f"{block.place} of {free} go before it"


def hash_line(moment: Moment, key: Key) -> HashLine:
    """A hash that a block carries now."""
    lineage = moment.history.lineage.get(key)
    size = moment.cursor.simulation.config.groups[key[1]].block_size
    end = lineage.num_tokens if lineage else moment.pool.block_hash_num_tokens[moment.pool.cached.blocks(key)[0]]
    parent = short_hash(lineage.parent) if lineage and lineage.parent else ""
    start = max((end - 1) // size * size, 0)
    where = in_group(moment.cursor.simulation.config, key[1])
    return HashLine(short_hash(key[0]), parent, key[1], f"tokens {start} to {end - 1}{where}")


def owner_of(moment: Moment, name: str, block_id: int) -> Owner:
    """A request that holds a block now."""
    tables = moment.manager.get_blocks(name)
    places = [(group, table.index(block_id)) for group, table in enumerate(tables) if block_id in table]
    config = moment.cursor.simulation.config
    words = [f"entry {entry}{in_group(config, group)}" for group, entry in places]
    return Owner(name, moment.number(name), ", ".join(words))


def _life_event(moment: Moment, action: int, event: BlockEvent) -> LifeEvent:
    return LifeEvent(action + 1, moment.label(action), moment.query(action + 1), event_words(moment, event))


def event_words(moment: Moment, event: BlockEvent) -> Words:
    """One event in a sentence."""
    names = (event.request,) if event.request else ()
    hashes = ", ".join(f"…{short_hash(block_hash)[-4:]}" for block_hash, _ in event.keys)
    whom = "{}" if names else "nobody"
    place = (event.place or 0) + 1
    match event.what:
        case "popped":
            where = in_group(moment.cursor.simulation.config, event.group)
            text = f"handed out to {whom}{where}, from place {place} of the free queue"
        case "evicted":
            text = f"lost its hash {hashes}: {_why_lost(event, whom)}"
        case "touched":
            left = "" if event.place is None else f", which took it from place {place} of the free queue"
            text = f"hit by {whom}{left}; ref_cnt {event.ref_before} → {event.ref_after}"
        case "hashed":
            text = f"full with tokens of {whom}: got the hash {hashes}"
        case "copied":
            text = f"copied for {whom} {event.why}"
        case "held":
            text = "held by a copy until the step is scheduled"
        case "moved":
            text = f"the hash {hashes} moved {event.why}"
        case "let_go" if event.why == "copied":
            text = (
                f"the step is scheduled, so its copy holds it no longer; ref_cnt {event.ref_before} → {event.ref_after}"
            )
        case "let_go":
            text = f"let go by {whom}, {_why(moment, event)}; ref_cnt {event.ref_before} → {event.ref_after}"
        case "freed" if event.why == "copied":
            text = f"copied, so it is let go; to place {place} of the free queue"
        case _:
            text = f"freed by {whom}, {_why(moment, event)}; to place {place} of the free queue"
    return sentence(moment, text, *names)


def _why_lost(event: BlockEvent, whom: str) -> str:
    return {"reset": "a reset forgot it", "longer prefix": "a longer prefix took its place"}.get(
        event.why, f"{whom} needed the block"
    )


def _why(moment: Moment, event: BlockEvent) -> str:
    kind = moment.cursor.simulation.config.groups[event.group].kind
    left = {"chunked_local_attention": "whose chunk it left", "mamba": "which needs an older state no more"}
    return {
        "preempted": "which was preempted",
        "finished": "which finished",
        "stopped": "which sampled a stop token",
        "aborted": "which was aborted",
        "reset": "which a reset preempted",
        "window": left.get(kind, "whose window it left"),
    }.get(event.why, "which let it go")
