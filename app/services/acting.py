"""The rules of acting: at the end an action is appended; before it, the recorded action only moves the reader on.

So a double click and a second tab are harmless. Anything else before the end would make a branch, which has to wait.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from app.services.cursor import Applied
from app.services.errors import BadValueError, WouldBranchError
from app.services.limits import check_continued
from app.services.session import SLICE_SECONDS, Branch
from engine.actions import Abort, Action, AddRequest, Step
from engine.errors import shown
from engine.scenario import Limits, check_action
from engine.simulation import Simulation

STEP: Final = Step()


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Where a run ended and why: nothing_left, no_change, steps, actions or time; "" while it is under way."""

    why: str
    steps: int


def moves(branch: Branch, at: int, action: Action) -> bool:
    """Whether the action only moves the reader from `at` to the next moment.

    Raises:
        WouldBranchError: it is neither that nor at the end.
    """
    if at == branch.end:
        return False
    if action == STEP or action == branch.actions[at]:
        return True
    raise WouldBranchError(
        f"You are looking at action {at} of {branch.end}. Acting here would make a branch, which Poolscope can't do "
        "yet; go to the end to act.",
        "at",
        f"{branch.end}",
    )


def check(branch: Branch, action: Action, limits: Limits) -> None:
    """Check everything that can be known before the engine is asked.

    Raises:
        InputError: the first thing that is wrong.
        BadValueError: an abort of a request that doesn't live.
    """
    where = f"actions[{branch.end}]"
    limits.check_counts(branch.end + 1, branch.num_added + isinstance(action, AddRequest))
    check_alone(action, branch.head.simulation, limits)
    if isinstance(action, AddRequest) and action.carries_external and not branch.has_connector:
        message = "External tokens need a connector, and this scenario was begun without one."
        raise BadValueError(message, f"{where}.external", "a scenario whose actions carry external from the start")
    living = branch.head.simulation.scheduler.requests
    ids = (action.id,) if isinstance(action, Abort) else action.abort if isinstance(action, Step) else ()
    for place, name in enumerate(ids):
        if name not in living:
            field = f"{where}.abort[{place}]" if isinstance(action, Step) else f"{where}.id"
            raise BadValueError(
                f"No living request is called {shown(name)}.", field, "the id of a waiting or running request"
            )


def check_alone(action: Action, simulation: Simulation, limits: Limits) -> None:
    """Check what doesn't depend on how many actions there are.

    Raises:
        InputError: the first thing that is wrong.
    """
    where = f"actions[{simulation.num_actions}]"
    limits.check_action(action, where)
    check_action(action, simulation.config, where)
    check_continued(action, simulation, limits, where)


def run_slice(branch: Branch, limits: Limits, last: int) -> RunEnd:
    """Append steps up to the moment `last`, for a slice of CPU time at the most."""
    start, steps = time.thread_time(), 0
    while True:
        if not branch.head.simulation.scheduler.requests:
            return RunEnd("nothing_left", steps)
        if branch.head.applied is not None and changed_nothing(branch.head.applied):
            return RunEnd("no_change", steps)
        if branch.end >= last:
            return RunEnd("steps", steps)
        if branch.end >= limits.actions:
            return RunEnd("actions", steps)
        if time.thread_time() - start > SLICE_SECONDS:
            return RunEnd("", steps)
        branch.append(STEP)
        steps += 1


def changed_nothing(applied: Applied) -> bool:
    """Whether it was a step that will repeat itself for ever: nothing scheduled, nobody gone, no block moved."""
    output, trace = applied.outcome.output, applied.trace
    if output is None or output.num_scheduled_tokens or trace.preemptions or trace.finishes:
        return False
    return not applied.events
