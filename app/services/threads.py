"""Work off the event loop. What is done in sessions goes ahead; links, recordings and trials go behind it, in slices.

Threads share one interpreter: eight links that were replayed at once would make everybody's step wait for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")
WORKERS: Final = 4


class Threads:
    """A few threads, and the order in which slices of long work get at them."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="work")
        self._ahead: set[asyncio.Event] = set()
        self._slice = asyncio.Lock()

    def close(self) -> None:
        """Let the threads end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run something at once."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Slices that come now wait until this is over."""
        over = asyncio.Event()
        self._ahead.add(over)
        try:
            yield
        finally:
            self._ahead.remove(over)
            over.set()

    async def behind(self, work: Callable[[], T]) -> T:
        """Run a slice of something long: one at a time, each in its turn, and behind all that is ahead by then.

        Not behind what comes later, or it would wait for ever where there is always somebody.
        """
        async with self._slice:
            for over in list(self._ahead):
                await over.wait()
            return await self.run(work)
