"""The SQLite file: configs and actions of every session. All else is derived, so a restart costs a replay."""

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
"""


Statement = tuple[str, list[tuple[object, ...]]]
"""SQL, and the rows that it is executed with."""


class StoreError(Exception):
    """The database can't be opened or written."""


class StaleError(Exception):
    """Somebody else appended to the same branch first."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it lies in the file; `config` and the actions are JSON text."""

    id: str
    secret_sha256: bytes
    title: str
    config: str
    actions: tuple[str, ...]


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
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"cannot keep sessions in {directory}: {error}") from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def load(self, session: str, branch: str) -> StoredSession | None:
        """A session with the actions of one branch; None if there is none of this id."""
        with self._lock:
            row = self._db.execute(
                "SELECT id, secret_sha256, title, config FROM sessions WHERE id = ?", (session,)
            ).fetchone()
            if row is None:
                return None
            order = "SELECT action FROM actions WHERE session = ? AND branch = ? ORDER BY k"
            actions = tuple(text for (text,) in self._db.execute(order, (session, branch)))
        name, secret_sha256, title, config = row
        return StoredSession(name, secret_sha256, title, config, actions)

    def create(self, stored: StoredSession, branch: str) -> None:
        """Keep a new session with its actions.

        Raises:
            StoreError: it can't be written.
        """
        now = int(time.time())
        head = (stored.id, stored.secret_sha256, stored.title, stored.config, now, now)
        self._write(
            [("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", [head]), _insert(stored.id, branch, 0, stored.actions)]
        )

    def append(self, session: str, branch: str, first: int, actions: Sequence[str]) -> None:
        """Keep actions number `first`, `first` + 1, .. of a branch.

        Raises:
            StaleError: one of them is there already.
            StoreError: they can't be written.
        """
        used: Statement = ("UPDATE sessions SET used = ? WHERE id = ?", [(int(time.time()), session)])
        self._write([_insert(session, branch, first, actions), used])

    def count(self) -> tuple[int, int]:
        """How many sessions and how many actions there are."""
        with self._lock:
            (sessions,) = self._db.execute("SELECT count(*) FROM sessions").fetchone()
            (actions,) = self._db.execute("SELECT count(*) FROM actions").fetchone()
        return sessions, actions

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
