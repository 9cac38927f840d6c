"""What is made from a whole branch: on a copy of its own, so that the session goes on meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from app.services.cursor import Cursor
from app.services.session import Session
from app.services.sessions import Sessions

AT_ONCE: Final = 2


@dataclass(slots=True)
class Exports:
    """`turn` is held while one is made: others wait."""

    sessions: Sessions
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def copy_of(self, session: Session, at: int) -> tuple[Session, Cursor]:
        """An independent copy of a session's chosen branch, with a cursor at the moment `at`.

        The lock is held, and the whole branch is replayed.
        """
        sessions = self.sessions
        branch = await sessions.in_thread(session.branch.fork)
        branch.problem = session.branch.problem
        nodes = {name: replace(node) for name, node in session.nodes.items()}
        nodes[session.chosen].branch = branch
        copy = replace(session, branch=branch, lock=asyncio.Lock(), nodes=nodes, nodes_used={})
        cursor = await sessions.in_thread(lambda: branch.cursor_for(at))
        while cursor.at < at:
            await sessions.in_thread(partial(branch.advance, cursor, at))
        return copy, cursor
