"""Acting on a session: move on, append or branch, as the rules of acting say; and a session made from actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from app.services.acting import check, check_all, moves, needs_connector
from app.services.branching import leave
from app.services.errors import ServiceError
from app.services.replaying import append_all, with_connector
from app.services.running import RunEnd
from app.services.session import Branch, Session, carries_external
from app.services.sessions import Sessions
from app.services.storing import keep, same_from
from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import InputError


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of acting: the session with the branch to look at chosen, and the moment."""

    session: Session
    at: int
    secret: str | None = None
    """If the session is new."""
    run: RunEnd | None = None
    left: str | None = None
    """The branch that was left, where this made another."""
    connector: str = ""
    """ "same" or "changed" where everything was replayed with a connector: what the present looks like then."""


async def act(
    sessions: Sessions, session: Session, branch: str, at: int, action: Action, *, instead: bool = False
) -> Acted:
    """Move on, append or branch, as the rules say. The lock is held.

    Raises:
        ServiceError: it can't be done here, or by this one, or not stored.
        InputError: the action is wrong, or impossible now; nothing has changed.
    """
    session.check_place(branch, at)
    if moves(session.branch, at, action, instead=instead):
        return Acted(session, at + 1)
    left = branch if at < session.branch.end else None
    if left:
        if other := await same_from(sessions, session, at, action):
            await sessions.choose(session, other)
            return Acted(session, at + 1, left=left)
        await leave(sessions, session, at)
    try:
        await sessions.at_end(session)
        connector = await _append(sessions, session, action)
    except (InputError, ServiceError):
        if left:
            session.drop(left)
        raise
    secret = await keep(sessions, session, at)
    return Acted(session, session.branch.end, secret, left=left, connector=connector)


async def _append(sessions: Sessions, session: Session, action: Action) -> str:
    """Execute one more action of the chosen branch; returns what a connector that it brought has changed."""
    grown, connector = session.branch, ""
    await sessions.in_thread(partial(check, grown, action, sessions.settings.limits))
    if needs_connector(grown, action):
        grown, connector = await with_connector(sessions, grown)
    await sessions.in_thread(partial(grown.append, action))
    session.replace(grown)
    return connector


async def start(sessions: Sessions, title: str, config: EngineConfig, actions: Sequence[Action] = ()) -> Acted:
    """A new session with these actions; whoever asks owns it.

    Raises:
        InputError: one of the actions can't run on this config; nothing is stored.
        TooLongError: it takes longer than one request may.
        UnavailableError: it can't be stored.
    """
    limits = sessions.settings.limits
    limits.check_config(config)
    await sessions.in_thread(lambda: check_all(config, actions, limits))
    branch = await sessions.in_thread(lambda: Branch(config, has_connector=carries_external(actions)))
    await append_all(sessions, branch, actions, sessions.threads.behind)
    session = Session("", title, b"", branch)
    return Acted(session, branch.end, await keep(sessions, session, 0))
