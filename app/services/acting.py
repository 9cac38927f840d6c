"""The rules of acting: at the end an action is appended; before it, the recorded action only moves the reader on.

So a double click and a second tab are harmless. Anything else before the end makes a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from unicodedata import category

from app.services.errors import BadValueError
from app.services.limits import check_continued
from app.services.session import Branch
from app.services.visible import is_visible
from app.tokenizer import tokenize
from engine.actions import Abort, Action, AddRequest, Step
from engine.config import EngineConfig
from engine.errors import shown
from engine.scenario import Limits, check_action
from engine.simulation import Simulation

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
    check_alone(action, branch.head.simulation, limits)
    living = branch.head.simulation.scheduler.requests
    ids = (action.id,) if isinstance(action, Abort) else action.abort if isinstance(action, Step) else ()
    for place, name in enumerate(ids):
        if name not in living:
            field = f"{where}.abort[{place}]" if isinstance(action, Step) else f"{where}.id"
            raise BadValueError(
                f"No living request is called {shown(name)}.", field, "the id of a waiting or running request"
            )


def _check_id(action: Action, where: str) -> None:
    """Refuse an id that a page can't carry.

    Raises:
        BadValueError: nothing of it is visible, or it has control characters.
    """
    if isinstance(action, AddRequest) and (
        not is_visible(action.id) or any(category(one) == "Cc" for one in action.id)
    ):
        raise BadValueError("A page can't show this id.", f"{where}.id", "something visible, no control characters")


def check_ids(actions: Sequence[Action]) -> None:
    """Refuse ids that a page can't carry.

    Raises:
        BadValueError: the first one.
    """
    for index, action in enumerate(actions):
        _check_id(action, f"actions[{index}]")


def check_all(config: EngineConfig, actions: Sequence[Action], limits: Limits) -> None:
    """Check, before any of them runs, whether actions can run on a config.

    Raises:
        InputError: the first one that can't; `where` starts with its place, as `actions[3]`.
    """
    limits.check_counts(len(actions), sum(isinstance(action, AddRequest) for action in actions))
    check_ids(actions)
    for index, action in enumerate(actions):
        limits.check_action(action, f"actions[{index}]", tokenize)
        check_action(action, config, f"actions[{index}]", tokenize)


def check_alone(action: Action, simulation: Simulation, limits: Limits) -> None:
    """Check what doesn't depend on how many actions there are.

    Raises:
        InputError: the first thing that is wrong.
    """
    where = f"actions[{simulation.num_actions}]"
    _check_id(action, where)
    limits.check_action(action, where, tokenize)
    check_action(action, simulation.config, where, tokenize)
    check_continued(action, simulation, limits, where)


def needs_connector(branch: Branch, action: Action) -> bool:
    """Whether the action gives the scenario a connector that it didn't have: it changes the rules from the start."""
    return isinstance(action, AddRequest) and action.carries_external and not branch.has_connector
