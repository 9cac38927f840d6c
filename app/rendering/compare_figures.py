"""Two branches side by side: the data of the pictures. What is ringed is what differs, not what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from app.rendering.figure_queue import HEAD, TAIL
from app.rendering.figure_tables import whole_tables
from app.rendering.figures import groups
from app.rendering.moment import Moment
from app.rendering.words import count
from app.services.comparing import lanes, signs
from app.services.session import Branch
from engine.actions import AddRequest
from engine.kv_cache_block import NULL_BLOCK

Data = dict[str, Any]
SERIES: Final = ("usage", "running", "waiting")


class Side(Protocol):
    """One of the two."""

    @property
    def branch(self) -> Branch:
        """Replayed to its end."""

    @property
    def moment(self) -> Moment:
        """Where it stands."""

    @property
    def name(self) -> str:
        """What it is called."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What differs between two moments, block by block."""

    blocks: frozenset[int]
    """Of which the owners, `ref_cnt`, the hash or the membership of the free queue differ. What only the larger pool
    has differs where it is held or cached: else it would all."""
    orders: tuple[frozenset[int], frozenset[int]]
    """Of each side's free queue what the other lacks, though its pool has it, or has with another hash or behind
    another of the common ones."""

    @staticmethod
    def of(a: Moment, b: Moment) -> Compared:
        """O(held + cached + free) of both."""
        told, size = _told(a) | _told(b), min(a.pool.num_blocks, b.pool.num_blocks)
        differs = {block for block in told if block >= size or _state(a, block) != _state(b, block)}
        return Compared(frozenset(differs), (_out_of_order(a, b), _out_of_order(b, a)))


def _told(moment: Moment) -> set[int]:
    """Blocks that are not free and unhashed."""
    cached = moment.pool.cached
    told = set(moment.history.holders)
    for key in cached:
        told.update(cached.blocks(key))
    told.discard(NULL_BLOCK)
    return told


def _state(moment: Moment, block: int) -> tuple[object, ...]:
    pool = moment.pool
    owners = moment.history.holders.get(block, ())
    return pool.ref_cnt[block], pool.block_hash[block], owners if len(owners) < 2 else frozenset(owners)


def _out_of_order(mine: Moment, theirs: Moment) -> frozenset[int]:
    pool, other = mine.pool, theirs.pool
    before = _before_each(theirs, mine)
    found, last = set(), NULL_BLOCK
    for block in pool.free_queue:
        if block >= other.num_blocks:
            continue
        if block not in before:
            found.add(block)
            continue
        if before[block] != last or (pool.block_hash[block] is None) != (other.block_hash[block] is None):
            found.add(block)
        last = block
    return frozenset(found)


def _before_each(moment: Moment, other: Moment) -> dict[int, int]:
    """Each block that is free on both sides -> the one before it in this queue; 0 for the first."""
    size, queue = other.pool.num_blocks, other.pool.free_queue
    common = (block for block in moment.pool.free_queue if block < size and block in queue)
    before, last = {}, NULL_BLOCK
    for block in common:
        before[block] = last
        last = block
    return before


def compare_data(a: Side, b: Side, told: Compared, at: int, names: Sequence[str]) -> Data:
    """Everything that is drawn: both sides, and time."""
    end = max(a.branch.end, b.branch.end)
    longer = a.branch if a.branch.end == end else b.branch
    return {
        "at": at,
        "end": end,
        "rows": list(names),
        "sides": [_side(a, b, told, 0, names), _side(b, a, told, 1, names)],
        "lanes": lanes(a.branch, b.branch),
        "signs": [[[s.what, s.request, s.first, s.last] for s in signs(side.branch.columns)] for side in (a, b)],
        "ends": [a.branch.end, b.branch.end],
        "adds": [k + 1 for k, action in enumerate(longer.actions) if isinstance(action, AddRequest)][:500],
        "series": [{name: side.branch.columns.series.lines[name].told() for name in SERIES} for side in (a, b)],
    }


def _side(mine: Side, theirs: Side, told: Compared, index: int, names: Sequence[str]) -> Data:
    moment, other = mine.moment, theirs.moment
    numbers = moment.numbers or moment.columns.numbers
    return {
        "name": mine.name,
        "branch": moment.branch,
        "at": moment.at,
        "from": None,
        "requests": sorted(numbers, key=numbers.__getitem__),
        "groups": groups(moment.cursor.simulation.config),
        "pool": _pool(moment, told),
        "queue": _queue(moment, told.orders[index]),
        "tables": list(_tables(moment, other, set(names))),
        "alt": _alt(mine, told, index),
    }


def _pool(moment: Moment, told: Compared) -> Data:
    """Cells are [block, ref_cnt, hashed, differs, holders..]."""
    pool = moment.pool
    hashed = {block for key in pool.cached for block in pool.cached.blocks(key)}
    blocks = sorted(block for block in _told(moment) | told.blocks if block < pool.num_blocks)
    cells = [
        [block, pool.ref_cnt[block], int(block in hashed), int(block in told.blocks), *moment.holders(block)]
        for block in blocks
    ]
    return {"num_blocks": pool.num_blocks, "block_size": moment.cursor.simulation.config.block_size, "cells": cells}


def _queue(moment: Moment, differs: frozenset[int]) -> Data:
    """Cells are [block, hashed, differs]; `more`: how many of those that differ are not told."""
    pool, free = moment.pool, moment.pool.num_free_blocks
    head: list[int] = []
    for block in pool.free_queue:
        if len(head) == HEAD:
            break
        head.append(block)
    tail = pool.free_queue.last(min(TAIL, free - HEAD)) if free > HEAD else []
    cells = [[[b, int(pool.block_hash[b] is not None), int(b in differs)] for b in part] for part in (head, tail)]
    more = len(differs.difference(head, tail))
    return {"free": free, "hashed": moment.counts.cached, "head": cells[0], "tail": cells[1], "more": more}


def _tables(mine: Moment, theirs: Moment, names: set[str]) -> Iterator[Data]:
    """Cells are [entry, block, kind, filled, differs, hashed]; `more`: how many of those that differ are not told."""
    for table in whole_tables(mine):
        if table["id"] not in names:
            continue
        here, there = (moment.manager.get_blocks(table["id"]) for moment in (mine, theirs))
        own, other = here[table["group"]], there[table["group"]] if table["group"] < len(there) else []
        differs = {i for i, block in enumerate(own) if i >= len(other) or other[i] != block}
        cells = [[*cell[:4], int(cell[0] in differs), cell[5]] for cell in table["cells"]]
        more = len(differs.difference(cell[0] for cell in cells))
        yield {**table, "cells": cells, "more": more}


def _alt(side: Side, told: Compared, index: int) -> Data:
    """A sentence for each picture."""
    counts, order = side.moment.counts, told.orders[index]
    usable, free = side.moment.pool.num_blocks - 1, counts.cached + counts.empty
    return {
        "pool": f"{side.name}: {count(usable, 'usable block')}, {counts.live} held, {counts.cached} free but cached, "
        f"{counts.empty} free and empty. {len(told.blocks) or 'None'} differ.",
        "queue": f"{side.name}: {count(free, 'block')} in the free queue, {counts.cached} of them hashed. "
        f"{len(order) or 'None'} stand otherwise than in the other branch.",
        "tables": f"{side.name}: the block tables of the requests.",
    }
