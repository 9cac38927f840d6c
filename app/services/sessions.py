"""All sessions: loaded from the store when asked for, the longest idle unloaded when there are too many."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

from app.services.cursor import Cursor
from app.services.errors import NotOwnerError, UnavailableError, UnknownSessionError
from app.services.session import MAIN, MOST_LOADED, Branch, Node, Session, carries_external
from app.services.sources import SESSION, Source, origin_of
from app.services.stored import nodes_of, owns, parse_actions
from app.services.threads import Threads
from app.services.turns import Turns
from app.settings import Settings
from app.store import Store
from engine.actions import Action
from engine.config import EngineConfig

LINK_SLICE_SECONDS: Final = 0.02
LIGHT_SECONDS: Final = 0.2
LINKS_AT_ONCE: Final = 2
"""Links whose replay takes longer than `LIGHT_SECONDS`: how much memory one needs isn't known before it is through."""
LINKS_WAITING: Final = 30


@dataclass(slots=True)
class _Loaded:
    """A session in memory, how many use it now, and its weight when it was last used."""

    session: Session
    users: int = 0
    weight: int = 0


@dataclass(slots=True)
class _Effort:
    """What one request does to replay: it ends with `turn`, in which a long one has its turn."""

    turn: AsyncExitStack
    has_turn: bool = False
    spent: float = 0.0
    """Seconds of CPU."""


class Sessions:
    """Everything that touches a session's branch runs in a few threads, in slices, and under the session's lock."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.threads = Threads()
        self.in_thread = self.threads.run
        self.links = Turns(LINKS_AT_ONCE, LINKS_WAITING, "Too many long links are being opened.")
        self._loaded: OrderedDict[str, _Loaded] = OrderedDict()

    def close(self) -> None:
        """Let the threads end."""
        self.threads.close()

    @property
    def num_loaded(self) -> int:
        """Sessions in memory."""
        return len(self._loaded)

    @asynccontextmanager
    async def opened(self, place: Source | str, branch: str | None = MAIN) -> AsyncIterator[Session]:
        """A session by its id, or what another source holds, locked, with a branch chosen (None: the last one).

        Raises:
            ServiceError: there is none of this name, or it has no such branch.
            InputError: a permalink that can't be read.
        """
        source = Source(SESSION, place) if isinstance(place, str) else place
        key, is_stored = source.key, source.is_stored
        slot = self._loaded.setdefault(key, _Loaded(Session(source.name if is_stored else "", "", b"", _nothing())))
        self._loaded.move_to_end(key)
        slot.users += 1
        session = slot.session
        try:
            async with session.lock:
                with self.threads.ahead() if is_stored else nullcontext():
                    if not slot.weight:
                        await (self._load(session) if is_stored else self._read_origin(session, source))
                    slot.weight = slot.weight or 1
                    if branch is not None:
                        await self.choose(session, session.meant(branch))
                    yield session
                    if slot.weight:
                        slot.weight = session.weight
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
        origin = await self.threads.behind(lambda: origin_of(source, limits, self.store.link))
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

        Raises:
            FullError: it is a long link, and too many others wait.
        """
        branch = session.branch
        async with AsyncExitStack() as turn:
            effort = _Effort(turn)
            await self._advance(session, branch.head, branch.end, effort)
            at = min(at, branch.end)  # a link may end earlier than it said
            cursor = branch.at_hand(at)
            if cursor is None:
                cursor = await self.in_thread(lambda: branch.cursor_for(at))
            await self._advance(session, cursor, at, effort)
        return cursor

    async def _advance(self, session: Session, cursor: Cursor, at: int, effort: _Effort) -> None:
        """Replay up to the moment `at` in slices, while there is time.

        A link's slices go behind the sessions, and what takes long waits for its turn.
        """
        branch = session.branch
        while cursor.at < min(at, branch.end) and effort.spent < self.settings.replay_seconds:
            if session.id:
                effort.spent += await self.in_thread(partial(branch.advance, cursor, at))
                continue
            if effort.spent >= LIGHT_SECONDS and not effort.has_turn:
                await effort.turn.enter_async_context(self.links.turn())
                effort.has_turn = True
            effort.spent += await self.threads.behind(partial(branch.advance, cursor, at, LINK_SLICE_SECONDS))

    async def at_end(self, session: Session) -> None:
        """Have the whole chosen branch replayed.

        Raises:
            UnavailableError: it takes longer than one request may.
        """
        check_arrived(await self.seek(session, session.branch.end), session.branch.end)

    def admit(self, session: Session) -> None:
        """Keep a session in memory that has just been stored."""
        self._loaded[session.id] = _Loaded(session, 0, session.weight)
        self._unload()

    def forget(self, session: Session) -> None:
        """What is in memory is ahead of what is stored: load it again next time."""
        session.branch, session.nodes, session.nodes_used = _nothing(), {}, {}
        if slot := self._loaded.get(session.id):
            slot.weight = 0

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
