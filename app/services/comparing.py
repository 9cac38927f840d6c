"""Two branches side by side: where they part, and why; in which moments which aspect differs; what was notable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.services.aspects import differing, stretches
from app.services.columns import Columns
from app.services.session import Branch
from engine.actions import Action

MOST_STRETCHES: Final = 500
MOST_SIGNS: Final = 500


@dataclass(frozen=True, slots=True)
class Parting:
    """The first action that differs, or does something else; `at`: the moment after it."""

    at: int
    kind: str
    """action, notable, scheduled, queues or blocks; end where one goes on and the other doesn't."""


def parting(a: Branch, b: Branch, start: int = 0) -> Parting | None:
    """Where two replayed branches part behind the moment `start`; None where nothing differs.

    The places in the free queue are left out: in pools of two sizes they say nothing.
    """
    for k in range(start, min(a.end, b.end)):
        kind = _difference(a.actions[k], b.actions[k], a.columns, b.columns, k)
        if kind:
            return Parting(k + 1, kind)
    return None if a.end == b.end else Parting(min(a.end, b.end) + 1, "end")


def _difference(mine: Action, theirs: Action, a: Columns, b: Columns, k: int) -> str:
    if mine != theirs:
        return "action"
    if a.does_the_same(b, k):
        return ""
    if a.notable.get(k) != b.notable.get(k):
        return "notable"
    if a.scheduled[k + 1] != b.scheduled[k + 1]:
        return "scheduled"
    queues = (a.waiting[k + 1], a.running[k + 1]) != (b.waiting[k + 1], b.running[k + 1])
    return "queues" if queues else "blocks"


def next_difference(a: Branch, b: Branch, at: int) -> int | None:
    """The first moment behind `at` whose action does something else in the other branch."""
    shared = range(at, min(a.end, b.end))
    return next((k + 1 for k in shared if _difference(a.actions[k], b.actions[k], a.columns, b.columns, k)), None)


Stretches = list[list[int]]
"""[first, last] moments."""


def lanes(a: Branch, b: Branch) -> dict[str, Stretches]:
    """Aspect -> the moments in which the two differ, the shorter one staying at its end; of very many joined ones."""
    end = max(a.end, b.end)
    found = differing(a.columns.aspects, b.columns.aspects, end)
    shares = [
        [counts.live / max(branch.config.num_blocks - 1, 1) for counts in branch.columns.counts] for branch in (a, b)
    ]
    found["usage"] = list(stretches(shares[0], shares[1], end))
    return {name: _joined(stretch, end) for name, stretch in found.items()}


def _joined(found: Stretches, end: int) -> Stretches:
    """Neighbours drawn together, so that no more are left than can be told apart."""
    gap = 1
    while len(found) > MOST_STRETCHES:
        gap = max(2 * gap, end // MOST_STRETCHES)
        joined = [found[0]]
        for first, last in found[1:]:
            if first - joined[-1][1] <= gap:
                joined[-1] = [joined[-1][0], last]
            else:
                joined.append([first, last])
        found = joined
    return found


@dataclass(slots=True)
class Sign:
    """Something notable; where it happens to a request action by action, it is one thing from `first` to `last`."""

    what: str
    request: str | None
    first: int
    """The moment after the action."""
    last: int


def signs(columns: Columns) -> list[Sign]:
    """What was notable in a branch; of very much the first thing of its kind in each stretch of time."""
    found = list(_signs(columns))
    if len(found) <= MOST_SIGNS:
        return found
    size = max(len(columns) // (MOST_SIGNS // 4), 1)
    kept: dict[tuple[str, int], Sign] = {}
    for sign in found:
        kept.setdefault((sign.what, sign.first // size), sign)
    return list(kept.values())


def _signs(columns: Columns) -> Iterator[Sign]:
    open_: dict[tuple[str, str | None], Sign] = {}
    for action, notable in sorted(columns.notable.items()):
        for one in notable:
            sign = open_.get((one.what, one.request))
            if sign is not None and sign.last == action:
                sign.last = action + 1
            else:
                sign = open_[one.what, one.request] = Sign(one.what, one.request, action + 1, action + 1)
                yield sign
