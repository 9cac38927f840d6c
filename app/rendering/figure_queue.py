"""The free queue's data: its head, its tail, and what left or entered it in this action and why."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from app.rendering.moment import Moment
from app.rendering.words import isolated
from engine.config import GroupConfig
from engine.step_trace import WHY_FREED
from engine.trace import Entry

HEAD: Final = 400
TAIL: Final = 26
MOVED: Final = 40
AT_THE_TAIL: Final = ("tail", "back")

LEFT_BEHIND: Final = {
    "full_attention": "let go by",
    "sliding_window": "left the window of",
    "chunked_local_attention": "left the chunk of",
    "mamba": "an older state of",
}
"""Kind -> why a call gives a block back."""

Data = dict[str, Any]


def queue(moment: Moment) -> Data:
    """The same data in a whole and in a change: it is short."""
    pool, changed = moment.pool, moment.changed
    hashes, free_queue = pool.block_hash, pool.free_queue

    def cells(blocks: list[int]) -> list[list[int]]:
        return [[block, int(hashes[block] is not None), int(block in changed)] for block in blocks]

    free = pool.num_free_blocks
    tail = free_queue.last(min(TAIL, free - HEAD)) if free > HEAD else []
    log = moment.applied.outcome.log if moment.applied else ()
    return {
        "free": free,
        "hashed": moment.counts.cached,
        "head": cells(list(islice(free_queue, HEAD))),
        "tail": cells(tail),
        "out": _joined(_left(log)),
        "in": _joined(_entered(log, moment.cursor.simulation.config.groups)),
    }


def _left(log: tuple[Entry, ...]) -> Iterator[Data]:
    """Blocks that left the queue: popped from its head, or touched wherever they lay."""
    request, free = "", 0
    for entry in log:
        match entry:
            case ("call", name, *_, now_free):
                request, free = isolated(name), now_free
            case ("touch", _, blocks, _, places):
                gone = [(block, place) for block, place in zip(blocks, places, strict=True) if place is not None]
                if gone:
                    end = _end([place for _, place in gone], free)
                    yield _move(as_they_lay(gone), [1] * len(gone), end, f"touched: {request} hits them")
                    free -= len(gone)
            case ("pop", _, blocks, evicted):
                lost = {block for _, block, _ in evicted}
                if blocks:
                    hashed = [int(block in lost) for block in blocks[:MOVED]]
                    yield _move(blocks, hashed, "head", f"popped for {request}")
                    free -= len(blocks)
            case ("free", _, _, front, back, _, _):
                free += len(front) + len(back)


def as_they_lay(gone: Sequence[tuple[int, int]]) -> list[int]:
    """Blocks in the order of the queue before any of them was taken out; each has its place at its turn."""
    taken: list[int] = []
    lay: list[tuple[int, int]] = []
    for block, place in gone:
        # So many of those that are gone stood before it.
        before = bisect_right(range(len(taken)), place, key=lambda rank: taken[rank] - rank)
        taken.insert(before, place + before)
        lay.append((place + before, block))
    return [block for _, block in sorted(lay)]


def _end(places: list[int], free: int) -> str:
    """Where in the queue the blocks lay that were taken out one after the other, the first one from `free` blocks."""
    if all(place == 0 for place in places):
        return "head"
    if all(place == free - 1 - gone for gone, place in enumerate(places)):
        return "tail"
    return "middle"


def _entered(log: tuple[Entry, ...], groups: Sequence[GroupConfig]) -> Iterator[Data]:
    """Blocks that came back: unhashed ones in front, hashed ones behind."""
    why, caller = "", ""
    for entry in log:
        match entry:
            case ("call", name, *_):
                why, caller = "", isolated(name)
            case ("copies", _):
                why = "copied: let go again"
            case ("received", name):
                why = f"freed: the load of {isolated(name)} is through"
            case ("preempt", name, by):
                why = f"freed: {isolated(name)} was preempted" if by else f"freed: a reset preempted {isolated(name)}"
            case ("finish", name, status):
                how = {"aborted": "was aborted", "stopped": "stopped", "finished": "finished"}[WHY_FREED[status]]
                why = f"freed: {isolated(name)} {how}"
            case ("free", group, _, front, back, _, _):
                reason = why or f"{LEFT_BEHIND[groups[group].kind]} {caller}"
                if front:
                    yield _move(front, [0] * len(front), "front", f"{reason}; unhashed, so to the front")
                if back:
                    yield _move(back, [1] * len(back), "back", f"{reason}; hashed, so to the back")


def _joined(moves: Iterator[Data]) -> list[Data]:
    """Moves for the same reason, as there are group by group, are one."""
    joined: dict[tuple[str, str], Data] = {}
    for move in moves:
        last = joined.setdefault((move["why"], move["end"]), move)
        if last is move:
            continue
        # What goes to the front stands before what went there just now.
        first, then = (move, last) if move["end"] == "front" else (last, move)
        for key in ("blocks", "hashed"):
            last[key] = _told(first[key] + then[key], move["end"])
        last["total"] += move["total"]
    return list(joined.values())


def _move(blocks: list[int], hashed: list[int], end: str, why: str) -> Data:
    told, marks = _told(list(blocks), end), _told(hashed, end)
    return {"blocks": told, "hashed": marks, "total": len(blocks), "end": end, "why": why}


def _told(some: list[int], end: str) -> list[int]:
    """Of many the 40 that lie nearest to the end of the queue where they moved."""
    return some[-MOVED:] if end in AT_THE_TAIL else some[:MOVED]
