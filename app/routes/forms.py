"""The body of a POST, a form or JSON, as an action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import UploadFile

from app.routes.add_form import read_add
from app.routes.answers import whole_number
from app.routes.asked import Asked, number
from app.services.acting import STEP
from app.services.errors import BadValueError, NoFormError, ServiceError
from app.services.running import CONDITIONS, Until
from engine.errors import InputError
from engine.scenario import loads, parse_action
from engine.strict_json import record

NOT_UTF8: Final = "\N{REPLACEMENT CHARACTER}"
"""What a form's bytes become that are no text."""
DO: Final = {"step": "step", "add": "add_request", "abort": "abort", "reset": "reset_prefix_cache"}
MOST_FIELDS: Final = 1_000
MOST_BYTES: Final = 2**24
"""Never reached: the limit on bodies is smaller."""
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
EXPECTED: Final = f"application/json, {' or '.join(FORMS)}"
MOST_STEPS: Final = 20_000


async def read_asked(request: Request, kind: str) -> Asked:
    """The body of a POST. What is wrong with it is kept in `errors`, so that the form can be shown again."""
    asked = Asked(kind)
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            _from_json(asked, await request.body())
        else:
            form = await read_form(request)
            asked.typed = {name: values[-1] for name, values in form.items()}
            asked.branch = asked.typed.get("branch", "")
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
        read_add(asked)
    except InputError as error:
        asked.blame(error)


async def read_form(request: Request) -> dict[str, list[str]]:
    """The fields of a form, a list of values each; files count as nothing.

    Raises:
        ServiceError: it is no form; text that is not UTF-8.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMS and await request.body():
        raise NoFormError(f"A body of the type {kind or 'unknown'} is not read here.", "header Content-Type", EXPECTED)
    fields: dict[str, list[str]] = {}
    async with request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=MOST_BYTES) as form:
        for name, value in form.multi_items():
            if not isinstance(value, UploadFile):
                if NOT_UTF8 in value:
                    raise BadValueError("This text is not valid Unicode.", name, "text in UTF-8")
                if name.lstrip().startswith("{"):
                    raise NoFormError("This is JSON, sent as a form.", "header Content-Type", "application/json")
                fields.setdefault(name, []).append(value)
    return fields


def _from_json(asked: Asked, body: bytes) -> None:
    """An action as scenarios write it, without `do`, beside `branch` and `at`."""
    written = record(loads(body), "", _Anything(), ())
    _place_from_json(asked, written)
    if asked.kind == "run":
        for name in written:
            if name not in ("until", "steps"):
                raise BadValueError(f'"{name}" is not known here.', name, "only branch, at, until, steps")
        _run(asked, written)
        return
    if asked.kind == "step":
        asked.instead = written.pop("instead", False) is True
    asked.action = parse_action({**written, "do": DO[asked.kind]})


def _place_from_json(asked: Asked, written: dict[str, Any]) -> None:
    """Take the branch and the moment out of what a program sent."""
    branch, at = written.pop("branch", ""), written.pop("at", None)
    if not isinstance(branch, str):
        raise BadValueError('"branch" is not a name.', "branch", "the name of a branch")
    if at is not None and (not isinstance(at, int) or isinstance(at, bool) or at < 0):
        raise BadValueError('"at" is not a whole number.', "at", "a whole number, 0 or more")
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
            _run(asked, {"until": typed.get("until", ""), **({"steps": number(asked, "steps")} if steps else {})})
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
            read_add(asked)


def _run(asked: Asked, written: Mapping[str, object]) -> None:
    """What a run is to stop at: `until`, and `steps` where that is "count"."""
    what, steps = written.get("until", ""), written.get("steps")
    if what not in ("", *CONDITIONS):
        raise BadValueError("A run can't stop at that.", "until", f"one of {', '.join(CONDITIONS)}")
    if steps is not None and not what:
        raise BadValueError("So many steps of what?", "until", 'steps belong to "count"')
    if what == "count" and (not isinstance(steps, int) or isinstance(steps, bool) or not 0 < steps <= MOST_STEPS):
        raise BadValueError("How many steps?", "steps", f"a whole number from 1 to {MOST_STEPS}")
    asked.until = Until(str(what), steps if what == "count" and isinstance(steps, int) else 0)
