"""A branch as a scenario, to be handed on."""

from __future__ import annotations

from dataclasses import replace

from app.services.session import Session, carries_external
from engine.actions import Action, AddRequest
from engine.scenario import VERSION, Scenario


def scenario_of(session: Session) -> Scenario:
    """The chosen branch as a scenario that replays to the same states.

    A branch can have inherited a connector though none of its own actions asks for one; its first request says so.
    """
    branch, origin = session.branch, session.origin
    if origin is not None and branch.end == len(origin.scenario.actions):
        return origin.scenario  # as it was written
    actions = list(branch.actions)
    if branch.has_connector and not carries_external(actions):
        actions = _with_connector(actions)
    return Scenario(VERSION, session.title, branch.config, tuple(actions))


def _with_connector(actions: list[Action]) -> list[Action]:
    place = next((at for at, action in enumerate(actions) if isinstance(action, AddRequest)), None)
    if place is not None:
        first = actions[place]
        actions[place] = replace(first, source={**first.to_json(), "external": None})
    return actions
