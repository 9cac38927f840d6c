"""What was done in memory is stored before anybody is told of it; a session that can't be is loaded again as it was."""

from __future__ import annotations

import json

from app.services.errors import UnavailableError
from app.services.session import MAIN, Session
from app.services.sessions import Sessions
from app.services.stored import branch_row, new_identity, texts_of
from app.store import StaleError, StoredSession, StoreError
from engine.actions import Action
from engine.scenario import loads, parse_action


async def keep(sessions: Sessions, session: Session, first: int) -> str | None:
    """Store what was appended to the chosen branch from `first` on, or all of a new branch.

    A new session is stored whole, and gets a secret.

    Raises:
        UnavailableError: it can't be stored; the session will be loaded again as it was.
    """
    node, branch, store = session.node, session.branch, sessions.store
    secret = None
    try:
        if not session.id:
            secret = await _create(sessions, session)
        if not node.is_stored:
            row = branch_row(node)
            number, own = list(session.nodes).index(node.id), texts_of(branch.actions[node.left_at :])
            await sessions.in_thread(lambda: store.add_branch(session.id, number, row, own))
            node.is_stored = True
        elif secret is None:
            texts = texts_of(branch.actions[first:])
            await sessions.in_thread(lambda: store.append(session.id, node.id, first, texts))
    except (StoreError, StaleError) as error:
        sessions.forget(session)
        raise UnavailableError("The action could not be stored; nothing has changed.", "", "to try again") from error
    return secret


async def _create(sessions: Sessions, session: Session) -> str:
    """Store a new session with its branch main."""
    main = session.nodes[MAIN]
    assert main.branch is not None
    session_id, secret, sha256 = new_identity()
    actions = texts_of(main.branch.actions)
    stored = StoredSession(session_id, sha256, session.title, json.dumps(main.config.to_json()), tuple(actions))
    await sessions.in_thread(lambda: sessions.store.create(stored, MAIN))
    session.id, session.secret_sha256, session.origin = session_id, sha256, None
    sessions.admit(session)
    return secret


async def delete(sessions: Sessions, session: Session) -> None:
    """Delete a stored session for good. The lock is held.

    Raises:
        UnavailableError: it can't be deleted now; nothing has changed.
    """
    try:
        await sessions.in_thread(lambda: sessions.store.remove(session.id))
    except StoreError as error:
        raise UnavailableError("The session could not be deleted.", "", "to try again") from error
    sessions.forget(session)


async def same_from(sessions: Sessions, session: Session, at: int, action: Action) -> str | None:
    """A branch that left the chosen one at `at` with this very action: a second click meant that one."""
    if not session.id:
        return None
    others = await sessions.in_thread(lambda: sessions.store.first_actions(session.id, session.chosen, at))
    return next((name for name, text in others if parse_action(loads(text)) == action), None)
