"""Where two branches part, in one sentence."""

from __future__ import annotations

from typing import Protocol

from app.rendering.moment import Moment
from app.rendering.transport import doing
from app.rendering.words import count, runs
from app.services.comparing import Parting
from app.services.session import Branch


class Side(Protocol):
    """One of the two."""

    @property
    def branch(self) -> Branch:
        """Replayed to its end."""

    @property
    def moment(self) -> Moment:
        """Any of it."""

    @property
    def name(self) -> str:
        """What it is called."""


def sentence(a: Side, b: Side, part: Parting | None) -> str:
    """As "They part in step 4: R is refused in main, and not in watermark 0."."""
    if part is None:
        return "They do not differ: every action does the same in both."
    k = part.at - 1
    if part.kind == "end":
        shorter, longer = (a, b) if a.branch.end < b.branch.end else (b, a)
        return f"They do not differ as far as both go: {shorter.name} ends after {k}, {longer.name} goes on."
    where = f"after action {part.at}, {doing(a.moment, part.at)}"
    if part.kind == "action":
        return (
            f"They part after {count(k, 'action')}: {a.name} goes on with {doing(a.moment, part.at)}, "
            f"{b.name} with {doing(b.moment, part.at)}."
        )
    return f"They first differ {where}: {_how(a, b, part.kind, k)}."


def _how(a: Side, b: Side, kind: str, k: int) -> str:
    mine, theirs = a.branch.columns, b.branch.columns
    if kind == "notable":
        told = [(text, side.name) for side in (a, b) if (text := _notable(side, k))]
        if len(told) == 1:
            return f"{told[0][0]} in {told[0][1]}, and not in the other"
        return ", ".join(f"{text} in {name}" for text, name in told)
    if kind == "scheduled":
        tokens = mine.scheduled[k + 1], theirs.scheduled[k + 1]
        return f"{a.name} schedules {count(tokens[0], 'token')}, {b.name} {tokens[1] or 'none'}"
    if kind == "queues":
        return (
            f"{mine.running[k + 1] or 'none'} running and {mine.waiting[k + 1] or 'none'} waiting in {a.name}, "
            f"{theirs.running[k + 1] or 'none'} and {theirs.waiting[k + 1] or 'none'} in {b.name}"
        )
    taken = [[event.block for event in side.branch.columns.events(k) if event.what == "popped"] for side in (a, b)]
    if taken[0] != taken[1]:
        words = [f"{count(len(blocks), 'block')} ({runs(blocks)})" if blocks else "no block" for blocks in taken]
        return f"{a.name} takes {words[0]} from the free queue, {b.name} {words[1]}"
    counts = len(mine.events(k)), len(theirs.events(k))
    return f"the same blocks are taken, but {counts[0]} things happen to blocks in {a.name} and {counts[1]} in {b.name}"


def _notable(side: Side, k: int) -> str:
    """What was notable: "R is refused"; "" if nothing was."""
    told = [
        f"{count(one.count, 'hash', 'hashes')} evicted" if one.request is None else f"{one.request} is {one.what}"
        for one in side.branch.columns.notable.get(k, ())
    ]
    told = [text.replace("is finished", "finishes") for text in told]
    return ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
