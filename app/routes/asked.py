"""What was asked for, and beside which field stands what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.rendering.words import told
from app.services.errors import BadValueError, ServiceError
from app.services.running import Until
from engine.actions import Action
from engine.errors import InputError

INTEGER: Final = re.compile(r"-?[0-9]+\Z")
PLACE: Final = re.compile(r"action(?:s\[\d+\])?\.?")
INSIDE: Final = re.compile(r"(?:json|prompt|output)\.?")
MOST_DIGITS: Final = 18


@dataclass(slots=True)
class Asked:
    """What a POST asks for; `action` is None for a run. `typed`: what stood in the fields; `errors`: what is wrong."""

    kind: str
    branch: str = ""
    """"": the first one that lives."""
    at: int | None = None
    """None: the end."""
    action: Action | None = None
    instead: bool = False
    """Whether a step is meant instead of what was recorded."""
    until: Until = field(default_factory=Until)
    """Of a run: what to stop at."""
    typed: dict[str, str] = field(default_factory=dict)
    error: InputError | ServiceError | None = None
    errors: dict[str, str] = field(default_factory=dict)

    def blame(self, error: InputError | ServiceError) -> None:
        """Note what is wrong, beside the field that it belongs to."""
        self.error = error
        name = "" if error.where == "at" else _field(error.where, self.typed)
        words = told(error)
        if name in ("json", "output") and (place := _place_inside(error.where)):
            words = f"{place}: {words}"
        self.errors.setdefault(name, words)


def number(asked: Asked, name: str) -> int | None:
    """What a field holds that is for a whole number; None if nothing or, which is noted, something else."""
    text = asked.typed.get(name, "").strip()
    if not text:
        return None
    least = "" if name == "priority" else ", 1 or more"
    if not INTEGER.match(text):
        asked.blame(BadValueError("This is not a whole number.", name, f"a whole number{least}"))
        return None
    if len(text) > MOST_DIGITS:
        asked.blame(BadValueError(f"A number of {len(text)} digits is too large.", name, "a smaller whole number"))
        return None
    return int(text)


def numbers(asked: Asked, name: str) -> list[int]:
    """What a field holds that is for whole numbers with commas."""
    parts = [part.strip() for part in asked.typed.get(name, "").split(",") if part.strip()]
    if all(INTEGER.match(part) for part in parts) and any(len(part) > MOST_DIGITS for part in parts):
        asked.blame(BadValueError("One of these numbers is too large.", name, f"at most {MOST_DIGITS} digits each"))
        return []
    if not all(INTEGER.match(part) for part in parts):
        asked.blame(BadValueError("These are not whole numbers.", name, "whole numbers with commas, as 0, 2, 1"))
        return []
    return [int(part) for part in parts]


def _field(where: str, typed: Mapping[str, str]) -> str:
    """The composer's field that a place in an action belongs to: `action.prompt[0].tokens` is `tokens`."""
    place = PLACE.sub("", where, count=1)
    name, _, rest = place.partition("[")
    head = name.partition(".")[0]
    if head == "prompt":
        if typed.get("json", "").strip():
            return "json"
        if typed.get("shared") and rest.startswith("0]"):
            return "shared" if rest.endswith("shared") else "shared_tokens"
        return "text" if typed.get("text") else "tokens"
    if head == "external":
        return f"external_{place.rpartition('.')[2]}" if "." in place else "external_tokens"
    return head


def _place_inside(where: str) -> str:
    """The place in a field's JSON: `[0].tokens` of `action.prompt[0].tokens`, or a line and a column."""
    place = INSIDE.sub("", PLACE.sub("", where, count=1), count=1)
    return place[:1].upper() + place[1:] if place.startswith("line ") else place
