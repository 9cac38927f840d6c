"""Several actions at once, all or none of them: what a program sends. Each is answered with its record.

The rules are those of acting: what is recorded already only moves on, be it in a branch that left here; anything else
is appended, before the end to a branch of its own. Every action means just itself here, a step too. All of them are
executed on a copy of the engine first, so that nothing has changed when one turns out to be impossible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.services.acting import check_alone
from app.services.branching import leave
from app.services.errors import ServiceError
from app.services.recording import Recorder, engine_at
from app.services.replaying import append_all, connected, with_connector
from app.services.session import Session, carries_external
from app.services.sessions import Sessions
from app.services.storing import keep, same_from
from engine.actions import Action, AddRequest, Step
from engine.errors import InputError, LimitError
from engine.scenario import Limits
from engine.simulation import Simulation

MOST_BYTES: Final = 50_000_000
"""Of the records of one call."""
PLACE: Final = re.compile(r"actions\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a list of actions: where it led, and the record of each, as JSON.

    `connector`: "same" or "changed" where everything was replayed with a connector: what the present looks like then.
    """

    branch: str
    at: int
    records: tuple[str, ...]
    connector: str = ""


async def act_all(
    sessions: Sessions, session: Session, branch: str, at: int, actions: Sequence[Action], *, alone: bool = False
) -> Done:
    """Move on, append or branch by all of the actions, or change nothing. The lock is held, the branch chosen.

    Raises:
        InputError: an action is impossible; its place is `actions[i]`, its index in the list, `actions` when `alone`.
        ServiceError: it can't be done here, takes too long, or can't be stored.
    """
    session.check_place(branch, at)
    steps, most = sum(isinstance(action, Step) for action in actions), sessions.settings.steps_a_call
    if steps > most:
        raise LimitError("over_limit", f"{steps} steps are more than one call takes", "actions", f"at most {most}")
    start = at + await _follow(sessions, session, at, actions)
    rest = actions[start - at :]
    connector = carries_external(rest) and not session.branch.has_connector
    try:
        records = await _rehearse(sessions, session, at, start, actions, connector=connector)
    except InputError as error:
        raise _at_its_place(error, at, alone=alone) from None
    changed = await _append(sessions, session, start, rest, connector=connector) if rest else ""
    return Done(session.chosen, at + len(actions), records, changed)


async def _follow(sessions: Sessions, session: Session, at: int, actions: Sequence[Action]) -> int:
    """How many of the actions are recorded from `at` on, here or in branches that left here; such a one is chosen."""
    moved = 0
    while moved < len(actions) and at + moved < session.branch.end:
        action = actions[moved]
        if session.branch.actions[at + moved] == action:
            moved += 1
        elif other := await same_from(sessions, session, at + moved, action):
            await sessions.choose(session, other)
        else:
            break
    return moved


async def _rehearse(
    sessions: Sessions, session: Session, at: int, start: int, actions: Sequence[Action], *, connector: bool
) -> tuple[str, ...]:
    """The record of each of the actions, executed on a copy; those from moment `start` on are checked as new ones."""
    branch, settings = session.branch, sessions.settings
    if connector:
        simulation = (await connected(sessions, branch.config, branch.actions[:at])).head.simulation
    else:
        simulation = await engine_at(sessions, session, at)
    check = _Checks(simulation, settings.limits, at, start, _added(branch.actions[:start]))
    recorder = Recorder(simulation, actions, settings.replay_seconds / 2, check)
    records, size = list[str](), 0
    while not recorder.is_done:
        lines = await sessions.in_thread(recorder.slice)
        records += lines
        size += sum(map(len, lines))
        if size > MOST_BYTES:
            message = f"the records of these actions take more than {MOST_BYTES} bytes"
            raise LimitError("over_limit", message, "actions", "fewer actions in one call")
    if recorder.error is not None:
        raise recorder.error
    return tuple(records)


def _added(actions: Sequence[Action]) -> int:
    return sum(isinstance(action, AddRequest) for action in actions)


@dataclass(slots=True)
class _Checks:
    """Everything that is checked before a new action is executed; `added`: requests before it."""

    simulation: Simulation
    limits: Limits
    at: int
    start: int
    added: int

    def __call__(self, action: Action, index: int) -> None:
        if self.at + index < self.start:
            return
        self.added += isinstance(action, AddRequest)
        self.limits.check_counts(self.at + index + 1, self.added)
        check_alone(action, self.simulation, self.limits)


def _at_its_place(error: InputError, at: int, *, alone: bool) -> InputError:
    """An action's place in what was sent, where the engine told its index in the scenario."""

    def sent(found: re.Match[str]) -> str:
        return "actions" if alone else f"actions[{int(found[1]) - at}]"

    error.where = PLACE.sub(sent, error.where, count=1)
    return error


async def _append(
    sessions: Sessions, session: Session, start: int, actions: Sequence[Action], *, connector: bool
) -> str:
    """Execute and store them behind the moment `start`, as was rehearsed; returns what a connector has changed."""
    left, changed = session.chosen if start < session.branch.end else "", ""
    if left:
        await leave(sessions, session, start)
    try:
        await sessions.at_end(session)
        if connector:
            grown, changed = await with_connector(sessions, session.branch)
            session.replace(grown)
        await append_all(sessions, session.branch, actions, sessions.in_thread)
    except (InputError, ServiceError):
        if left:
            session.drop(left)
        else:
            sessions.forget(session)
        raise
    await keep(sessions, session, start)
    return changed
