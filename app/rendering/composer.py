"""The forms that act: what their fields hold, and beside each what is wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, count, islice
from string import ascii_uppercase
from typing import Final

from app.contexts import AbortForm, Composer, Field
from app.rendering.moment import Moment
from engine.actions import AddRequest
from engine.tokens import Shared

MOST_IDS: Final = 200

FIELDS: Final = (
    ("id", "id", "", "text", "a name for the request", False),
    ("tokens", "prompt tokens", "100", "number", "tokens of its own", False),
    ("max_tokens", "max_tokens", "16", "number", "tokens it may say", False),
    ("shared", "shared prefix", "", "text", "a name; requests that give the same one share it", False),
    ("shared_tokens", "its tokens", "", "number", "length of the shared prefix", False),
    ("text", "text", "", "area", "the prompt as text, in the place of the tokens", True),
    ("json", "JSON", "", "area", 'the whole prompt: [{"shared": "system", "tokens": 64}, {"text": "Hi"}]', True),
    ("priority", "priority", "0", "number", "smaller is served first, under the priority policy", True),
    ("cache_salt", "cache_salt", "", "text", "only equal salts share blocks", True),
    ("lora", "LoRA", "", "text", "an adapter's name; only equal ones share blocks", True),
    ("accept", "accepted drafts", "0", "text", "in each step in turn, with commas: 0, 2, 1", True),
    ("output", "output", "", "text", "what it will say, as spans of token ids: [[1000, 16]]", True),
    ("stop_token_ids", "stop tokens", "", "text", "ids that end it, with commas", True),
    (
        "skip_reading_prefix_cache",
        "skip reading the prefix cache",
        "",
        "checkbox",
        "stores its blocks, but hits none",
        True,
    ),
)
"""Name, label, usual value, kind, hint, and whether it belongs under "more"."""
SHORT: Final = {
    "id": "a name",
    "tokens": "a number",
    "max_tokens": "a number",
    "shared": "a name",
    "shared_tokens": "tokens",
}
"""What stands in an empty field: a word or two, for there is no room for more."""
EXTERNAL: Final = (
    ("external_tokens", "external tokens", "", "number", "a connector holds so many of its first tokens", True),
    ("external_async", "load while it waits", "", "checkbox", "the load takes steps, and the request waits", True),
    ("external_steps", "steps of the load", "", "number", "how many steps it takes; 2", True),
)
"""The same for external tokens, which are to be had with one group only."""


def composer(
    moment: Moment,
    typed: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    draft: str = "",
) -> Composer:
    """The form that adds a request: the usual values, or what was typed with its errors ("" belongs to no field).

    `draft`: what the request would be now, in words.
    """
    errors = errors or {}
    fields = []
    shared = _shared_before(moment)
    several = len(moment.cursor.simulation.config.groups) > 1
    for name, label, usual, kind, hint, more in FIELDS if several else FIELDS + EXTERNAL:
        value = typed.get(name, "") if typed is not None else shared.get(name, usual)
        if name == "id" and typed is None:
            value = next_id(moment.cursor.simulation.scripts)
        fields.append(Field(name, label, value, hint, kind, errors.get(name, ""), more, SHORT.get(name, "")))
    known = {field.name for field in fields}
    loose = " ".join(text for name, text in errors.items() if name not in known)
    return Composer(tuple(fields), loose, draft)


def _shared_before(moment: Moment) -> dict[str, str]:
    """The shared prefix of the request that was just added: the next one is likely to share it."""
    action = moment.applied.outcome.action if moment.applied else None
    part = action.prompt[0] if isinstance(action, AddRequest) else None
    return {"shared": part.name, "shared_tokens": str(part.tokens)} if isinstance(part, Shared) else {}


def abort_form(moment: Moment, error: str = "", chosen: str = "") -> AbortForm:
    """The form that aborts a request: running ones first, then those that load, then waiting ones."""
    scheduler = moment.scheduler
    living = islice(chain(scheduler.running, scheduler.loads.holding, scheduler.waiting), MOST_IDS)
    return AbortForm(tuple(request.request_id for request in living), error, chosen)


def next_id(used: Collection[str]) -> str:
    """The first of A, B, .. Z, A2, B2, .. that no request ever had."""
    names = (letter + (str(turn) if turn > 1 else "") for turn in count(1) for letter in ascii_uppercase)
    return next(name for name in names if name not in used)
