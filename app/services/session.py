"""A session in memory: its branches, and of each that was looked at where its engine stands.

A few moments of a branch are kept to start replays from. A branch that leaves another shares those up to there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from app.services.columns import Columns
from app.services.cursor import Cursor
from app.services.errors import StaleMomentError
from app.services.limits import check_continued
from app.services.sources import SESSION, UNTITLED, Origin, Source
from app.services.visible import is_visible
from engine.actions import Action, AddRequest
from engine.config import EngineConfig
from engine.errors import InputError, LimitError
from engine.scenario import Limits

MAIN: Final = "main"
"""The branch that every session has at first."""

SLICE_SECONDS: Final = 0.05
FIRST_INTERVAL: Final = 64
MOST_CHECKPOINTS: Final = 256
CHECKPOINT_SECONDS: Final = 0.03
CHECKPOINT_SHARE: Final = 8
"""A checkpoint is worth it behind actions that took so many times as long as making it."""
CHECKPOINT_BYTES: Final = 192_000_000
MOST_VIEWS: Final = 3
MOST_BRANCHES: Final = 1_000
MOST_LOADED: Final = 12
"""Branches of one session that are kept in memory; the others cost a replay."""


class Branch:
    """A config and its actions, with the engine at the end (`head`) and at moments that were looked at.

    Checkpoints lie at the multiples of an interval, and behind actions that took long; when there are too many, every
    second one goes and what lies between two of them doubles. They are never moved, only forked. Views move forward.
    """

    def __init__(
        self,
        config: EngineConfig,
        actions: Sequence[Action] = (),
        *,
        has_connector: bool = False,
        limits: Limits | None = None,
    ) -> None:
        """A branch that is replayed by `advance`.

        Args:
            config: what the engine runs on.
            actions: what is replayed.
            has_connector: also where no action asks for one.
            limits: of actions that nobody has run yet; the branch ends before the first one that is impossible.
        """
        self.config = config
        self.actions = list(actions)
        self.has_connector = has_connector or carries_external(actions)
        self.head = self._start()
        """As far as the branch was replayed; at the end once everything was."""
        self.columns = Columns(self.head.counts)
        self.num_added = sum(isinstance(action, AddRequest) for action in actions)
        self.most_checkpoints = MOST_CHECKPOINTS
        self._checkpoints: dict[int, Cursor] = {}
        self._interval = FIRST_INTERVAL
        self._views: list[Cursor] = []
        self._since = 0.0
        self._cost = 0.0
        self.limits = limits
        self.problem: InputError | None = None
        """What was wrong with the action at which a branch under `limits` had to end."""

    @property
    def end(self) -> int:
        """n: actions there are."""
        return len(self.actions)

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        moments = 1 + len(self._checkpoints) + len(self._views)
        return self.head.weight * moments + self.head.requests_weight + 400 * self.end

    @property
    def num_checkpoints(self) -> int:
        """Moments that are kept to start replays from."""
        return len(self._checkpoints)

    def fork(self) -> Branch:
        """An independent copy, ready at its end."""
        return self.fork_at(self.head)

    def fork_at(self, cursor: Cursor) -> Branch:
        """A branch that leaves this one where one of its cursors stands; what both have in common is shared."""
        at = cursor.at
        twin = object.__new__(Branch)
        twin.config, twin.actions, twin.has_connector = self.config, self.actions[:at], self.has_connector
        twin.num_added = sum(isinstance(action, AddRequest) for action in twin.actions)
        twin.head, twin.columns = cursor.fork(), self.columns.fork(at)
        twin._checkpoints = {moment: kept for moment, kept in self._checkpoints.items() if moment <= at}
        twin._interval, twin._views, twin._since, twin._cost = self._interval, [], 0.0, self._cost
        twin.most_checkpoints = self.most_checkpoints
        twin.limits, twin.problem = self.limits, None
        return twin

    def extend(self, actions: Sequence[Action]) -> None:
        """Actions to be replayed behind those that are here; they were checked when they were recorded."""
        self.actions.extend(actions)
        self.num_added += sum(isinstance(action, AddRequest) for action in actions)

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
        while cursor.at < min(at, self.end) and time.thread_time() - start < seconds:
            action = self.actions[cursor.at]
            if cursor is not self.head:
                cursor.apply(action)
            elif self.limits is None:
                self._apply_to_head(action)
            else:
                self._try_at_head(action, self.limits)
        if self.limits is not None and cursor is self.head and self.head.at < self.end:
            self._weigh(self.limits)
        return time.thread_time() - start

    def _try_at_head(self, action: Action, limits: Limits) -> None:
        """Execute an action that nobody has run yet, or end the branch before it."""
        at = self.head.at
        try:
            check_continued(action, self.head.simulation, limits, f"actions[{at}]")
            self._apply_to_head(action)
        except InputError as error:
            self._end_here(error)

    def _weigh(self, limits: Limits) -> None:
        """End the branch where what is replayed unasked takes too much memory."""
        if self.head.weight + self.head.requests_weight > limits.memory:
            where = f"actions[{self.head.at}]"
            message = "replaying these actions takes more memory than a link may"
            expected = f"at most {limits.memory // 1_000_000} MB: fewer or smaller requests"
            self._end_here(LimitError("over_limit", message, where, expected))

    def _end_here(self, problem: InputError) -> None:
        """Leave out the actions behind the head."""
        self.problem = problem
        del self.actions[self.head.at :]
        self.num_added = sum(isinstance(action, AddRequest) for action in self.actions)

    def _start(self) -> Cursor:
        return Cursor(self.config, has_connector=self.has_connector)

    def _apply_to_head(self, action: Action) -> None:
        head, start = self.head, time.thread_time()
        self.columns.absorb(head.apply(action), head)
        now = time.thread_time()
        self._since += now - start
        worth = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * self._cost) * self._interval / FIRST_INTERVAL
        if (head.at % self._interval == 0 and self._since > worth / 16) or self._since > worth:
            self._checkpoints[head.at] = head.fork()
            self._since, self._cost = 0.0, time.thread_time() - now
            most = min(max(CHECKPOINT_BYTES // head.weight, 2), self.most_checkpoints)
            while len(self._checkpoints) > most:
                self._interval *= 2
                self._checkpoints = dict(list(self._checkpoints.items())[1::2])


def carries_external(actions: Sequence[Action]) -> bool:
    """Whether an action gives the scenario a connector."""
    return any(isinstance(action, AddRequest) and action.carries_external for action in actions)


@dataclass(slots=True)
class Node:
    """A branch among the others: what is known of it before anybody looks at it."""

    id: str
    name: str
    config: EngineConfig
    parent: str | None = None
    left_at: int = 0
    """Where it left its parent."""
    num_own: int = 0
    """Actions behind `left_at`."""
    has_connector: bool | None = None
    """Whether it has inherited a connector; where it hasn't, as its actions say."""
    has_own_config: bool = False
    deleted: bool = False
    """Kept for its id, and for the branches that left it."""
    branch: Branch | None = None
    """Once it is looked at."""
    is_stored: bool = True

    @property
    def end(self) -> int:
        """n: actions there are."""
        return self.branch.end if self.branch is not None else self.left_at + self.num_own


@dataclass(slots=True)
class Session:
    """A session that is loaded. `lock` is held by whoever reads or changes it.

    While the lock is held, `branch` is the one that was chosen by the holder.
    """

    id: str
    """ "" for what is not stored, or not yet."""
    title: str
    secret_sha256: bytes
    branch: Branch
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    nodes: dict[str, Node] = field(default_factory=dict)
    """Every branch that ever was, in the order in which they were made."""
    nodes_used: dict[str, None] = field(default_factory=dict)
    """Branches that were chosen, the latest last."""
    chosen: str = MAIN
    origin: Origin | None = None
    """What it shows while it is not stored: a story, a link. None for a session."""

    def __post_init__(self) -> None:
        if not self.nodes:
            self.nodes = {MAIN: Node(MAIN, MAIN, self.branch.config, branch=self.branch)}

    @property
    def node(self) -> Node:
        """The chosen branch among the others."""
        return self.nodes[self.chosen]

    @property
    def living(self) -> list[Node]:
        """The branches that are not deleted."""
        return [node for node in self.nodes.values() if not node.deleted]

    def meant(self, branch: str) -> str:
        """The id of a branch; "" stands for the first one, or where that was deleted for the first that is left."""
        if branch or not self.nodes[MAIN].deleted:
            return branch or MAIN
        return self.living[0].id

    @property
    def source(self) -> Source:
        """Where its page is."""
        if self.id or self.origin is None:
            return Source(SESSION, self.id)
        return self.origin.source

    @property
    def shown_title(self) -> str:
        """The title as a page shows it: one that nobody sees is none."""
        return self.title if is_visible(self.title) else UNTITLED

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return sum(node.branch.weight for node in self.nodes.values() if node.branch is not None)

    def choose(self, branch: str) -> None:
        """Go over to a branch that is in memory."""
        node = self.find(branch)
        assert node.branch is not None, branch
        self.chosen, self.branch = branch, node.branch

    def replace(self, branch: Branch) -> None:
        """Put another replay of the same actions in the place of the chosen branch."""
        self.branch = self.node.branch = branch
        self.node.has_connector = branch.has_connector

    def drop(self, back_to: str) -> None:
        """Take back the chosen branch, which is not stored yet, and choose another."""
        del self.nodes[self.chosen]
        self.nodes_used.pop(self.chosen, None)
        self.choose(back_to)

    def find(self, branch: str) -> Node:
        """A branch by its id.

        Raises:
            StaleMomentError: there is none, or no more.
        """
        node = self.nodes.get(branch)
        if node is None or node.deleted:
            message = (
                "There is no branch of this name here." if node is None else f"The branch {node.name} was deleted."
            )
            raise StaleMomentError(message, "branch", "one of the branches of this session")
        return node

    def free_id(self) -> str:
        """An id for a new branch, which is its first name too: nobody ever had it, nor is anybody called so."""
        taken = {name.casefold() for node in self.nodes.values() for name in (node.id, node.name)}
        return next(name for number in count(len(self.nodes) + 1) if (name := f"b{number}") not in taken)

    def may_be_called(self, node: Node, name: str) -> bool:
        """Whether a branch can have a name: no living one has it, and no other one's id, even a deleted one's, is so.

        Ids stand in addresses: a page must not call one branch what its address calls another.
        """
        others = [one for one in self.nodes.values() if one is not node]
        taken = {one.id for one in others} | {one.name for one in others if not one.deleted}
        return name.casefold() not in {one.casefold() for one in taken}

    def check_place(self, branch: str, at: int, where: str = "at") -> None:
        """Refuse a branch that isn't the chosen one, and a moment that isn't there; `where` names the latter.

        Raises:
            StaleMomentError: it isn't.
        """
        branch = self.meant(branch)
        self.find(branch)
        if branch != self.chosen:
            raise StaleMomentError("Another branch is open.", "branch", self.chosen)
        if at > self.branch.end:
            raise StaleMomentError(
                f"There is no moment {at}: this branch has {self.branch.end} actions.",
                where,
                f"at most {self.branch.end}",
            )
