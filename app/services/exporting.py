"""What is made from a whole branch: on a copy of its own, so that the session goes on meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Final

from app.services.cursor import Cursor
from app.services.session import Session
from app.services.sessions import Sessions
from app.services.turns import Turns

AT_ONCE: Final = 2
MOST_WAITING: Final = 8


class Exports(Turns):
    """Two are made at once, a few wait."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__(AT_ONCE, MOST_WAITING, "Too many recordings are being made.")
        self.sessions = sessions

    async def copy_of(self, session: Session, at: int) -> tuple[Session, Cursor]:
        """An independent copy of a session's chosen branch, with a cursor at the moment `at`.

        The lock is held.

        Raises:
            UnavailableError: replaying the branch takes longer than one request may; the next one goes on.
        """
        sessions = self.sessions
        await sessions.at_end(session)
        branch = await sessions.in_thread(session.branch.fork)
        branch.problem = session.branch.problem
        nodes = {name: replace(node) for name, node in session.nodes.items()}
        nodes[session.chosen].branch = branch
        copy = replace(session, branch=branch, lock=asyncio.Lock(), nodes=nodes, nodes_used={})
        cursor = await sessions.in_thread(lambda: branch.cursor_for(at))
        while cursor.at < at:
            await sessions.in_thread(partial(branch.advance, cursor, at))
        return copy, cursor
