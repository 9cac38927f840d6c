"""What is done to branches as a whole: names, deletion, another config, a copy of a session for somebody else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.services.errors import BadValueError, TooLongError, UnavailableError
from app.services.replaying import append_all
from app.services.session import MOST_BRANCHES, Branch, Node, Session
from app.services.sessions import Sessions, check_arrived
from app.services.stored import new_identity
from app.services.storing import keep
from app.services.visible import is_visible
from app.store import StoreError
from engine.config import EngineConfig
from engine.errors import InputError

MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Replayed:
    """A branch under another config: how far its actions could be replayed, and why no further."""

    branch: str
    at: int
    wanted: int
    problem: str
    secret: str | None = None


class Branching:
    """Works on a session whose lock is held by its owner."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def rename(self, session: Session, branch: str, name: str) -> None:
        """Give a branch another name.

        Raises:
            BadValueError: an empty or long one, or one that another branch has, or has as its id.
        """
        node, name = session.find(branch), " ".join(name.split())
        if not 0 < len(name) <= MAX_NAME or not name.isprintable() or not is_visible(name):
            raise BadValueError("This is no name for a branch.", "name", f"1 to {MAX_NAME} printable characters")
        if not session.may_be_called(node, name):
            raise BadValueError("Another branch has, or had, this name.", "name", "a name of its own")
        await self._write(lambda: self._sessions.store.rename(session.id, branch, name))
        node.name = name

    async def delete(self, session: Session, branch: str) -> str:
        """Delete a branch; those that left it keep their actions. Returns the branch to look at next.

        Raises:
            BadValueError: it is the last one.
        """
        node = session.find(branch)
        if len(session.living) == 1:
            raise BadValueError("This is the only branch.", "branch", "to delete one of several")
        node.deleted = True
        needed = _needed(session)
        gone = [one.id for one in session.nodes.values() if one.deleted and one.id not in needed]
        try:
            await self._write(lambda: self._sessions.store.delete(session.id, [branch], gone))
        except UnavailableError:
            node.deleted = False
            raise
        for name in gone:
            session.nodes[name].branch = None
        parent = session.nodes.get(node.parent or "")
        while parent is not None and parent.deleted:
            parent = session.nodes.get(parent.parent or "")
        return parent.id if parent is not None else session.living[0].id

    async def with_config(self, session: Session, config: EngineConfig, name: str) -> Replayed:
        """Make a branch from 0 with the chosen one's actions under another config, and choose it.

        It ends before the first action that is impossible there, or where replaying takes too long.

        Raises:
            InputError: the config is impossible.
            ServiceError: it can't be stored.
        """
        config.check()
        self._sessions.settings.limits.check_config(config)
        left, parent = session.branch, session.node
        await self._sessions.at_end(session)
        branch, problem = Branch(config, has_connector=left.has_connector), ""
        try:
            await append_all(self._sessions, branch, left.actions, self._sessions.in_thread)
        except TooLongError:
            problem = "Replaying took as long as one request may."
        except InputError as error:
            problem = _impossible(branch.end, error)
        node = Node("", "", config, parent.id, 0, has_own_config=True, branch=branch)
        add_node(session, node)
        if name and session.may_be_called(node, name):
            node.name = name
        secret = await keep(self._sessions, session, 0)
        return Replayed(node.id, branch.end, left.end, problem, secret)

    async def copy(self, session: Session) -> tuple[str, str]:
        """Make a copy of a stored session for somebody else: its id and his secret."""
        session_id, secret, sha256 = new_identity()
        await self._write(lambda: self._sessions.store.copy(session.id, session_id, sha256))
        return session_id, secret

    async def _write(self, work: Callable[[], None]) -> None:
        try:
            await self._sessions.in_thread(work)
        except StoreError as error:
            raise UnavailableError("This could not be stored; nothing has changed.", "", "to try again") from error


def _needed(session: Session) -> set[str]:
    """Branches whose actions somebody needs: the living ones, and those that they left behind their start."""
    needed: set[str] = set()
    for node in session.living:
        at: Node | None = node
        while at is not None and at.id not in needed:
            needed.add(at.id)
            at = session.nodes[at.parent] if at.parent and at.left_at else None
    return needed


def _impossible(index: int, error: InputError) -> str:
    """What is wrong with the action at which a replay under another config ends."""
    message = error.message if error.message.endswith(".") else f"{error.message}."
    return f"Action {index + 1} is impossible here: {message[0].lower()}{message[1:]}"


async def leave(sessions: Sessions, session: Session, at: int) -> None:
    """Make a branch that leaves the chosen one at `at`, and choose it; it is stored with its first action."""
    cursor = await sessions.seek(session, at)
    check_arrived(cursor, at)
    parent = session.node
    branch = await sessions.in_thread(lambda: session.branch.fork_at(cursor))
    add_node(session, Node("", "", parent.config, parent.id, at, branch=branch))


def add_node(session: Session, node: Node) -> None:
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
