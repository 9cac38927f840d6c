"""All sessions: loaded from the store when asked for, the longest idle unloaded when there are too many."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from app.services import acting
from app.services.cursor import Cursor
from app.services.errors import (
    BadValueError,
    NotOwnerError,
    ServiceError,
    TooLongError,
    UnavailableError,
    UnknownSessionError,
)
from app.services.running import RunEnd
from app.services.session import (
    MAIN,
    MOST_BRANCHES,
    MOST_LOADED,
    SLICE_SECONDS,
    Branch,
    Node,
    Session,
    carries_external,
)
from app.services.sources import SESSION, Source, origin_of
from app.services.stored import branch_row, new_identity, nodes_of, owns, parse_actions, texts_of
from app.settings import Settings
from app.store import StaleError, Store, StoredSession, StoreError
from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import InputError
from engine.record import current_state
from engine.scenario import loads, parse_action

T = TypeVar("T")
WORKERS: Final = 4


@dataclass(slots=True)
class _Loaded:
    """A session in memory, how many use it now, and its weight when it was last used."""

    session: Session | None = None
    users: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of acting: the session with the branch to look at chosen, and the moment."""

    session: Session
    at: int
    secret: str | None = None
    """If the session is new."""
    run: RunEnd | None = None
    left: str | None = None
    """The branch that was left, where this made another."""
    connector: str = ""
    """ "same" or "changed" where everything was replayed with a connector: what the present looks like then."""


class Sessions:
    """Everything that touches a session's branch runs in a few threads, in slices, and under the session's lock."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()
        self._threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="replay")

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    @property
    def num_loaded(self) -> int:
        """Sessions in memory."""
        return len(self._loaded)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run something off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # ---- opening

    @asynccontextmanager
    async def opened(self, place: Source | str, branch: str | None = MAIN) -> AsyncIterator[Session]:
        """A session by its id, or what another source holds, locked, with a branch chosen (None: the last one).

        Raises:
            ServiceError: there is none of this name, or it has no such branch.
            InputError: a permalink that can't be read.
        """
        source = Source(SESSION, place) if isinstance(place, str) else place
        key = source.key
        session_id = source.name if source.is_stored else ""
        slot = self._loaded.setdefault(key, _Loaded(Session(session_id, "", b"", _nothing())))
        self._loaded.move_to_end(key)
        slot.users += 1
        try:
            assert slot.session is not None
            async with slot.session.lock:
                if not slot.weight:
                    await (self._load(slot.session) if session_id else self._read_origin(slot.session, source))
                slot.weight = slot.weight or 1
                if branch is not None:
                    await self.choose(slot.session, slot.session.meant(branch))
                yield slot.session
                if slot.weight:
                    slot.weight = slot.session.weight
        finally:
            slot.users -= 1
            if not slot.weight and not slot.users:
                self._loaded.pop(key, None)
            self._unload()

    async def _load(self, session: Session) -> None:
        stored = await self.in_thread(lambda: self.store.load(session.id, MAIN))
        if stored is None:
            raise UnknownSessionError("There is no session of this name.", "session")
        session.nodes, session.nodes_used = nodes_of(stored), {}
        session.title, session.secret_sha256 = stored.title, stored.secret_sha256

    async def _read_origin(self, session: Session, source: Source) -> None:
        """What a source that nothing stores holds; it is replayed by whoever looks."""
        limits = self.settings.limits
        origin = await self.in_thread(lambda: origin_of(source, limits, self.store.link))
        scenario = origin.scenario
        branch = await self.in_thread(lambda: Branch(scenario.config, scenario.actions, limits=limits))
        session.origin, session.title = origin, origin.title
        session.nodes, session.nodes_used = {MAIN: Node(MAIN, MAIN, branch.config, branch=branch)}, {}

    async def choose(self, session: Session, branch: str) -> None:
        """Go over to a branch; where it isn't in memory its actions are read, and a parent's replay is gone on with.

        Raises:
            StaleMomentError: there is none of this id.
        """
        node = session.find(branch)
        if node.branch is None:
            node.branch = await self._read(session, node)
        session.nodes_used[branch] = session.nodes_used.pop(branch, None)
        loaded = [name for name in session.nodes_used if session.nodes[name].branch is not None]
        for name in loaded[:-MOST_LOADED]:
            if session.nodes[name].is_stored:
                session.nodes[name].branch = None
        session.choose(branch)

    async def _read(self, session: Session, node: Node) -> Branch:
        """The actions of a branch, its own behind its parents'; a parent in memory lends its checkpoints."""
        tails: list[list[Action]] = []
        shared, line = node.end, [node]
        while line[-1].branch is None:
            one = line[-1]
            texts = await self.in_thread(partial(self.store.actions, session.id, one.id))
            tails.append(parse_actions(texts[: max(shared - one.left_at, 0)], one.left_at))
            shared = min(shared, one.left_at)
            if not shared:
                break
            assert one.parent is not None
            line.append(session.nodes[one.parent])
        above, own = line[-1].branch, [*chain(*reversed(tails))]
        actions = [*(above.actions[:shared] if above else ()), *own]
        has_connector = bool(node.has_connector) or carries_external(actions)
        if above is None or above.head.at < shared or above.has_connector != has_connector:
            return Branch(node.config, actions, has_connector=has_connector)
        cursor = above.cursor_for(shared)
        while cursor.at < shared:
            await self.in_thread(partial(above.advance, cursor, shared))
        branch = await self.in_thread(lambda: above.fork_at(cursor))
        branch.extend(own)
        return branch

    def _unload(self) -> None:
        """Let go of the longest idle ones while there are too many or they weigh too much."""
        idle = [session_id for session_id, slot in self._loaded.items() if not slot.users]
        weight = sum(slot.weight for slot in self._loaded.values())
        for session_id in idle:
            if len(self._loaded) <= self.settings.sessions_loaded and weight <= self.settings.memory:
                return
            weight -= self._loaded.pop(session_id).weight

    async def seek(self, session: Session, at: int) -> Cursor:
        """The engine at the moment `at`, or as near before it as the time for a replay allows. The lock is held.

        The first time all of the branch is replayed: what comes later is shown too, in the marks of the time line.
        """
        branch, spent = session.branch, 0.0
        while branch.head.at < branch.end and spent < self.settings.replay_seconds:
            spent += await self.in_thread(partial(branch.advance, branch.head, branch.end))
        at = min(at, branch.end)  # a link may end earlier than it said
        cursor = branch.at_hand(at)
        if cursor is None:
            cursor = await self.in_thread(lambda: branch.cursor_for(at))
        while cursor.at < at and spent < self.settings.replay_seconds:
            spent += await self.in_thread(partial(branch.advance, cursor, at))
        return cursor

    # ---- acting

    @asynccontextmanager
    async def acting_on(
        self, place: Source | str, secret: str | None, branch: str | None = MAIN
    ) -> AsyncIterator[Session]:
        """A session to act on, with a branch chosen; of what is no session a copy, stored by its first appended action.

        Raises:
            UnknownSessionError: there is none of this id.
            NotOwnerError: the secret is missing or wrong.
        """
        async with self.opened(place, branch) as session:
            if session.id:
                if not owns(session, secret):
                    raise NotOwnerError("Only the owner can act; you can look.")
                yield session
                return
            await self.seek(session, session.branch.end)
            copy = await self.in_thread(session.branch.fork)
            copy.extend(session.branch.actions[copy.end :])
            own = Session("", session.title, b"", copy, origin=session.origin)
        async with own.lock:  # once it is stored, a run may go on in it while this answer is written
            yield own

    async def act(self, session: Session, branch: str, at: int, action: Action, *, instead: bool = False) -> Acted:
        """Move on, append or branch, as the rules say.

        Raises:
            ServiceError: it can't be done here, or by this one, or not stored.
            InputError: the action is wrong, or impossible now; nothing has changed.
        """
        session.check_place(branch, at)
        if acting.moves(session.branch, at, action, instead=instead):
            return Acted(session, at + 1)
        left = branch if at < session.branch.end else None
        if left:
            if other := await self.same_from(session, at, action):
                await self.choose(session, other)
                return Acted(session, at + 1, left=left)
            await self.leave(session, at)
        try:
            await self.at_end(session)
            connector = await self._append(session, action)
        except (InputError, ServiceError):
            if left:
                session.drop(left)
            raise
        secret = await self.keep(session, at)
        return Acted(session, session.branch.end, secret, left=left, connector=connector)

    async def _append(self, session: Session, action: Action) -> str:
        """Execute one more action of the chosen branch; returns what a connector that it brought has changed."""
        grown, connector = session.branch, ""
        await self.in_thread(partial(acting.check, grown, action, self.settings.limits))
        if acting.needs_connector(grown, action):
            grown, connector = await self.with_connector(grown)
        await self.in_thread(partial(grown.append, action))
        session.replace(grown)
        return connector

    async def with_connector(self, branch: Branch) -> tuple[Branch, str]:
        """The same actions with a connector from the start, as any later load finds them; and what that changed."""
        twin = await self.connected(branch.config, branch.actions)
        states = [await self.in_thread(partial(current_state, one.head.simulation)) for one in (branch, twin)]
        return twin, "same" if states[0] == states[1] else "changed"

    async def connected(self, config: EngineConfig, actions: Sequence[Action]) -> Branch:
        """These actions, replayed with a connector though none of them asks for it.

        Raises:
            BadValueError: one of them is impossible then.
            TooLongError: it takes longer than one request may.
        """
        branch = Branch(config, actions, has_connector=True)
        try:
            await self._replay(branch)
        except InputError as error:
            message = f"With a connector what was done before can't be replayed: {error}."
            raise BadValueError(message, "external.tokens") from None
        return branch

    async def _replay(self, branch: Branch) -> None:
        spent = 0.0
        while branch.head.at < branch.end:
            if spent > self.settings.replay_seconds:
                message = "Replaying these actions takes longer than one request may."
                raise TooLongError(message, "actions", "fewer or smaller actions")
            spent += await self.in_thread(lambda: branch.advance(branch.head, branch.end))

    async def start(self, title: str, config: EngineConfig, actions: Sequence[Action] = ()) -> Acted:
        """A new session with these actions; whoever asks owns it.

        Raises:
            InputError: one of the actions can't run on this config; nothing is stored.
            TooLongError: it takes longer than one request may.
            UnavailableError: it can't be stored.
        """
        limits = self.settings.limits
        limits.check_config(config)
        await self.in_thread(lambda: acting.check_all(config, actions, limits))
        branch = await self.in_thread(lambda: Branch(config, has_connector=carries_external(actions)))
        await self.append_all(branch, actions)
        session = Session("", title, b"", branch)
        return Acted(session, branch.end, await self.keep(session, 0))

    async def append_all(self, branch: Branch, actions: Sequence[Action]) -> None:
        """Execute actions behind the end of a branch, in slices, each checked once more when its turn comes.

        Raises:
            InputError: one of them is impossible; those before it were appended.
            TooLongError: it takes longer than one request may.
        """
        left, spent = deque(actions), 0.0

        def some() -> float:
            start = time.thread_time()
            while left and time.thread_time() - start < SLICE_SECONDS:
                acting.check_alone(left[0], branch.head.simulation, self.settings.limits)
                branch.append(left.popleft())
            return time.thread_time() - start

        while left:
            if spent > self.settings.replay_seconds:
                raise TooLongError(
                    "These actions take longer than one request may.", "actions", "fewer or smaller ones"
                )
            spent += await self.in_thread(some)

    async def same_from(self, session: Session, at: int, action: Action) -> str | None:
        """A branch that left the chosen one at `at` with this very action: a second click meant that one."""
        if not session.id:
            return None
        others = await self.in_thread(lambda: self.store.first_actions(session.id, session.chosen, at))
        return next((name for name, text in others if parse_action(loads(text)) == action), None)

    async def leave(self, session: Session, at: int) -> None:
        """Make a branch that leaves the chosen one at `at`, and choose it; it is stored with its first action."""
        cursor = await self.seek(session, at)
        check_arrived(cursor, at)
        parent = session.node
        branch = await self.in_thread(lambda: session.branch.fork_at(cursor))
        self.add_node(session, Node("", "", parent.config, parent.id, at, branch=branch))

    def add_node(self, session: Session, node: Node) -> None:
        """Give a new branch an id and a name, and choose it.

        Raises:
            BadValueError: there are too many.
        """
        if len(session.living) >= MOST_BRANCHES:
            message = f"This session has {MOST_BRANCHES} branches, and Poolscope takes no more."
            raise BadValueError(message, "branch", "to delete one that is not needed")
        assert node.branch is not None
        node.id = node.name = session.free_id()
        node.has_connector, node.is_stored = node.branch.has_connector, False
        session.nodes[node.id] = node
        session.nodes_used[node.id] = None
        session.choose(node.id)

    async def at_end(self, session: Session) -> None:
        """Have the whole chosen branch replayed.

        Raises:
            UnavailableError: it takes longer than one request may.
        """
        check_arrived(await self.seek(session, session.branch.end), session.branch.end)

    async def keep(self, session: Session, first: int) -> str | None:
        """Store what was appended to the chosen branch from `first` on, or all of a new branch.

        A new session is stored whole, and gets a secret.

        Raises:
            UnavailableError: it can't be stored; the session will be loaded again as it was.
        """
        node, branch = session.node, session.branch
        secret = None
        try:
            if not session.id:
                secret = await self._create(session)
            if not node.is_stored:
                row = branch_row(node)
                number, own = list(session.nodes).index(node.id), texts_of(branch.actions[node.left_at :])
                await self.in_thread(lambda: self.store.add_branch(session.id, number, row, own))
                node.is_stored = True
            elif secret is None:
                texts = texts_of(branch.actions[first:])
                await self.in_thread(lambda: self.store.append(session.id, node.id, first, texts))
        except (StoreError, StaleError) as error:
            self.forget(session)
            raise UnavailableError(
                "The action could not be stored; nothing has changed.", "", "to try again"
            ) from error
        return secret

    async def _create(self, session: Session) -> str:
        """Store a new session with its branch main."""
        main = session.nodes[MAIN]
        assert main.branch is not None
        session_id, secret, sha256 = new_identity()
        actions = texts_of(main.branch.actions)
        stored = StoredSession(session_id, sha256, session.title, json.dumps(main.config.to_json()), tuple(actions))
        await self.in_thread(lambda: self.store.create(stored, MAIN))
        session.id, session.secret_sha256, session.origin = session_id, sha256, None
        self._loaded[session_id] = _Loaded(session, 0, session.weight)
        self._unload()
        return secret

    async def delete(self, session: Session) -> None:
        """Delete a stored session for good. The lock is held.

        Raises:
            UnavailableError: it can't be deleted now; nothing has changed.
        """
        try:
            await self.in_thread(lambda: self.store.remove(session.id))
        except StoreError as error:
            raise UnavailableError("The session could not be deleted.", "", "to try again") from error
        self.forget(session)

    def forget(self, session: Session) -> None:
        """What is in memory is ahead of what is stored: load it again next time."""
        session.branch, session.nodes, session.nodes_used = _nothing(), {}, {}
        if slot := self._loaded.get(session.id):
            slot.weight = 0


def check_arrived(cursor: Cursor, at: int) -> None:
    """Refuse to go on from a moment that a replay was too slow to reach; the next request finds it further on.

    Raises:
        UnavailableError: it is still before `at`.
    """
    if cursor.at < at:
        raise UnavailableError("This session is still being replayed.", "", "to try again")


def _nothing() -> Branch:
    """A branch to be replaced when the session is loaded."""
    return Branch(EngineConfig(1, max_num_batched_tokens=128))
