"""What a branch draws over time: usage, hit rate, free blocks, the two lists, preemptions, as steps that change."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import Final

from app.services.cursor import BlockCounts
from engine.kv_cache_manager import PrefixCacheStats

MOST: Final = 400
"""Points of one series that are told; of more the extremes."""

Points = tuple[list[int], list[float | int | None]]
"""Moments, and the value from each of them on; None: there is none."""


class Line:
    """One series by run length: a point only where the value changes."""

    def __init__(self, value: float) -> None:
        self.moments = array("I", [0])
        self.values = array("d", [value])

    def fork(self, at: int) -> Line:
        """An independent copy, up to a moment."""
        points = bisect_right(self.moments, at)
        twin = object.__new__(Line)
        twin.moments, twin.values = self.moments[:points], self.values[:points]
        return twin

    @property
    def last(self) -> float:
        """The value at the end."""
        return self.values[-1]

    def put(self, moment: int, value: float) -> None:
        """The value from this moment on; a negative one stands for none."""
        if value != self.values[-1]:
            self.moments.append(moment)
            self.values.append(value)

    def at(self, moment: int) -> float:
        """The value at a moment."""
        return self.values[bisect_right(self.moments, moment) - 1]

    def told(self, since: int = 0) -> Points:
        """The points from the moment `since` on, at most 400: of each stretch its lowest and highest."""
        first = len(self.moments)
        while first and self.moments[first - 1] >= since:
            first -= 1
        chosen = range(first, len(self.moments))
        places = list(chosen) if len(chosen) <= MOST else self._extremes(chosen)
        return [self.moments[place] for place in places], [_shown(self.values[place]) for place in places]

    def _extremes(self, chosen: range) -> list[int]:
        values, kept = self.values, [chosen.start]
        stretch = -(-len(chosen) // ((MOST - 2) // 2))
        for start in range(chosen.start, chosen.stop, stretch):
            some = values[start : start + stretch]
            ends = {start + some.index(min(some)), start + some.index(max(some))}
            kept += sorted(ends - {kept[-1]})
        return kept if kept[-1] == chosen.stop - 1 else [*kept, chosen.stop - 1]


def _shown(value: float) -> float | int | None:
    if value < 0:
        return None
    return int(value) if value.is_integer() else round(value, 9)


class Series:
    """Every line of a branch, appended to with each action."""

    def __init__(self, start: BlockCounts) -> None:
        free = start.cached + start.empty
        self.end = 0
        """The last moment that is known."""
        self.lines = {
            "usage": Line(0),
            "hit": Line(-1),
            "free": Line(free),
            "running": Line(0),
            "waiting": Line(0),
            "preemptions": Line(0),
        }
        self._queries, self._hits = Line(0), Line(0)
        """Tokens asked for and hit since the start or the last reset."""

    def fork(self, at: int) -> Series:
        """An independent copy, up to a moment."""
        twin = object.__new__(Series)
        twin.end = at
        twin.lines = {name: line.fork(at) for name, line in self.lines.items()}
        twin._queries, twin._hits = self._queries.fork(at), self._hits.fork(at)
        return twin

    def absorb(
        self, counts: BlockCounts, stats: PrefixCacheStats, *, running: int, waiting: int, preempted: int, reset: bool
    ) -> None:
        """The next moment. `reset`: the prefix cache was emptied, and the hit rate begins anew."""
        self.end += 1
        queries = stats.queries if reset else self._queries.last + stats.queries
        hits = stats.hits if reset else self._hits.last + stats.hits
        self._queries.put(self.end, queries)
        self._hits.put(self.end, hits)
        free = counts.cached + counts.empty
        usable = counts.live + free
        values = {
            "usage": counts.live / usable if usable else 0,
            "hit": hits / queries if queries else -1,
            "free": free,
            "running": running,
            "waiting": waiting,
            "preemptions": self.lines["preemptions"].last + preempted,
        }
        for name, line in self.lines.items():
            line.put(self.end, values[name])
