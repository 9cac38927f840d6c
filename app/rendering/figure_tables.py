"""The block tables' data: a row a request and group, a cell an entry; in a change only what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from app.rendering.moment import Moment
from app.rendering.words import count, isolated
from engine.kv_cache_block import NULL_BLOCK

EDGE: Final = 200
"""A table of more than twice as many entries is told by its first and last ones."""

Data = dict[str, Any]


def whole_tables(moment: Moment) -> list[Data]:
    """Every table that holds something, in order of requests, then groups."""
    names = sorted(
        (name for name in moment.scheduler.requests if any(moment.manager.get_blocks(name))), key=moment.number
    )
    return [_whole_table(moment, name, group) for name in names for group in _groups(moment, name)]


def changed_tables(moment: Moment, was_changed: bool) -> Data:
    """`tables` and `tables_gone`; neither if nothing changed and no ring is to be cleared."""
    applied = moment.applied
    assert applied is not None
    trace = applied.trace
    fresh = {call.request for call in trace.calls if call.granted and call.comp == 0}
    fresh |= {load.request for load in trace.loads if load.stage != "going on"}
    reshaped = _reshaped(moment)
    written = {chunk.request: chunk.computed for chunk in trace.chunks if chunk.tokens > 0}
    touched = {name for block in moment.changed for name in moment.history.holders.get(block, ())}
    tables, gone = [], []
    for name in sorted({*fresh, *written, *touched} & moment.scheduler.requests.keys(), key=moment.number):
        for group in _groups(moment, name):
            if name in fresh or (name, group) in reshaped:
                tables.append({**_whole_table(moment, name, group), "whole": True})
            else:
                entries = _entries_changed(moment, name, group, written.get(name))
                tables.append({**_head(moment, name, group), "cells": _cells(moment, name, group, entries)})
    left = {finish.request for finish in trace.finishes} | {preemption.victim for preemption in trace.preemptions}
    for name in sorted(left, key=moment.number):
        if not any(moment.manager.get_blocks(name)):
            gone += [[moment.number(name), group] for group in range(len(moment.cursor.simulation.config.groups))]
    tables = [table for table in tables if table["cells"] or table.get("whole")]
    if not (tables or gone or was_changed):
        return {}
    return {"tables": tables, **({"tables_gone": gone} if gone else {})}


def _reshaped(moment: Moment) -> set[tuple[str, int]]:
    """Tables of which entries became null or moved: windows that moved on, and everything of Mamba groups."""
    assert moment.applied is not None
    calls = moment.applied.trace.calls
    mamba = [group for group, config in enumerate(moment.cursor.simulation.config.groups) if config.kind == "mamba"]
    released = {(call.request, given.group) for call in calls for given in call.released}
    return released | {(call.request, group) for call in calls for group in mamba}


def tables_alt(moment: Moment) -> str:
    """A sentence instead of the picture."""
    held = [(name, moment.manager.get_blocks(name)) for name in moment.scheduler.requests]
    words = [f"{isolated(name)} holds {count(sum(map(len, blocks)), 'block')}" for name, blocks in held if any(blocks)]
    if not words:
        return "No request holds a block."
    more = f", and {len(words) - 8} more" if len(words) > 8 else ""
    return ", ".join(words[:8]) + more + "."


def _groups(moment: Moment, name: str) -> list[int]:
    return [group for group, table in enumerate(moment.manager.get_blocks(name)) if table]


def _head(moment: Moment, name: str, group: int) -> Data:
    block_size = moment.cursor.simulation.config.groups[group].block_size
    total = len(moment.manager.get_blocks(name)[group])
    head = {"request": moment.number(name), "id": name, "group": group, "total": total, "block_size": block_size}
    return {**head, "note": _note(moment, name, group)}


def _note(moment: Moment, name: str, group: int) -> str:
    """What the last block in use holds, in words; "" when it is full."""
    spec, table = moment.cursor.simulation.config.groups[group], moment.manager.get_blocks(name)[group]
    connector = moment.cursor.simulation.connector
    if connector is not None and name in connector.loading:
        return "these blocks are being loaded"
    computed = moment.scheduler.requests[name].num_computed_tokens
    entry = -(-computed // spec.block_size) - 1
    if not 0 <= entry < len(table) or table[entry] == NULL_BLOCK:
        return ""
    if spec.kind == "mamba":
        return f"block {table[entry]}: the state after {count(computed, 'token')}"
    filled = computed - entry * spec.block_size
    words = f"block {table[entry]} holds {filled} of {count(spec.block_size, 'token')}"
    part = moment.cursor.copies.get(name, {}).get(group)
    if part is not None and part.copy == table[entry]:
        return f"{words}, {part.tokens} of them copied from {part.source}"
    return words if filled < spec.block_size else ""


def _whole_table(moment: Moment, name: str, group: int) -> Data:
    head = _head(moment, name, group)
    return {**head, "cells": _cells(moment, name, group, range(head["total"]))}


def _cells(moment: Moment, name: str, group: int, entries: Iterable[int]) -> list[list[Any]]:
    """[entry, block, kind, filled, changed, hashed], the folded middle left out.

    `kind`: null, hit, copy (of a block that was hit only in part), new or lookahead.
    """
    table = moment.manager.get_blocks(name)[group]
    size = moment.cursor.simulation.config.groups[group].block_size
    computed = moment.scheduler.requests[name].num_computed_tokens
    hit = moment.history.hit_blocks.get(name, ())
    hits = hit[group] if group < len(hit) else 0
    part = moment.cursor.copies.get(name, {}).get(group)
    copy = part.copy if part else NULL_BLOCK
    changed, hashes = moment.changed, moment.pool.block_hash
    is_state = moment.cursor.simulation.config.groups[group].kind == "mamba"
    fold = range(EDGE, len(table) - EDGE)
    cells: list[list[Any]] = []
    for entry in entries:
        if entry in fold:
            continue
        block = table[entry]
        filled = min(max(computed - entry * size, 0), size)
        if is_state and filled:  # a state is there or not
            filled = size
        kind = "copy" if block == copy else "hit" if entry < hits else "new" if filled else "lookahead"
        kind = "null" if block == NULL_BLOCK else kind
        cells.append([entry, block, kind, filled, int(block in changed), int(hashes[block] is not None)])
    return cells


def _entries_changed(moment: Moment, name: str, group: int, written_from: int | None) -> list[int]:
    """Entries that were written to, or whose block changed."""
    table = moment.manager.get_blocks(name)[group]
    size = moment.cursor.simulation.config.groups[group].block_size
    first = len(table) if written_from is None else min(written_from // size, len(table))
    entries = set(range(first, len(table)))
    tail = set(table[first:])
    holders = moment.history.holders
    for block in moment.changed:
        if block not in tail and name in holders.get(block, ()):
            entry = _entry_of(moment, block, table, size)
            if entry is not None:
                entries.add(entry)
    return sorted(entries)


def _entry_of(moment: Moment, block: int, table: Sequence[int], size: int) -> int | None:
    """Where a block stands in a table. A hashed one stands where its prefix ends."""
    guess = -(-moment.pool.block_hash_num_tokens[block] // size) - 1
    if 0 <= guess < len(table) and table[guess] == block:
        return guess
    return table.index(block) if block in table else None
