"""The figures' data: whole, or as a change on top of the moment before. A change costs what changed, never the pool."""

from __future__ import annotations

from typing import Any

import orjson
from markupsafe import Markup

from app.rendering.figure_gauges import blocks, gauge_alts, series, usage
from app.rendering.figure_hashes import changed_hashes, nothing_hashed, whole_hashes
from app.rendering.figure_queue import queue
from app.rendering.figure_tables import changed_tables, tables_alt, whole_tables
from app.rendering.groups import group_name, short_name
from app.rendering.moment import Moment
from app.rendering.words import count
from engine.actions import AddRequest
from engine.config import EngineConfig

Data = dict[str, Any]


def figures(moment: Moment, start: int | None) -> Data:
    """The data of every figure; a change on top of the moment `start` if that is the one before this, else whole."""
    applied = moment.applied
    delta = applied is not None and start == moment.at - 1
    data: Data = {"at": moment.at, "from": start if delta else None, "branch": moment.branch}
    parts = _changes(moment) if delta else _whole(moment)
    parts |= series(moment, delta=delta)
    return {**data, **parts, "usage": usage(moment), "blocks": blocks(moment), "alt": _alt(moment, set(parts))}


def as_json(data: Data) -> Markup:
    """JSON that may stand in a script element: whatever could end it or open a comment is escaped."""
    text = orjson.dumps(data).decode()
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _whole(moment: Moment) -> Data:
    pool, config = moment.pool, moment.cursor.simulation.config
    return {
        "requests": list(moment.cursor.simulation.scripts),
        "groups": groups(config),
        "pool": {
            "num_blocks": pool.num_blocks,
            "block_size": config.block_size,
            "cells": _cells(moment, _told(moment)),
        },
        "queue": queue(moment),
        "tables": whole_tables(moment),
        "hashes": whole_hashes(moment),
    }


def groups(config: EngineConfig) -> list[Data]:
    """The groups by id: a name, a short one, and the block size."""
    return [
        {"name": group_name(config, group), "short": short_name(config, group), "block_size": spec.block_size}
        for group, spec in enumerate(config.groups)
    ]


def _changes(moment: Moment) -> Data:
    applied = moment.applied
    assert applied is not None
    data: Data = {}
    action = applied.outcome.action
    if isinstance(action, AddRequest) and moment.number(action.id) == len(moment.cursor.simulation.scripts) - 1:
        data["requests_added"] = [action.id]
    pool = moment.pool
    was_changed = _ringed_before(moment)
    if moment.changed or was_changed:
        config = moment.cursor.simulation.config
        cells = _cells(moment, moment.changed)
        data["pool"] = {"num_blocks": pool.num_blocks, "block_size": config.block_size, "cells": cells}
        data["queue"] = queue(moment)
    data |= changed_tables(moment, was_changed)
    data |= changed_hashes(moment, was_changed)
    return data


def _ringed_before(moment: Moment) -> bool:
    """Whether the moment before this showed changes, which have to be cleared now."""
    return moment.columns.changed[moment.at - 1] > 0


def _told(moment: Moment) -> set[int]:
    """Blocks that are not free, unhashed and unchanged. O(held + cached)."""
    pool = moment.pool
    told = set(moment.history.holders) | moment.changed
    for key in pool.cached:
        told.update(pool.cached.blocks(key))
    told.discard(0)
    return told


def _cells(moment: Moment, blocks: set[int] | frozenset[int]) -> list[list[int]]:
    """[block, ref_cnt, hashed, changed, holders..] in order of ids; changed is 2 if it lost a hash in this action."""
    pool, changed, evicted = moment.pool, moment.changed, moment.evicted
    ref_cnt, hashes = pool.ref_cnt, pool.block_hash
    return [
        [
            block,
            ref_cnt[block],
            int(hashes[block] is not None),
            2 if block in evicted else int(block in changed),
            *moment.holders(block),
        ]
        for block in sorted(blocks)
    ]


def _alt(moment: Moment, parts: set[str]) -> Data:
    """A sentence for each figure that comes along."""
    counts, changed = moment.counts, len(moment.changed)
    usable, free = moment.pool.num_blocks - 1, counts.cached + counts.empty
    hashes = len(moment.cursor.tree)
    words = {
        "pool": f"{count(usable, 'usable block')}: {counts.live} held, {counts.cached} free but cached, "
        f"{counts.empty} free and empty. {changed or 'None'} changed in this action.",
        "queue": f"{count(free, 'block')} in the free queue, {counts.cached} of them hashed. {_head(moment)}",
        "tables": tables_alt(moment) if "tables" in parts else "",
        "hashes": f"{count(hashes, 'hash', 'hashes')} in {count(len(moment.cursor.tree.chains), 'chain')}."
        if hashes
        else nothing_hashed(moment),
    }
    return {**{name: text for name, text in words.items() if name in parts}, **gauge_alts(moment)}


def _head(moment: Moment) -> str:
    first = next(iter(moment.pool.free_queue), None)
    return "Nothing is free." if first is None else f"Block {first} is handed out next."
