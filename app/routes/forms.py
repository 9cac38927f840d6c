"""What was asked for: the body of a POST, a form or JSON, as an action; and which field an error belongs to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import UploadFile

from app.rendering.words import told
from app.routes.answers import whole_number
from app.services.acting import STEP
from app.services.errors import BadValueError, ServiceError
from app.services.running import CONDITIONS, Until
from app.services.session import MAIN
from engine.actions import Action
from engine.errors import InputError
from engine.scenario import loads, parse_action
from engine.strict_json import record

NOT_UTF8: Final = "\N{REPLACEMENT CHARACTER}"
"""What a form's bytes become that are no text."""
INTEGER: Final = re.compile(r"-?[0-9]+\Z")
PLACE: Final = re.compile(r"action(?:s\[\d+\])?\.?")
DO: Final = {"step": "step", "add": "add_request", "abort": "abort", "reset": "reset_prefix_cache"}
MOST_FIELDS: Final = 1_000
MOST_BYTES: Final = 2**24
"""Never reached: the limit on bodies is smaller."""
MOST_DIGITS: Final = 18
NUMBERS: Final = ("tokens", "shared_tokens", "max_tokens", "priority", "external_tokens", "external_steps")
MOST_STEPS: Final = 20_000


@dataclass(slots=True)
class Asked:
    """What a POST asks for; `action` is None for a run. `typed`: what stood in the fields; `errors`: what is wrong."""

    kind: str
    branch: str = MAIN
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
        name = "" if error.where == "at" else _field(error.where, has_shared=bool(self.typed.get("shared")))
        self.errors.setdefault(name, told(error))


async def read_asked(request: Request, kind: str) -> Asked:
    """The body of a POST. What is wrong with it is kept in `errors`, so that the form can be shown again."""
    asked = Asked(kind)
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            _from_json(asked, await request.body())
        else:
            form = await read_form(request)
            asked.typed = {name: values[-1] for name, values in form.items()}
            asked.branch = asked.typed.get("branch", MAIN)
            asked.at = whole_number(asked.typed.get("at"), "at", -1)
            asked.at = None if asked.at < 0 else asked.at
            _from_form(asked, form)
    except (InputError, ServiceError) as error:
        asked.blame(error)
    return asked


async def read_plain(request: Request) -> dict[str, Any]:
    """The fields of a form that is no action, each with its last value; or the object that a program sent.

    Raises:
        ServiceError: a branch or a moment that is none; text that is not UTF-8.
        InputError: malformed JSON.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return {name: values[-1] for name, values in (await read_form(request)).items()}
    asked, body = Asked(""), await request.body()
    fields = dict(record(loads(body), "", _Anything(), ()))
    _place_from_json(asked, fields)
    return {**fields, "branch": asked.branch, **({} if asked.at is None else {"at": str(asked.at)})}


def read_fields(asked: Asked) -> None:
    """The composer's fields, which stand in `typed`; what is wrong with them is kept in `errors`."""
    try:
        _add_from_form(asked)
    except InputError as error:
        asked.blame(error)


async def read_form(request: Request) -> dict[str, list[str]]:
    """The fields of a form, a list of values each; files count as nothing."""
    fields: dict[str, list[str]] = {}
    async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=MOST_BYTES) as form:
        for name, value in form.multi_items():
            if not isinstance(value, UploadFile):
                if NOT_UTF8 in value:
                    raise BadValueError("This text is not valid Unicode.", name, "text in UTF-8")
                fields.setdefault(name, []).append(value)
    return fields


def _from_json(asked: Asked, body: bytes) -> None:
    """An action as scenarios write it, without `do`, beside `branch` and `at`."""
    written = record(loads(body), "", _Anything(), ())
    _place_from_json(asked, written)
    if asked.kind == "run":
        _run(asked, written)
        return
    if asked.kind == "step":
        asked.instead = written.pop("instead", False) is True
    asked.action = parse_action({**written, "do": DO[asked.kind]})


def _place_from_json(asked: Asked, written: dict[str, Any]) -> None:
    """Take the branch and the moment out of what a program sent."""
    branch, at = written.pop("branch", MAIN), written.pop("at", None)
    if not isinstance(branch, str):
        raise BadValueError("branch is not a name.", "branch", "the name of a branch")
    if at is not None and (not isinstance(at, int) or isinstance(at, bool) or at < 0):
        raise BadValueError("at is not a whole number.", "at", "a whole number, 0 or more")
    asked.branch, asked.at = branch, at


class _Anything(frozenset[str]):
    """Every key is known here: `parse_action` checks them."""

    def __contains__(self, key: object) -> bool:
        return True


def _from_form(asked: Asked, form: Mapping[str, list[str]]) -> None:
    typed = asked.typed
    match asked.kind:
        case "run":
            steps = typed.get("steps", "") if typed.get("until") == "count" else ""
            _run(asked, {"until": typed.get("until", ""), **({"steps": _number(asked, "steps")} if steps else {})})
        case "step":
            asked.instead = bool(typed.get("instead"))
            ids = [name for name in form.get("abort", []) if name]
            asked.action = parse_action({"do": "step", "abort": ids}) if ids else STEP
        case "abort":
            name = typed.get("id", "")
            during = typed.get("during") == "step"
            asked.action = parse_action({"do": "step", "abort": [name]} if during else {"do": "abort", "id": name})
        case "reset":
            running = {"reset_running_requests": True} if typed.get("reset_running_requests") else {}
            asked.action = parse_action({"do": "reset_prefix_cache", **running})
        case "add":
            _add_from_form(asked)


def _run(asked: Asked, written: Mapping[str, object]) -> None:
    """What a run is to stop at: `until`, and `steps` where that is "count"."""
    what, steps = written.get("until", ""), written.get("steps")
    if what not in ("", *CONDITIONS):
        raise BadValueError("A run can't stop at that.", "until", f"one of {', '.join(CONDITIONS)}")
    if what == "count" and (not isinstance(steps, int) or isinstance(steps, bool) or not 0 < steps <= MOST_STEPS):
        raise BadValueError("How many steps?", "steps", f"a whole number from 1 to {MOST_STEPS}")
    asked.until = Until(str(what), steps if what == "count" and isinstance(steps, int) else 0)


def _add_from_form(asked: Asked) -> None:
    """Every field is read, so that every problem is told at once; the engine's own checks follow."""
    typed = asked.typed
    numbers = {name: _number(asked, name) for name in NUMBERS}
    external = _external(asked, numbers)
    accept = _numbers(asked, "accept")
    prompt: list[dict[str, Any]] = []
    if typed.get("shared"):
        if numbers["shared_tokens"] is None and "shared_tokens" not in asked.errors:
            asked.blame(
                BadValueError("The shared prefix needs a length.", "shared_tokens", "a whole number, 1 or more")
            )
        prompt.append({"shared": typed["shared"], "tokens": numbers["shared_tokens"]})
    elif numbers["shared_tokens"]:
        asked.blame(BadValueError("A shared prefix needs a name.", "shared", "the name that others give too"))
    if numbers["tokens"] or not prompt:
        prompt.append({"tokens": numbers["tokens"]})
    if numbers["tokens"] is None and not prompt[0].get("shared") and "tokens" not in asked.errors:
        asked.blame(BadValueError("The prompt is empty.", "tokens", "a whole number, 1 or more"))
    if numbers["max_tokens"] is None and "max_tokens" not in asked.errors:
        asked.blame(BadValueError("A number is missing.", "max_tokens", "a whole number, 1 or more"))
    if asked.errors:
        return
    action: dict[str, Any] = {"do": "add_request", "id": typed.get("id", ""), "prompt": prompt}
    action["max_tokens"] = numbers["max_tokens"]
    for name in ("cache_salt", "lora"):
        if typed.get(name):
            action[name] = typed[name]
    if numbers["priority"]:
        action["priority"] = numbers["priority"]
    if any(accept):
        action["accept"] = accept
    if typed.get("skip_reading_prefix_cache"):
        action["skip_reading_prefix_cache"] = True
    if external:
        action["external"] = external
    asked.action = parse_action(action)


def _external(asked: Asked, numbers: Mapping[str, int | None]) -> dict[str, Any]:
    """What a connector holds of the request; {} without one."""
    tokens, steps = numbers["external_tokens"], numbers["external_steps"]
    is_async = bool(asked.typed.get("external_async"))
    if tokens is None:
        if (is_async or steps is not None) and "external_tokens" not in asked.errors:
            message = "A load needs external tokens."
            asked.blame(BadValueError(message, "external_tokens", "how many of its first tokens a connector holds"))
        return {}
    return {"tokens": tokens, "async": is_async, **({} if steps is None else {"steps": steps})}


def _number(asked: Asked, name: str) -> int | None:
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


def _numbers(asked: Asked, name: str) -> list[int]:
    parts = [part.strip() for part in asked.typed.get(name, "").split(",") if part.strip()]
    if not all(INTEGER.match(part) and len(part) <= MOST_DIGITS for part in parts):
        asked.blame(BadValueError("These are not whole numbers.", name, "whole numbers with commas, as 0, 2, 1"))
        return []
    return [int(part) for part in parts]


def _field(where: str, *, has_shared: bool) -> str:
    """The composer's field that a place in an action belongs to: `action.prompt[0].tokens` is `tokens`."""
    place = PLACE.sub("", where, count=1)
    name, _, rest = place.partition("[")
    head = name.partition(".")[0]
    if head == "prompt":
        if has_shared and rest.startswith("0]"):
            return "shared" if rest.endswith("shared") else "shared_tokens"
        return "tokens"
    if head == "external":
        return f"external_{place.rpartition('.')[2]}" if "." in place else "external_tokens"
    return "max_tokens" if head == "output" else head
