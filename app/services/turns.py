"""Whoever asks for something costly has a turn: some have one at once, a few wait for theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.services.errors import FullError


class Turns:
    """At most `at_once` have a turn; `most_waiting` may wait, in the order in which they came."""

    def __init__(self, at_once: int, most_waiting: int, full: str) -> None:
        """`full` is what is said to those who come when too many wait."""
        self.waiting = 0
        self._room = asyncio.Semaphore(at_once)
        self._most_waiting, self._full = most_waiting, full

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for one's turn, and have it.

        Raises:
            FullError: too many wait already.
        """
        if self.waiting >= self._most_waiting:
            raise FullError(self._full, "", "to try again in a minute")
        self.waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._room.release()
