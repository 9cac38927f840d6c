"""Records of actions, written in slices of CPU time on an engine of their own: nothing is kept, nobody else is held up.

A replay is bounded: in CPU time, and in how many go on at once. What was recorded before something went wrong stays.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from app.services.errors import FullError, ServiceError, TooLongError, error_body
from app.services.limits import check_continued
from app.services.record_text import record_text
from app.services.session import SLICE_SECONDS, Session
from app.services.sessions import Sessions, check_arrived
from app.services.sources import Source
from app.tokenizer import tokenize
from engine.actions import Action
from engine.errors import InputError
from engine.record import apply_recorded, dumps
from engine.scenario import Limits, read_scenario
from engine.simulation import Simulation

T = TypeVar("T")
SLICE_BYTES: Final = 1_000_000
"""A slice ends behind the record that goes over it."""
MOST_AT_ONCE: Final = 16


def _nothing(_action: Action, _index: int) -> None:
    """Nothing to check: the actions were run before."""


@dataclass(slots=True)
class Recorder:
    """Executes actions one after the other and writes the record of each.

    Attributes:
        simulation: an engine that nobody else uses; it stands before the first of the actions.
        actions: what to execute.
        seconds: CPU time it may take.
        goes_on: whether the records can be asked for from any action on, where it takes too long.
        check: called with each action and its index before it is executed; raises what is wrong with it.
        written: how many records there are.
        error: what ended it before the end.
    """

    simulation: Simulation
    actions: Sequence[Action]
    seconds: float
    check: Callable[[Action, int], None] = _nothing
    goes_on: bool = False
    written: int = 0
    spent: float = 0.0
    error: InputError | ServiceError | None = None

    @property
    def is_done(self) -> bool:
        """Whether no record will come any more."""
        return self.error is not None or self.written == len(self.actions)

    def slice(self) -> list[str]:
        """The next records, one JSON object each; what goes wrong is kept in `error`."""
        start, lines, size = time.thread_time(), list[str](), 0
        while not self.is_done and size < SLICE_BYTES and time.thread_time() - start < SLICE_SECONDS:
            if self.spent + time.thread_time() - start > self.seconds:
                self.error = too_long(self.simulation.num_actions, goes_on=self.goes_on and self.written > 0)
                break
            try:
                self.check(self.actions[self.written], self.written)
                lines.append(record_text(apply_recorded(self.simulation, self.actions[self.written])))
            except (InputError, ServiceError) as error:
                self.error = error
                break
            self.written += 1
            size += len(lines[-1])
        self.spent += time.thread_time() - start
        return lines


def too_long(action: int, *, goes_on: bool = False) -> TooLongError:
    """The error of a replay that was cut short before an action; `goes_on`: another request can go on from there."""
    expected = f"to go on with ?from={action}" if goes_on else "fewer or smaller actions"
    return TooLongError("Replaying this takes longer than one request may.", f"actions[{action}]", expected)


@dataclass(slots=True)
class Replays:
    """Streams of records, as JSON lines."""

    sessions: Sessions
    most: int = MOST_AT_ONCE
    under_way: int = 0
    _seconds: float = field(init=False)

    def __post_init__(self) -> None:
        self._seconds = self.sessions.settings.replay_seconds

    def of_scenario(self, source: bytes) -> AsyncIterator[bytes]:
        """The record of each action of a scenario, as `_lines` gives them.

        Raises:
            InputError: the text is no scenario, or over a limit.
        """
        limits = self.sessions.settings.limits

        async def begin() -> Recorder:
            return await self.sessions.in_thread(lambda: _recorder_of(source, limits, self._seconds))

        return self._lines(begin)

    def of_branch(self, place: Source | str, branch: str, first: int, end: int | None) -> AsyncIterator[bytes]:
        """The records of a branch's actions from `first` to before `end` (None: all), as `_lines` gives them.

        `place` is a session's id, or another source.

        Raises:
            ServiceError: there is no such session, branch or moment, or it can't be had now.
        """

        async def begin() -> Recorder:
            async with self.sessions.opened(place, branch) as session:
                await self.sessions.at_end(session)  # only then is it known where it ends
                session.check_place(branch, first, "from")
                session.check_place(branch, end or 0, "to")
                actions = session.branch.actions[first:end]
                simulation = await engine_at(self.sessions, session, first)
                return Recorder(simulation, actions, self._seconds, goes_on=True)

        return self._lines(begin)

    async def _lines(self, begin: Callable[[], Awaitable[Recorder]]) -> AsyncIterator[bytes]:
        """Whole lines, some at a time. What goes wrong before the first one is raised, later it is the last line."""
        if self.under_way >= self.most:
            raise FullError("Too many replays are under way.", "", "to try again in a few seconds")
        self.under_way += 1
        try:
            recorder = await begin()
            while not recorder.is_done:
                if lines := await self.sessions.threads.behind(recorder.slice):
                    yield "".join(f"{line}\n" for line in lines).encode("ascii")
            if recorder.error is not None:
                if not recorder.written:
                    raise recorder.error
                yield f"{dumps(error_body(recorder.error))}\n".encode("ascii")
        finally:
            self.under_way -= 1


async def engine_at(sessions: Sessions, session: Session, at: int) -> Simulation:
    """An independent copy of the engine at a moment of the chosen branch. The lock is held.

    Raises:
        UnavailableError: getting there takes longer than one request may; the next one goes on from here.
    """
    cursor = await sessions.seek(session, at)
    check_arrived(cursor, at)
    return await sessions.in_thread(cursor.simulation.fork)


def _recorder_of(source: bytes, limits: Limits, seconds: float) -> Recorder:
    scenario = read_scenario(source, tokenize)
    limits.check(scenario, tokenize)
    simulation = Simulation(scenario.config, has_connector=scenario.has_connector, tokenize=tokenize)
    return Recorder(simulation, scenario.actions, seconds, partial(_check, simulation, limits))


def _check(simulation: Simulation, limits: Limits, action: Action, index: int) -> None:
    check_continued(action, simulation, limits, f"actions[{index}]")
