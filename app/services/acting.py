"""The rules of acting: at the end an action is appended; before it, the recorded action only moves the reader on.

So a double click and a second tab are harmless. Anything else before the end makes a branch.
"""

from __future__ import annotations

from typing import Final

from app.services.errors import BadValueError
from app.services.limits import check_continued
from app.services.session import Branch
from engine.actions import Abort, Action, AddRequest, Step
from engine.errors import shown
from engine.scenario import Limits, check_action

STEP: Final = Step()


def moves(branch: Branch, at: int, action: Action, *, instead: bool = False) -> bool:
    """Whether the action only moves the reader from `at` to the next moment.

    A step stands for "what comes next", whatever was recorded, unless it is meant `instead` of it.
    """
    if at == branch.end:
        return False
    return action == branch.actions[at] or (action == STEP and not instead)


def check(branch: Branch, action: Action, limits: Limits) -> None:
    """Check everything that can be known before the engine is asked.

    Raises:
        InputError: the first thing that is wrong.
        BadValueError: an abort of a request that doesn't live.
    """
    where = f"actions[{branch.end}]"
    limits.check_counts(branch.end + 1, branch.num_added + isinstance(action, AddRequest))
    limits.check_action(action, where)
    check_action(action, branch.config, where)
    check_continued(action, branch.head.simulation, limits, where)
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
