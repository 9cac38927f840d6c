"""What is made from a whole branch: on a copy of its own, so that the session goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from app.services.cursor import Cursor
from app.services.errors import FullError
from app.services.session import Session
from app.services.sessions import Sessions

AT_ONCE: Final = 2
MOST_WAITING: Final = 8


@dataclass(slots=True)
class Exports:
    """Two are made at once, a few wait."""

    sessions: Sessions
    waiting: int = 0
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn, and have it.

        Raises:
            FullError: too many wait already.
        """
        if self.waiting >= MOST_WAITING:
            raise FullError("Too many recordings are being made.", "", "to try again in a minute")
        self.waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._room.release()

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
