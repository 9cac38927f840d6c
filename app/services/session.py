"""One session in memory: a branch's actions, where its engine stands, and a few moments kept to start replays from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.services.columns import Columns
from app.services.cursor import Cursor
from app.services.errors import StaleMomentError
from engine.actions import Action, AddRequest
from engine.config import EngineConfig

MAIN: Final = "main"
"""The only branch for now."""

SLICE_SECONDS: Final = 0.05
FIRST_INTERVAL: Final = 64
MOST_CHECKPOINTS: Final = 32
CHECKPOINT_SECONDS: Final = 0.1
CHECKPOINT_BYTES: Final = 48_000_000
MOST_VIEWS: Final = 3


class Branch:
    """A config and its actions, with the engine at the end (`head`) and at moments that were looked at.

    Checkpoints lie at the multiples of an interval, and behind actions that took long; when there are too many, every
    second one goes and the interval doubles. They are never moved, only forked. Views are moved forward.
    """

    def __init__(self, config: EngineConfig, actions: Sequence[Action] = ()) -> None:
        self.config = config
        self.actions = list(actions)
        self.has_connector = any(isinstance(action, AddRequest) and action.carries_external for action in actions)
        self.head = self._start()
        """As far as the branch was replayed; at the end once everything was."""
        self.columns = Columns(self.head.counts)
        self.num_added = sum(isinstance(action, AddRequest) for action in actions)
        self._checkpoints: dict[int, Cursor] = {}
        self._interval = FIRST_INTERVAL
        self._views: list[Cursor] = []
        self._since = 0.0

    @property
    def end(self) -> int:
        """n: actions there are."""
        return len(self.actions)

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return self.head.weight * (1 + len(self._checkpoints) + len(self._views)) + 400 * self.end

    @property
    def num_checkpoints(self) -> int:
        """Moments that are kept to start replays from."""
        return len(self._checkpoints)

    def fork(self) -> Branch:
        """An independent copy, ready at its end."""
        twin = object.__new__(Branch)
        twin.config, twin.actions, twin.num_added = self.config, self.actions[:], self.num_added
        twin.has_connector = self.has_connector
        twin.head, twin.columns = self.head.fork(), self.columns.fork()
        twin._checkpoints, twin._interval, twin._views = self._checkpoints.copy(), self._interval, []
        twin._since = self._since
        return twin

    def append(self, action: Action) -> None:
        """Execute one more action at the end.

        Raises:
            RequestError: it is impossible now; nothing has changed.
        """
        assert self.head.at == self.end, "the branch is not replayed yet"
        self._apply_to_head(action)
        self.actions.append(action)
        self.num_added += isinstance(action, AddRequest)

    def at_hand(self, at: int) -> Cursor | None:
        """The cursor that stands at this moment, if there is one."""
        return next((cursor for cursor in (self.head, *self._views) if cursor.at == at), None)

    def cursor_for(self, at: int) -> Cursor:
        """The cursor that gets to the moment `at` with the least work; `advance` brings it there."""
        if at >= self.head.at:
            return self.head
        views = [view for view in self._views if view.at <= at]
        view = max(views, key=lambda view: view.at) if views else None
        kept = max((moment for moment in self._checkpoints if moment <= at), default=0)
        if view is None or view.at < kept:
            view = self._checkpoints[kept].fork() if kept else self._start()
        self._views = [view, *(other for other in self._views if other is not view)][:MOST_VIEWS]
        return view

    def advance(self, cursor: Cursor, at: int, seconds: float = SLICE_SECONDS) -> float:
        """Replay up to the moment `at`, or for so many seconds of CPU at the most; returns how many it took."""
        start = time.thread_time()
        while cursor.at < at and time.thread_time() - start < seconds:
            action = self.actions[cursor.at]
            if cursor is self.head:
                self._apply_to_head(action)
            else:
                cursor.apply(action)
        return time.thread_time() - start

    def _start(self) -> Cursor:
        return Cursor(self.config, has_connector=self.has_connector)

    def _apply_to_head(self, action: Action) -> None:
        head, start = self.head, time.thread_time()
        self.columns.absorb(head.apply(action), head)
        self._since += time.thread_time() - start
        if head.at % self._interval == 0 or self._since > CHECKPOINT_SECONDS:
            self._since = 0.0
            self._checkpoints[head.at] = head.fork()
            most = min(max(CHECKPOINT_BYTES // head.weight, 2), MOST_CHECKPOINTS)
            while len(self._checkpoints) > most:
                self._interval *= 2
                self._checkpoints = dict(list(self._checkpoints.items())[1::2])


@dataclass(slots=True)
class Session:
    """A session that is loaded. `lock` is held by whoever reads or changes its branch."""

    id: str
    """ "" for the built-in scenario and for a session that is not stored yet."""
    title: str
    secret_sha256: bytes
    branch: Branch
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check_place(self, branch: str, at: int) -> None:
        """Refuse a branch or a moment that isn't there.

        Raises:
            StaleMomentError: it isn't.
        """
        if branch != MAIN:
            raise StaleMomentError("There is no branch of this name here.", "branch", f"the branch {MAIN}")
        if at > self.branch.end:
            raise StaleMomentError(
                f"There is no moment {at}: this branch has {self.branch.end} actions.",
                "at",
                f"at most {self.branch.end}",
            )
