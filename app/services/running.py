"""A run: steps one after the other, until something happens that it was told to stop at, or nothing can any more."""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from app.services.acting import STEP
from app.services.columns import Columns
from app.services.cursor import Applied
from app.services.livelock import Watch
from app.services.session import SLICE_SECONDS, Branch
from engine.scenario import Limits

CONDITIONS: Final = ("finish", "preempt", "refuse", "evict", "idle", "count")
"""What a run may be told to stop at."""

NOTABLE: Final = {
    "finish": {"finished"},
    "preempt": {"preempted"},
    "refuse": {"refused", "preempted"},  # somebody is preempted because a call returned None
    "evict": {"evicted"},
}

ENDS: Final = (*CONDITIONS, "nothing_left", "no_change", "circle", "stopped", "steps", "actions", "time")


@dataclass(frozen=True, slots=True)
class Until:
    """What to stop at: one of `CONDITIONS`, "count" after so many steps; "" only when nothing is left to run."""

    what: str = ""
    steps: int = 0


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How many steps a run made and why it ended, one of `ENDS`; "" while it is under way."""

    why: str
    steps: int
    until: str = ""
    """What it goes on to, while it is under way."""


@dataclass(slots=True)
class Run:
    """A run that is under way at the end of a branch."""

    until: Until
    first: int
    """The moment from which steps are counted."""
    start: int
    """The end of the branch when it began."""
    most: int
    """Steps that it appends at the most."""
    steps: int = 0
    why: str = ""
    stopping: bool = False
    """It was told to stop; it does at the next whole step."""
    spent: float = 0.0
    """Seconds of CPU."""
    watch: Watch = field(default_factory=Watch)

    @property
    def end(self) -> RunEnd:
        """How it stands."""
        return RunEnd(self.why, self.steps, self.until.what)


def met(columns: Columns, until: Until, first: int, at: int) -> bool:
    """Whether the moment `at` is one to stop at, for a run from the moment `first`."""
    if until.what == "idle":
        return columns.waiting[at] == 0
    if until.what == "count":
        return columns.steps[at] - columns.steps[first] >= until.steps
    wanted = NOTABLE.get(until.what)
    return wanted is not None and any(one.what in wanted for one in columns.notable.get(at - 1, ()))


def recorded(columns: Columns, until: Until, first: int, end: int) -> int | None:
    """The first moment behind `first`, of those that are recorded, to stop at. It is found without a walk over them."""
    if until.what == "idle":
        try:
            return columns.waiting.index(0, first)
        except ValueError:
            return None
    if until.what == "count":
        found = bisect_left(columns.steps, columns.steps[first] + until.steps, first + 1)
        return found if found <= end else None
    actions = [columns.noted[what] for what in NOTABLE.get(until.what, ())]
    places = [(column, bisect_left(column, first)) for column in actions]
    return min((column[place] + 1 for column, place in places if place < len(column)), default=None)


def run_slice(branch: Branch, run: Run, limits: Limits, seconds: float = SLICE_SECONDS) -> None:
    """Append steps for so many seconds of CPU at the most; `run.why` says whether that was all."""
    start = time.thread_time()
    while not run.why and time.thread_time() - start < seconds:
        run.why = _why_to_end(branch, run, limits)
        if not run.why:
            branch.append(STEP)
            run.steps += 1
            if met(branch.columns, run.until, run.first, branch.end):
                run.why = run.until.what
            elif run.watch.circles(branch.head):
                run.why = "circle"
    run.spent += time.thread_time() - start


def _why_to_end(branch: Branch, run: Run, limits: Limits) -> str:
    """Why no further step is made; "" where one is."""
    if run.stopping:
        return "stopped"
    if not branch.head.simulation.scheduler.requests:
        return "nothing_left"
    if branch.head.applied is not None and not branch.head.is_loading and changed_nothing(branch.head.applied):
        return "no_change"
    if run.steps >= run.most:
        return "steps"
    return "actions" if branch.end >= limits.actions else ""


def changed_nothing(applied: Applied) -> bool:
    """Whether it was a step that will repeat itself for ever: nothing scheduled, nobody gone, nothing moved."""
    output, trace = applied.outcome.output, applied.trace
    if output is None or output.num_scheduled_tokens or trace.preemptions or trace.finishes or trace.loads:
        return False
    return not applied.events
