"""Two branches side by side: where they part, and why."""

from __future__ import annotations

from dataclasses import dataclass

from app.services.columns import Columns
from app.services.session import Branch
from engine.actions import Action


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


@dataclass(frozen=True, slots=True)
class Series:
    """A number by moment, thinned by extremes: of many neighbours the least and the largest are kept."""

    at: list[int]
    values: list[float]


def thinned(values: list[float], most: int = 800) -> Series:
    """At most about `most` points, none of the extremes lost."""
    if len(values) <= most:
        return Series(list(range(len(values))), values)
    size = 2 * len(values) / most
    kept = {0, len(values) - 1}
    for bucket in range(most // 2):
        part = range(int(bucket * size), min(int((bucket + 1) * size), len(values)))
        if part:
            kept |= {min(part, key=values.__getitem__), max(part, key=values.__getitem__)}
    at = sorted(kept)
    return Series(at, [values[moment] for moment in at])
