"""What two branches may differ in, as one number an aspect and moment: where the numbers are alike, so are the aspects.

A number is kept up to date action by action and costs what changed, never the pool. It is a sum of hashes of bytes,
which are alike in one process only: never store it. (Hashes of tuples of numbers are no use: their sums collide.)
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from app.services.cursor import Applied, BlockCounts, Cursor
from engine.block_pool import BlockPool
from engine.kv_cache_manager import KVCacheManager

NAMES: Final = ("schedule", "refusals", "queues", "tables", "free")
MASK: Final = (1 << 64) - 1
MOVES: Final = frozenset({"admit", "preempt", "finish", "external", "load", "loading", "arrived", "received"})
"""Entries of a log behind which the waiting queue or the running list may be another one."""
CHUNK: Final = 256
"""Moments that are compared at once."""
GROWS: Final = frozenset({"popped", "hashed", "evicted"})
"""Events that change nothing of a table but its end."""


class Aspects:
    """The numbers of one branch by moment: its schedule, who was refused, the lists, the tables, the free queue."""

    def __init__(self, start: BlockCounts) -> None:
        """Before the first action, when every usable block is free and empty."""
        self.numbers = {name: array("Q", [0]) for name in NAMES}
        empty = range(1, start.empty + 1)
        self.numbers["free"][0] = _order(empty, start.empty + 1) + sum(map(_unhashed, empty)) & MASK
        self.numbers["queues"][0] = _number(((), ()))
        self._queue: _Queue | None = None
        self._tables: _Tables | None = None

    def fork(self, at: int) -> Aspects:
        """An independent copy, up to a moment."""
        twin = object.__new__(Aspects)
        twin.numbers = {name: numbers[: at + 1] for name, numbers in self.numbers.items()}
        twin._queue = twin._tables = None  # read again from where the copy stands
        return twin

    def absorb(self, applied: Applied, cursor: Cursor) -> None:
        """The next moment, at which `cursor` stands."""
        outcome, trace, manager = applied.outcome, applied.trace, cursor.simulation.scheduler.kv_cache_manager
        scheduled = outcome.output.num_scheduled_tokens if outcome.output else None
        refused = tuple((call.request, call.shortfall) for call in trace.calls if not call.granted)
        gone = tuple(preemption.victim for preemption in trace.preemptions)
        if self._queue is None or self._tables is None:
            self._queue, self._tables = _Queue(manager.block_pool), _Tables(cursor)
        else:
            self._queue.update(manager.block_pool, applied.changed_blocks)
            self._tables.update(applied, cursor)
        self.numbers["schedule"].append(_number(tuple(scheduled.items())) if scheduled else 0)
        self.numbers["refusals"].append(_number((refused, gone)) if refused or gone else 0)
        self.numbers["queues"].append(self._lists(applied, cursor))
        self.numbers["tables"].append(self._tables.sum & MASK)
        self.numbers["free"].append(self._queue.sum & MASK)

    def _lists(self, applied: Applied, cursor: Cursor) -> int:
        outcome, scheduler = applied.outcome, cursor.simulation.scheduler
        if outcome.output is not None and not any(entry[0] in MOVES for entry in outcome.log):
            return self.numbers["queues"][-1]
        waiting = chain(scheduler.waiting, scheduler.loads.holding)
        return _number((tuple(one.request_id for one in waiting), tuple(one.request_id for one in scheduler.running)))


def differing(a: Aspects, b: Aspects, end: int) -> dict[str, list[list[int]]]:
    """Aspect -> the stretches of moments, both ends included, in which the two differ; the shorter stays at its end."""
    return {name: list(stretches(a.numbers[name], b.numbers[name], end)) for name in NAMES}


def stretches(mine: Sequence[float], theirs: Sequence[float], end: int) -> Iterator[list[int]]:
    """[first, last] moments in which two columns differ; each goes on as it ends."""
    last = len(mine) - 1, len(theirs) - 1
    shared = min(last) + 1
    open_since: int | None = None
    for start in range(0, end + 1, CHUNK):
        stop = min(start + CHUNK, end + 1)
        if open_since is None and stop <= shared and mine[start:stop] == theirs[start:stop]:
            continue
        for at in range(start, stop):
            if mine[min(at, last[0])] != theirs[min(at, last[1])]:
                open_since = at if open_since is None else open_since
            elif open_since is not None:
                yield [open_since, at - 1]
                open_since = None
    if open_since is not None:
        yield [open_since, end]


def _number(value: object) -> int:
    return hash(value) & MASK


def _link(before: int, after: int) -> int:
    return hash((before << 32 | after).to_bytes(8))


def _unhashed(block: int) -> int:
    return hash((block << 1).to_bytes(5))


def _hashed(block: int) -> int:
    return hash((block << 1 | 1).to_bytes(5))


def _order(blocks: Iterable[int], end: int) -> int:
    """The number of an order of free blocks; `end` stands before the first and behind the last."""
    total, before = 0, end
    for block in blocks:
        total += _link(before, block)
        before = block
    return total + _link(before, end)


class _Queue:
    """The free queue: who stands behind whom, and who carries a hash."""

    def __init__(self, pool: BlockPool) -> None:
        end = pool.num_blocks
        self._next, self._prev = array("i", [-1]) * (end + 1), array("i", [-1]) * (end + 1)
        self._flag = bytearray(end)
        """0: not in the queue, 1: without a hash, 2: with one."""
        before, self.sum = end, _order(pool.free_queue, end)
        for block in chain(pool.free_queue, (end,)):
            self._next[before], self._prev[block] = block, before
            before = block
        for block in pool.free_queue:
            self._put_flag(block, 1 if pool.block_hash[block] is None else 2)

    def update(self, pool: BlockPool, changed: frozenset[int]) -> None:
        """After an action. Whoever stands before another one than he did is changed, or stood or stands before one."""
        if not changed:
            return
        queue, touched = pool.free_queue, set(changed)
        for block in changed:
            is_free = block in queue
            if self._next[block] >= 0:
                touched.add(self._prev[block])
            if is_free:
                touched.add(queue.neighbours(block)[0])
            self._put_flag(block, 0 if not is_free else 1 if pool.block_hash[block] is None else 2)
        for block in touched:
            if (was := self._next[block]) >= 0:
                self.sum -= _link(block, was)
            now = queue.neighbours(block)[1]
            self._next[block] = -1 if now == block != pool.num_blocks else now
        for block in touched:
            if (now := self._next[block]) >= 0:
                self.sum += _link(block, now)
                self._prev[now] = block

    def _put_flag(self, block: int, flag: int) -> None:
        for sign, one in ((-1, self._flag[block]), (1, flag)):
            self.sum += sign * (_hashed(block) if one == 2 else _unhashed(block) if one else 0)
        self._flag[block] = flag


class _Tables:
    """The block tables: which block is which entry of whose table."""

    def __init__(self, cursor: Cursor) -> None:
        self.sum = 0
        self._of: dict[str, list[tuple[int, int]]] = {}
        """Request -> of each group's table how many entries are known, and their number."""
        self._may_move = any(group.kind == "mamba" for group in cursor.simulation.config.groups)
        manager = cursor.simulation.scheduler.kv_cache_manager
        for name in cursor.simulation.scheduler.requests:
            self._read(name, manager, grown=False)

    def update(self, applied: Applied, cursor: Cursor) -> None:
        """After an action, of which only the requests are read again that it tells of."""
        told: dict[str, set[str]] = {}
        for event in applied.events:
            if event.request is not None:
                told.setdefault(event.request, set()).add(event.what)
        for preemption in applied.trace.preemptions:
            told.setdefault(preemption.victim, set()).add("preempted")
        scheduler = cursor.simulation.scheduler
        for name, what in told.items():
            self._read(name, scheduler.kv_cache_manager, grown=what <= GROWS and not self._may_move)

    def _read(self, name: str, manager: KVCacheManager, *, grown: bool) -> None:
        """Bring one request's part up to date; `grown`: what was known of its tables is as it was."""
        known, now = self._of.pop(name, []), []
        for group, table in enumerate(manager.get_blocks(name)):
            owner = f"{group}/{name}".encode(errors="surrogatepass")
            length, number = known[group] if group < len(known) and grown else (0, 0)
            for entry in range(length, len(table)):
                number += hash((entry << 32 | table[entry]).to_bytes(8) + owner)
            now.append((len(table), number))
        self.sum += sum(number for _, number in now) - sum(number for _, number in known)
        if any(length for length, _ in now):
            self._of[name] = now
