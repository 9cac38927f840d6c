"""All sessions: loaded from the store when asked for, the longest idle unloaded when there are too many."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from app.services import acting
from app.services.acting import RunEnd
from app.services.cursor import Cursor
from app.services.errors import BadValueError, NotOwnerError, UnavailableError, UnknownSessionError
from app.services.session import MAIN, SLICE_SECONDS, Branch, Session
from app.settings import Settings
from app.store import StaleError, Store, StoredSession, StoreError
from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import InputError
from engine.record import current_state
from engine.scenario import Scenario, loads, parse_action

T = TypeVar("T")
WORKERS: Final = 4
ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(slots=True)
class _Loaded:
    """A session in memory, how many use it now, and its weight when it was last used."""

    session: Session | None = None
    users: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of acting: the session, the moment to look at, and the secret if the session is new."""

    session: Session
    at: int
    secret: str | None = None
    run: RunEnd | None = None
    connector: str = ""
    """ "same" or "changed" where everything was replayed with a connector: what the present looks like then."""


class Sessions:
    """Everything that touches a session's branch runs in a few threads, in slices, and under the session's lock."""

    def __init__(self, settings: Settings, store: Store, builtin: Scenario) -> None:
        self._settings = settings
        self._store = store
        branch = Branch(builtin.config, builtin.actions)
        branch.advance(branch.head, branch.end, settings.replay_seconds)
        self.builtin = Session("", builtin.title, b"", branch)
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
    async def opened(self, session_id: str) -> AsyncIterator[Session]:
        """A session with its lock held; "" is the built-in one.

        Raises:
            UnknownSessionError: there is none of this id.
        """
        if not session_id:
            async with self.builtin.lock:
                yield self.builtin
            return
        slot = self._loaded.setdefault(session_id, _Loaded(Session(session_id, "", b"", _nothing())))
        self._loaded.move_to_end(session_id)
        slot.users += 1
        try:
            assert slot.session is not None
            async with slot.session.lock:
                if not slot.weight:
                    await self._load(slot.session)
                yield slot.session
                slot.weight = slot.session.branch.weight
        finally:
            slot.users -= 1
            if not slot.weight and not slot.users:
                self._loaded.pop(session_id, None)
            self._unload()

    async def _load(self, session: Session) -> None:
        stored = await self.in_thread(lambda: self._store.load(session.id, MAIN))
        if stored is None:
            raise UnknownSessionError("There is no session of this name.", "session")
        session.branch = await self.in_thread(lambda: _read(stored))
        session.title, session.secret_sha256 = stored.title, stored.secret_sha256

    def _unload(self) -> None:
        """Let go of the longest idle ones while there are too many or they weigh too much."""
        idle = [session_id for session_id, slot in self._loaded.items() if not slot.users]
        weight = sum(slot.weight for slot in self._loaded.values())
        for session_id in idle:
            if len(self._loaded) <= self._settings.sessions_loaded and weight <= self._settings.memory:
                return
            weight -= self._loaded.pop(session_id).weight

    async def seek(self, session: Session, at: int) -> Cursor:
        """The engine at the moment `at`, or as near before it as the time for a replay allows. The lock is held.

        The first time all of the branch is replayed: what comes later is shown too, in the marks of the time line.
        """
        branch, spent = session.branch, 0.0
        while branch.head.at < branch.end and spent < self._settings.replay_seconds:
            spent += await self.in_thread(partial(branch.advance, branch.head, branch.end))
        cursor = branch.at_hand(at)
        if cursor is None:
            cursor = await self.in_thread(lambda: branch.cursor_for(at))
        while cursor.at < at and spent < self._settings.replay_seconds:
            spent += await self.in_thread(partial(branch.advance, cursor, at))
        return cursor

    # ---- acting

    @asynccontextmanager
    async def acting_on(self, session_id: str, secret: str | None) -> AsyncIterator[Session]:
        """A session to act on; from the built-in one a copy, which is stored by its first appended action.

        Raises:
            UnknownSessionError: there is none of this id.
            NotOwnerError: the secret is missing or wrong.
        """
        async with self.opened(session_id) as session:
            if session_id:
                given = hashlib.sha256((secret or "").encode()).digest()
                if not hmac.compare_digest(given, session.secret_sha256):
                    raise NotOwnerError("Only the owner can act; you can look.")
                yield session
                return
            copy = await self.in_thread(session.branch.fork)
        yield Session("", self.builtin.title, b"", copy)

    async def act(self, session: Session, branch: str, at: int, action: Action) -> Acted:
        """Move on or append, as the rules say.

        Raises:
            ServiceError: it can't be done here, or by this one, or not stored.
            InputError: the action is wrong, or impossible now; nothing has changed.
        """
        session.check_place(branch, at)
        if acting.moves(session.branch, at, action):
            return Acted(session, at + 1)
        await self._at_end(session)
        grown, connector = session.branch, ""
        await self.in_thread(partial(acting.check, grown, action, self._settings.limits))
        if acting.needs_connector(grown, action):
            grown, connector = await self._with_connector(grown)
        await self.in_thread(partial(grown.append, action))
        session.branch = grown
        secret = await self._keep(session, at)
        return Acted(session, grown.end, secret, connector=connector)

    async def _with_connector(self, branch: Branch) -> tuple[Branch, str]:
        """The same actions with a connector from the start, as any later load finds them; and what that changed."""
        twin = Branch(branch.config, branch.actions, has_connector=True)
        try:
            await self._replay(twin)
        except InputError as error:
            message = f"With a connector what was done before can't be replayed: {error}."
            raise BadValueError(message, "external.tokens") from None
        states = [await self.in_thread(partial(current_state, one.head.simulation)) for one in (branch, twin)]
        return twin, "same" if states[0] == states[1] else "changed"

    async def _replay(self, branch: Branch) -> None:
        spent = 0.0
        while branch.head.at < branch.end:
            if spent > self._settings.replay_seconds:
                raise UnavailableError("Replaying these actions takes longer than one request may.", "actions")
            spent += await self.in_thread(lambda: branch.advance(branch.head, branch.end))

    async def start(self, title: str, config: EngineConfig, actions: Sequence[Action] = ()) -> Acted:
        """A new session with these actions; whoever asks owns it.

        Raises:
            InputError: one of the actions can't run on this config; nothing is stored.
            UnavailableError: it takes too long, or it can't be stored.
        """
        limits = self._settings.limits
        limits.check_config(config)
        await self.in_thread(lambda: acting.check_all(config, actions, limits))
        branch = await self.in_thread(lambda: Branch(config, actions))
        await self._replay(branch)
        session = Session("", title, b"", branch)
        return Acted(session, branch.end, await self._keep(session, 0))

    async def run(self, session: Session, branch: str, at: int) -> Acted:
        """Go to the end, then append steps until a run ends.

        Raises:
            ServiceError: as `act`.
        """
        session.check_place(branch, at)
        await self._at_end(session)
        first, spent = session.branch.end, 0.0
        end = RunEnd("", 0)
        most = first + self._settings.steps_a_call
        while not end.why and spent < self._settings.replay_seconds:
            end = await self.in_thread(lambda: acting.run_slice(session.branch, self._settings.limits, most))
            spent += SLICE_SECONDS
        steps = session.branch.end - first
        secret = await self._keep(session, first) if steps else None
        return Acted(session, session.branch.end, secret, RunEnd(end.why or "time", steps))

    async def _at_end(self, session: Session) -> None:
        cursor = await self.seek(session, session.branch.end)
        if cursor.at < session.branch.end:
            raise UnavailableError("This session is still being replayed.", "", "to try again")

    async def _keep(self, session: Session, first: int) -> str | None:
        """Store what was appended from `first` on; a new session is stored whole, and gets a secret."""
        actions = [json.dumps(action.to_json()) for action in session.branch.actions[first if session.id else 0 :]]
        try:
            if session.id:
                await self.in_thread(lambda: self._store.append(session.id, MAIN, first, actions))
                return None
            return await self._create(session, actions)
        except (StoreError, StaleError) as error:
            self._forget(session)
            raise UnavailableError(
                "The action could not be stored; nothing has changed.", "", "to try again"
            ) from error

    async def _create(self, session: Session, actions: list[str]) -> str:
        secret = secrets.token_urlsafe(32)
        session_id = "".join(secrets.choice(ALPHABET) for _ in range(12))
        sha256 = hashlib.sha256(secret.encode()).digest()
        config = json.dumps(session.branch.config.to_json())
        stored = StoredSession(session_id, sha256, session.title, config, tuple(actions))
        await self.in_thread(lambda: self._store.create(stored, MAIN))
        session.id, session.secret_sha256 = session_id, sha256
        self._loaded[session_id] = _Loaded(session, 0, session.branch.weight)
        self._unload()
        return secret

    def _forget(self, session: Session) -> None:
        """What is in memory is ahead of what is stored: load it again next time."""
        session.branch = _nothing()
        if slot := self._loaded.get(session.id):
            slot.weight = 0


def _nothing() -> Branch:
    """A branch to be replaced when the session is loaded."""
    return Branch(EngineConfig(1, max_num_batched_tokens=128))


def _read(stored: StoredSession) -> Branch:
    config = EngineConfig.from_json(loads(stored.config))
    return Branch(config, [parse_action(loads(text), f"actions[{k}]") for k, text in enumerate(stored.actions)])
