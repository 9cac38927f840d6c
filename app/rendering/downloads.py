"""What the list of downloads offers at first, or again with what was wrong."""

from __future__ import annotations

from collections.abc import Mapping

from app.contexts import Files
from app.rendering.recording import MAX_ACTIONS
from app.rendering.words import told
from app.services.errors import ServiceError
from engine.errors import InputError


def files(end: int, typed: Mapping[str, str] | None = None, error: InputError | ServiceError | None = None) -> Files:
    """The fields of a recording's range: as much as one holds, or what was `typed`."""
    typed = typed or {}
    words = "" if error is None else told(error)
    return Files(typed.get("from", "0"), typed.get("to", str(min(end, MAX_ACTIONS))), MAX_ACTIONS, words)
