"""The SQLite file: configs and actions of all sessions, and short links. All else is derived: a restart costs a replay.

A branch keeps only the actions behind the place where it left its parent; the others are its parent's. A parent that is
deleted while branches hang at it keeps its actions, and is gone with the last of them.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "poolscope.sqlite3"

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    secret_sha256 BLOB NOT NULL,
    title TEXT NOT NULL,
    config TEXT NOT NULL,
    created INTEGER NOT NULL,
    used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS actions (
    session TEXT NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    k INTEGER NOT NULL,
    action TEXT NOT NULL,
    PRIMARY KEY (session, branch, k)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS branches (
    session TEXT NOT NULL REFERENCES sessions (id),
    branch TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    config TEXT,
    parent TEXT,
    left_at INTEGER NOT NULL,
    connector INTEGER,
    deleted INTEGER NOT NULL,
    PRIMARY KEY (session, branch)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS links (
    key TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL UNIQUE,
    code TEXT NOT NULL,
    created INTEGER NOT NULL
);
"""

VERSION = 1
"""Of the tables, in `user_version`. 0 had no branches: every session was its branch main."""

FROM_0 = "INSERT OR IGNORE INTO branches SELECT id, 'main', 0, 'main', NULL, NULL, 0, NULL, 0 FROM sessions"


INSERT_BRANCH = "INSERT INTO branches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
BRANCHES = """
SELECT branch, name, parent, left_at, config, connector, deleted,
    (SELECT count(*) FROM actions WHERE actions.session = branches.session AND actions.branch = branches.branch)
FROM branches WHERE session = ? ORDER BY number
"""
FIRST_ACTIONS = """
SELECT branches.branch, action FROM branches JOIN actions
    ON actions.session = branches.session AND actions.branch = branches.branch AND k = left_at
WHERE branches.session = ? AND parent = ? AND left_at = ? AND config IS NULL AND NOT deleted ORDER BY number
"""
COPY_SESSION = "INSERT INTO sessions SELECT ?, ?, title, config, ?, ? FROM sessions WHERE id = ?"
COPY_BRANCHES = """
INSERT INTO branches SELECT ?, branch, number, name, config, parent, left_at, connector, deleted
FROM branches WHERE session = ?
"""
COPY_ACTIONS = "INSERT INTO actions SELECT ?, branch, k, action FROM actions WHERE session = ?"

Statement = tuple[str, list[tuple[object, ...]]]
"""SQL, and the rows that it is executed with."""


class StoreError(Exception):
    """The database can't be opened or written."""


class StaleError(Exception):
    """Somebody else appended to the same branch first."""


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch as it lies in the file, without its actions."""

    id: str
    name: str
    parent: str | None = None
    left_at: int = 0
    config: str | None = None
    """JSON text, where it isn't the session's."""
    connector: bool | None = None
    """Whether it has inherited a connector; where it hasn't, as its actions say."""
    deleted: bool = False
    """It is kept for the branches that left it."""
    num_own: int = 0
    """How many actions there are behind `left_at`."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it lies in the file; `config` and the actions are JSON text. `actions`: of one branch, its own."""

    id: str
    secret_sha256: bytes
    title: str
    config: str
    actions: tuple[str, ...]
    branches: tuple[StoredBranch, ...] = ()
    """In the order in which they were made."""


class Store:
    """One connection, used by one thread at a time. Times are Unix seconds."""

    def __init__(self, directory: Path) -> None:
        """Open the file in `directory`, or make both.

        Raises:
            StoreError: it can't be done.
        """
        self._lock = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(directory / FILE, timeout=5, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.executescript(SCHEMA)
            self._migrate()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot keep sessions in {directory}: {error}") from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _migrate(self) -> None:
        """Bring the tables of an older Poolscope to what they are now."""
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version < VERSION:
            self._db.executescript(f"BEGIN IMMEDIATE; {FROM_0}; PRAGMA user_version = {VERSION}; COMMIT;")

    def load(self, session: str, branch: str) -> StoredSession | None:
        """A session with the actions of one branch; None if there is none of this id."""
        with self._lock:
            row = self._db.execute(
                "SELECT id, secret_sha256, title, config FROM sessions WHERE id = ?", (session,)
            ).fetchone()
            if row is None:
                return None
            rows = self._db.execute(BRANCHES, (session,)).fetchall()
        branches = tuple(
            StoredBranch(
                row[0], row[1], row[2], row[3], row[4], None if row[5] is None else bool(row[5]), bool(row[6]), row[7]
            )
            for row in rows
        )
        name, secret_sha256, title, config = row
        return StoredSession(name, secret_sha256, title, config, self.actions(session, branch), branches)

    def actions(self, session: str, branch: str) -> tuple[str, ...]:
        """The actions of a branch behind the place where it left its parent."""
        order = "SELECT action FROM actions WHERE session = ? AND branch = ? ORDER BY k"
        with self._lock:
            return tuple(text for (text,) in self._db.execute(order, (session, branch)))

    def first_actions(self, session: str, parent: str, left_at: int) -> list[tuple[str, str]]:
        """The branches that left `parent` there, each with the first action of its own."""
        with self._lock:
            return self._db.execute(FIRST_ACTIONS, (session, parent, left_at)).fetchall()

    def create(self, stored: StoredSession, branch: str) -> None:
        """Keep a new session with the actions of its first branch.

        Raises:
            StoreError: it can't be written.
        """
        now = int(time.time())
        head = (stored.id, stored.secret_sha256, stored.title, stored.config, now, now)
        branches = stored.branches or (StoredBranch(branch, branch),)
        rows = [_row(stored.id, number, one) for number, one in enumerate(branches)]
        self._write(
            [
                ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", [head]),
                (INSERT_BRANCH, rows),
                _insert(stored.id, branch, 0, stored.actions),
            ]
        )

    def add_branch(self, session: str, number: int, branch: StoredBranch, actions: Sequence[str]) -> None:
        """Keep a new branch, the `number`th, with its own actions.

        Raises:
            StaleError: there is one of this id.
            StoreError: it can't be written.
        """
        own = _insert(session, branch.id, branch.left_at, actions)
        self._write([(INSERT_BRANCH, [_row(session, number, branch)]), own, self._used(session)])

    def rename(self, session: str, branch: str, name: str) -> None:
        """Give a branch another name.

        Raises:
            StoreError: it can't be written.
        """
        rename: Statement = ("UPDATE branches SET name = ? WHERE session = ? AND branch = ?", [(name, session, branch)])
        self._write([rename, self._used(session)])

    def delete(self, session: str, hidden: Sequence[str], gone: Sequence[str]) -> None:
        """Delete branches: of those `gone` nothing is left but their ids, those `hidden` keep their actions.

        Raises:
            StoreError: it can't be written.
        """
        hide = "UPDATE branches SET deleted = 1 WHERE session = ? AND branch = ?"
        drop = "DELETE FROM actions WHERE session = ? AND branch = ?"
        self._write(
            [
                (hide, [(session, branch) for branch in (*hidden, *gone)]),
                (drop, [(session, branch) for branch in gone]),
                self._used(session),
            ]
        )

    def remove(self, session: str) -> None:
        """Delete a session with everything that belongs to it.

        Raises:
            StoreError: it can't be written.
        """
        tables = ("actions WHERE session", "branches WHERE session", "sessions WHERE id")
        self._write([(f"DELETE FROM {table} = ?", [(session,)]) for table in tables])

    def copy(self, session: str, new: str, secret_sha256: bytes) -> None:
        """Keep a copy of a session, with all its branches, under a new id and secret.

        Raises:
            StoreError: it can't be written.
        """
        now = int(time.time())
        self._write(
            [
                (COPY_SESSION, [(new, secret_sha256, now, now, session)]),
                (COPY_BRANCHES, [(new, session)]),
                (COPY_ACTIONS, [(new, session)]),
            ]
        )

    def append(self, session: str, branch: str, first: int, actions: Sequence[str]) -> None:
        """Keep actions number `first`, `first` + 1, .. of a branch.

        Raises:
            StaleError: one of them is there already.
            StoreError: they can't be written.
        """
        self._write([_insert(session, branch, first, actions), self._used(session)])

    def link(self, key: str) -> str | None:
        """The permalink's code that a short link stands for; None if there is no such link."""
        with self._lock:
            row = self._db.execute("SELECT code FROM links WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def key_of(self, sha256: bytes) -> str | None:
        """The key of the short link to the code with this hash."""
        with self._lock:
            row = self._db.execute("SELECT key FROM links WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else str(row[0])

    def add_link(self, key: str, sha256: bytes, code: str) -> None:
        """Keep a short link.

        Raises:
            StaleError: there is one of this key, or to this code.
            StoreError: it can't be written.
        """
        self._write([("INSERT INTO links VALUES (?, ?, ?, ?)", [(key, sha256, code, int(time.time()))])])

    def count_links(self) -> int:
        """How many short links there are."""
        with self._lock:
            (links,) = self._db.execute("SELECT count(*) FROM links").fetchone()
        return int(links)

    def count(self) -> tuple[int, int]:
        """How many sessions and how many actions there are."""
        with self._lock:
            (sessions,) = self._db.execute("SELECT count(*) FROM sessions").fetchone()
            (actions,) = self._db.execute("SELECT count(*) FROM actions").fetchone()
        return sessions, actions

    def _used(self, session: str) -> Statement:
        return "UPDATE sessions SET used = ? WHERE id = ?", [(int(time.time()), session)]

    def _write(self, statements: list[Statement]) -> None:
        """All statements, or none."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                for statement, rows in statements:
                    self._db.executemany(statement, rows)
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.IntegrityError):
                    raise StaleError from None
                raise StoreError(str(error)) from None


def _insert(session: str, branch: str, first: int, actions: Sequence[str]) -> Statement:
    rows: list[tuple[object, ...]] = [(session, branch, k, action) for k, action in enumerate(actions, first)]
    return "INSERT INTO actions VALUES (?, ?, ?, ?)", rows


def _row(session: str, number: int, branch: StoredBranch) -> tuple[object, ...]:
    config, connector = branch.config, branch.connector
    place = (branch.parent, branch.left_at)
    return session, branch.id, number, branch.name, config, *place, connector, branch.deleted
