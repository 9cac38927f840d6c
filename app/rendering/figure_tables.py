"""The block tables' data: a row a request and group, a cell an entry; in a change only what changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from app.rendering.moment import Moment
from app.rendering.words import count, isolated
from engine.kv_cache_block import NULL_BLOCK

EDGE: Final = 200
"""A table of more than twice as many entries is told by its first and last ones."""

NAMED: Final = 8
"""Requests that the sentence names."""

Data = dict[str, Any]


def whole_tables(moment: Moment) -> list[Data]:
    """Every table that holds something, in order of requests, then groups."""
    names = sorted(
        (name for name in moment.scheduler.requests if any(moment.manager.get_blocks(name))), key=moment.number
    )
    return [{**table.head, "cells": table.cells()} for name in names for table in _tables(moment, name)]


def changed_tables(moment: Moment, was_changed: bool) -> Data:
    """`tables` and `tables_gone`; neither if nothing changed and no ring is to be cleared."""
    applied = moment.applied
    assert applied is not None
    trace = applied.trace
    fresh = {call.request for call in trace.calls if call.granted and call.comp == 0}
    fresh |= {load.request for load in trace.loads if load.stage != "going on"}
    reshaped = _reshaped(moment)
    written = {chunk.request: chunk.computed for chunk in trace.chunks if chunk.tokens > 0}
    touched = _touched(moment)
    tables, gone = [], []
    for name in sorted({*fresh, *written, *touched} & moment.scheduler.requests.keys(), key=moment.number):
        for table in _tables(moment, name):
            if name in fresh or (name, table.group) in reshaped:
                tables.append({**table.head, "cells": table.cells(), "whole": True})
            elif cells := table.cells(table.changed(written.get(name), touched.get(name, ()))):
                tables.append({**table.head, "cells": cells})
    left = {finish.request for finish in trace.finishes} | {preemption.victim for preemption in trace.preemptions}
    for name in sorted(left, key=moment.number):
        if not any(moment.manager.get_blocks(name)):
            gone += [[moment.number(name), group] for group in range(len(moment.cursor.simulation.config.groups))]
    if not (tables or gone or was_changed):
        return {}
    return {"tables": tables, **({"tables_gone": gone} if gone else {})}


def _touched(moment: Moment) -> dict[str, list[int]]:
    """Request -> the changed blocks that it holds."""
    touched: dict[str, list[int]] = {}
    for block in moment.changed:
        for name in moment.history.holders.get(block, ()):
            touched.setdefault(name, []).append(block)
    return touched


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
    held = [(name, blocks) for name, blocks in held if any(blocks)]
    if not held:
        return "No request holds a block."
    words = [f"{isolated(name)} holds {count(sum(map(len, blocks)), 'block')}" for name, blocks in held[:NAMED]]
    more = f", and {len(held) - NAMED} more" if len(held) > NAMED else ""
    return ", ".join(words) + more + "."


def _tables(moment: Moment, name: str) -> list[_Table]:
    """A request's tables that hold something."""
    return [_Table(moment, name, group, table) for group, table in enumerate(moment.manager.get_blocks(name)) if table]


class _Table:
    """One table at a moment, with all that its cells are told from."""

    __slots__ = ("computed", "copy", "group", "head", "hits", "is_state", "moment", "size", "table")

    def __init__(self, moment: Moment, name: str, group: int, table: Sequence[int]) -> None:
        config = moment.cursor.simulation.config.groups[group]
        self.moment, self.group, self.table = moment, group, table
        self.size, self.is_state = config.block_size, config.kind == "mamba"
        self.computed = moment.scheduler.requests[name].num_computed_tokens
        hit = moment.history.hit_blocks.get(name, ())
        self.hits = hit[group] if group < len(hit) else 0
        self.copy = moment.cursor.copies.get(name, {}).get(group)
        self.head: Data = {
            "request": moment.number(name),
            "id": name,
            "group": group,
            "total": len(table),
            "block_size": self.size,
            "note": self._note(name),
        }

    def _note(self, name: str) -> str:
        """What the last block in use holds, in words; "" when it is full."""
        connector, size, table = self.moment.cursor.simulation.connector, self.size, self.table
        if connector is not None and name in connector.loading:
            return "these blocks are being loaded"
        entry = -(-self.computed // size) - 1
        if not 0 <= entry < len(table) or table[entry] == NULL_BLOCK:
            return ""
        if self.is_state:
            return f"block {table[entry]}: the state after {count(self.computed, 'token')}"
        filled, part = self.computed - entry * size, self.copy
        words = f"block {table[entry]} holds {filled} of {count(size, 'token')}"
        if part is not None and part.copy == table[entry]:
            return f"{words}, {part.tokens} of them copied from {part.source}"
        return words if filled < size else ""

    def cells(self, entries: Iterable[int] | None = None) -> list[list[Any]]:
        """[entry, block, kind, filled, changed, hashed] of these entries or all, the folded middle left out.

        `kind`: null, hit, copy (of a block that was hit only in part), new or lookahead.
        """
        table, size = self.table, self.size
        copy = self.copy.copy if self.copy else NULL_BLOCK
        changed, hashes = self.moment.changed, self.moment.pool.block_hash
        fold = range(EDGE, len(table) - EDGE)
        cells: list[list[Any]] = []
        for entry in range(len(table)) if entries is None else entries:
            if entry in fold:
                continue
            block = table[entry]
            filled = min(max(self.computed - entry * size, 0), size)
            if self.is_state and filled:  # a state is there or not
                filled = size
            kind = "copy" if block == copy else "hit" if entry < self.hits else "new" if filled else "lookahead"
            kind = "null" if block == NULL_BLOCK else kind
            cells.append([entry, block, kind, filled, int(block in changed), int(hashes[block] is not None)])
        return cells

    def changed(self, written_from: int | None, touched: Iterable[int]) -> list[int]:
        """Entries that were written to, or whose block is one of the request's that changed."""
        table = self.table
        first = len(table) if written_from is None else min(written_from // self.size, len(table))
        entries, tail = set(range(first, len(table))), set(table[first:])
        for block in touched:
            if block not in tail and (entry := self._entry_of(block)) is not None:
                entries.add(entry)
        return sorted(entries)

    def _entry_of(self, block: int) -> int | None:
        """Where a block stands in the table. A hashed one stands where its prefix ends."""
        table = self.table
        guess = -(-self.moment.pool.block_hash_num_tokens[block] // self.size) - 1
        if 0 <= guess < len(table) and table[guess] == block:
            return guess
        return table.index(block) if block in table else None
