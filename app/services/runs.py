"""Runs that are under way: each goes on by itself in slices, and every step is stored before anybody is told of it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from app.services.appending import Acted
from app.services.errors import ServiceError
from app.services.running import Run, RunEnd, Until, recorded, run_slice
from app.services.session import Session
from app.services.sessions import Sessions
from app.services.storing import keep

PATIENCE: Final = 0.3
"""Seconds of CPU that a run may take before it is answered while it goes on."""

MOST_ENDED: Final = 500

Place = tuple[str, str]
"""Session and branch."""


@dataclass(slots=True)
class UnderWay:
    """A run that goes on by itself; `done` is set at its end."""

    run: Run
    told: int
    """The moment that was answered when it went on by itself: a page that stands there follows it to its end."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Runs:
    """At most one run a branch; a second one joins the first."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._under_way: dict[Place, UnderWay] = {}
        self._ended: OrderedDict[Place, UnderWay] = OrderedDict()

    def find(self, session: str, branch: str) -> UnderWay | None:
        """The run that is under way there."""
        return self._under_way.get((session, branch))

    def somewhere(self, session: str, first: str) -> tuple[str, UnderWay] | None:
        """A run that is under way in a session, and its branch: on the branch `first` if there is one."""
        if (one := self.find(session, first)) is not None:
            return first, one
        return next(((branch, one) for (its, branch), one in self._under_way.items() if its == session), None)

    def ended(self, session: str, branch: str) -> UnderWay | None:
        """The latest run that went on by itself there, and has ended."""
        return self._ended.get((session, branch))

    async def close(self) -> None:
        """Stop every run at a whole step."""
        for one in list(self._under_way.values()):
            one.run.stopping = True
            await one.done.wait()

    async def begin(self, session: Session, branch: str, at: int, until: Until) -> Acted:
        """Go on to where the run is to stop; over what is recorded at first, then step by step. The lock is held.

        A run that takes long is answered with `run.why` "" and goes on by itself.

        Raises:
            ServiceError: as `act`.
        """
        session.check_place(branch, at)
        if (one := self.find(session.id, branch)) is not None:
            return Acted(session, session.branch.end, run=one.run.end)
        await self._sessions.at_end(session)
        columns, end = session.branch.columns, session.branch.end
        found = recorded(columns, until, at, end)
        if found is not None:
            return Acted(session, found, run=RunEnd(until.what, columns.steps[found] - columns.steps[at]))
        run = Run(until, at, end, self._sessions.settings.steps_a_call)
        secret = None
        while not run.why and run.spent < PATIENCE:
            secret = await self._slice(session, run) or secret
        if not run.why:
            one = UnderWay(run, session.branch.end)
            self._under_way[session.id, branch] = one
            one.task = asyncio.create_task(self._go_on(one, session.id, branch))
        return Acted(session, session.branch.end, secret, run.end)

    async def _slice(self, session: Session, run: Run) -> str | None:
        first, settings = session.branch.end, self._sessions.settings
        await self._sessions.in_thread(lambda: run_slice(session.branch, run, settings.limits))
        if not run.why and run.spent >= settings.replay_seconds:
            run.why = "time"
        return await keep(self._sessions, session, first) if session.branch.end > first else None

    async def _go_on(self, one: UnderWay, session_id: str, branch: str) -> None:
        """The rest of a run; the lock is let go of between slices, so that others can look, act, and stop it."""
        try:
            while not one.run.why:
                async with self._sessions.opened(session_id, branch) as session:
                    await self._sessions.at_end(session)
                    await self._slice(session, one.run)
                await asyncio.sleep(0)
        except ServiceError:  # what was told is stored; the branch may be deleted, the disk full
            one.run.why = one.run.why or "stopped"
        finally:
            del self._under_way[session_id, branch]
            self._ended[session_id, branch] = one
            while len(self._ended) > MOST_ENDED:
                self._ended.popitem(last=False)
            one.done.set()

    async def stop(self, session_id: str, branch: str) -> Run | None:
        """Stop the run that is under way there at the next whole step. The lock is not held."""
        one = self.find(session_id, branch)
        if one is None:
            return None
        one.run.stopping = True
        await one.done.wait()
        return one.run
