"""What can be set from outside: environment variables `POOLSCOPE_*` and the command line, in one frozen object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from engine.errors import InputError, shown
from engine.scenario import Limits

SERVER_LIMITS = Limits(blocks=200_000, memory=256_000_000)
"""The memory holds for whatever is replayed: nobody can know what is in it before."""
COUNTS = {"SESSIONS": "sessions_loaded", "STEPS": "steps_a_call", "BODY": "max_body", "LINKS": "links"}
"""`POOLSCOPE_MAX_…` -> the setting."""


class SettingsError(InputError):
    """A setting has an impossible value; `where` names the variable or the option."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the server is told from outside. Sizes in bytes, times in seconds."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free one."""
    data: Path = field(default_factory=lambda: default_data(os.environ))
    """The directory of the database; it is made when it is missing."""
    public_url: str | None = None
    """Under which address others reach this server, where that isn't the request's host."""
    limits: Limits = SERVER_LIMITS
    max_body: int = 2_000_000
    steps_a_call: int = 1_000
    sessions_loaded: int = 500
    links: int = 100_000
    """Short links that are kept."""
    memory: int = 1_000_000_000
    """About how much loaded sessions may take together; over it the longest idle ones are unloaded."""
    replay_seconds: float = 10.0
    """CPU time that one request may spend on replaying."""
    graceful_shutdown: int = 3


def default_data(env: Mapping[str, str]) -> Path:
    """Where the database lies unless somebody says: the user's own data directory."""
    home = env.get("XDG_DATA_HOME") or Path(env.get("HOME") or Path.cwd()) / ".local" / "share"
    return Path(home) / "poolscope"


def read_settings(
    env: Mapping[str, str], *, host: str | None = None, port: str | None = None, public_url: str | None = None
) -> Settings:
    """The settings of `env`; what the command line gives (`host`, `port`, `public_url`) goes before.

    Raises:
        SettingsError: a value that cannot be.
    """
    settings = Settings(data=default_data(env))
    changes: dict[str, object] = {}
    for name, limit in (
        ("SESSIONS", "sessions_loaded"),
        ("STEPS", "steps_a_call"),
        ("BODY", "max_body"),
        ("LINKS", "links"),
    ):
        if text := env.get(f"POOLSCOPE_MAX_{name}"):
            changes[limit] = _whole_number(text, f"POOLSCOPE_MAX_{name}", 1, 10**9)
    if text := env.get("POOLSCOPE_MAX_BLOCKS"):
        changes["limits"] = replace(settings.limits, blocks=_whole_number(text, "POOLSCOPE_MAX_BLOCKS", 1, 10**9))
    if text := env.get("POOLSCOPE_DATA"):
        changes["data"] = Path(text)
    where = "--public-url" if public_url is not None else "POOLSCOPE_PUBLIC_URL"
    if text := public_url if public_url is not None else env.get("POOLSCOPE_PUBLIC_URL"):
        changes["public_url"] = _url(text, where)
    if text := host if host is not None else env.get("POOLSCOPE_HOST"):
        changes["host"] = text
    where = "--port" if port is not None else "POOLSCOPE_PORT"
    if text := port if port is not None else env.get("POOLSCOPE_PORT"):
        changes["port"] = _whole_number(text, where, 0, 65_535)
    return replace(settings, **changes)  # type: ignore[arg-type]


def _whole_number(text: str, where: str, minimum: int, maximum: int) -> int:
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else -1
    if not minimum <= value <= maximum:
        raise SettingsError(
            "bad_setting", f"{shown(text)} will not do", where, f"a whole number from {minimum} to {maximum}"
        )
    return value


def _url(text: str, where: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and not parts.fragment
    except ValueError:
        good = False
    if not good:
        raise SettingsError("bad_setting", f"{shown(text)} is no address", where, "one like https://poolscope.example")
    return text.rstrip("/")
