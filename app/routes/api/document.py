"""`/openapi.json`: every address of the API, what it takes and everything that it may answer."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from app.routes.api import examples
from app.routes.api.schemas import AT, BRANCH, ref, schemas
from app.services.links import MAX_SELECT
from engine.record import dumps
from engine.schema_parts import Schema

ABOUT: Final = """\
Poolscope shows how vLLM's V1 engine hands out KV-cache memory. This is its API for programs.

A *session* is a scenario being explored: a config and actions, in branches. Whoever has its id may look; acting needs
the secret that was answered when it was made, as `Authorization: Bearer SECRET`. The *moment* K of a branch is the one
after K actions. Acting before a branch's end on what is recorded there only moves on; anything else makes a branch.

Bodies are JSON in UTF-8. An unknown key or parameter is an error, and every error has the same shape.
"""

ERRORS: Final = {
    "400": ("Malformed JSON.", ("malformed_json", "not JSON: Expecting value", "line 1, column 9", "strict JSON")),
    "401": (
        "The secret is missing.",
        ("no_secret", "Only the owner can act: the session's secret is missing.", "header Authorization",
         "Authorization: Bearer SECRET"),
    ),
    "403": (
        "The secret is wrong, or a browser sends this from another site's page.",
        ("not_owner", "Only the owner can act; you can look.", "", ""),
    ),
    "CrossOrigin": (
        "A browser sends this from another site's page.",
        ("cross_origin", "This request comes from another site.", "", "a request from this page"),
    ),
    "404": ("There is no such session.", ("unknown_session", "There is no session of this name.", "session", "")),
    "409": (
        "There is no such branch or moment, or no more.",
        ("stale", "There is no moment 7: this branch has 4 actions.", "at", "at most 4"),
    ),
    "413": (
        "Over a limit of this server.",
        ("over_limit", "300000 blocks are more than this program takes", "config.num_blocks", "at most 200000"),
    ),
    "422": (
        "Well-formed, but impossible; `where` names the place.",
        ("unknown_key", 'unknown key "token"', "actions[0].prompt[0].token", '"tokens"'),
    ),
    "503": (
        "Not now: too many do the same, the disk is full, or a long session is still being replayed.",
        ("full", "Too many replays are under way.", "", "to try again in a few seconds"),
    ),
}  # fmt: skip
"""What may go wrong, with an example each."""

LOOKING: Final = ("404", "409", "422", "503")
ACTING: Final = ("400", "401", "403", "404", "409", "413", "422", "503")


@cache
def document() -> dict[str, Any]:
    """The whole document, OpenAPI 3.1."""
    secret = {"type": "http", "scheme": "bearer", "description": "The secret that was answered with the session."}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Poolscope",
            "version": "1",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "."}],
        "tags": [
            {"name": "sessions", "description": "Scenarios being explored, stored by the server."},
            {"name": "replay", "description": "Scenarios that nobody keeps."},
        ],
        "paths": {
            "/api/sessions": {"post": _create()},
            "/api/sessions/{session_id}": {"parameters": [_ID], "get": _look(), "delete": _delete()},
            "/api/sessions/{session_id}/actions": {"parameters": [_ID], "post": _act()},
            "/api/sessions/{session_id}/records": {"parameters": [_ID], "get": _records()},
            "/api/sessions/{session_id}/permalink": {"parameters": [_ID], "get": _link()},
            "/api/sessions/{session_id}/probe": {"parameters": [_ID], "post": _probe()},
            "/api/replay": {"post": _replay()},
        },
        "components": {
            "schemas": schemas(),
            "responses": {status: _error(status) for status in ERRORS},
            "securitySchemes": {"secret": secret},
        },
    }


# ---- addresses


def _create() -> Schema:
    return _operation(
        "createSession",
        "Make a session from a scenario",
        "All of its actions are executed, or nothing is stored. The secret is told only here.",
        ("400", "403", "413", "422", "503"),
        {"201": {**_json("Created", examples.created(), "The new session."), "headers": _LOCATION}},
        body=("Scenario", examples.SCENARIO),
    )


def _look() -> Schema:
    return _operation(
        "getSession",
        "Look at a moment",
        "The state after K actions of a branch, as records write it, and all of the branch's actions.",
        LOOKING,
        {"200": _json("Moment", examples.moment(), "The moment.")},
        parameters=[_BRANCH, _query("at", {**AT, "maximum": 999_999_999}, "K; left out: the end of the branch.")],
    )


def _delete() -> Schema:
    told = "Everything that belongs to it is gone."
    answers: Schema = {"204": {"description": told}}
    errors = ("401", "403", "404", "422", "503")
    return _operation("deleteSession", "Delete a session", told, errors, answers, secret=True)


def _act() -> Schema:
    return _operation(
        "act",
        "Act",
        "Executes one action or several, all or none, and answers with their records. At the end of the branch they "
        "are appended. Before it, actions equal to the recorded ones only move on; others make a branch, which the "
        "answer names.",
        ACTING,
        {"200": _json("Acted", examples.acted(), "Where the actions led, and what they did.")},
        body=("Actions", examples.ACTIONS),
        secret=True,
    )


def _records() -> Schema:
    return _operation(
        "getRecords",
        "Read records",
        "What each action of a branch did, a line each. A line with the key `error` ends them early.",
        LOOKING,
        {"200": _lines()},
        parameters=[
            _BRANCH,
            _query("from", {**_NUMBER, "default": 0}, "The first action, counted from 0."),
            _query("to", _NUMBER, "The action before which they end; left out: the end of the branch."),
        ],
    )


def _link() -> Schema:
    return _operation(
        "getPermalink",
        "Get a permalink",
        "The link holds the branch, the moment and the selection: it needs no stored state and never expires.",
        ("404", "409", "413", "422", "503"),
        {"200": {"description": "The link.", "content": {"application/json": {"schema": ref("Permalink")}}}},
        parameters=[
            _BRANCH,
            _query("at", {**AT, "maximum": 999_999_999}, "K; left out: the end of the branch."),
            _query("select", {"type": "string", "maxLength": MAX_SELECT, "default": ""}, "As block:3 or request:ada."),
        ],
    )


def _probe() -> Schema:
    return _operation(
        "probe",
        "Try a call of allocate_slots",
        "What would it answer now? It is called on a copy, so nothing changes, and no secret is needed. Arguments that "
        "aren't given are what the scheduler would pass for this request.",
        ("400", "403", "404", "409", "413", "422", "503"),
        {"200": _json("Probed", examples.probed(), "The call, stage by stage.")},
        body=("Probe", examples.PROBE),
    )


def _replay() -> Schema:
    return _operation(
        "replay",
        "Run a scenario",
        "Its records, a line each, as `poolscope replay --records` writes them. Nothing is stored. A line with the key "
        "`error` ends them early: an action turned out impossible, or 10 s of CPU are over. What goes wrong before the "
        "first record has a status of its own.",
        ("400", "403", "413", "422", "503"),
        {"200": _lines()},
        body=("Scenario", examples.SCENARIO),
        tag="replay",
    )


# ---- parts

_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
_ID: Final[Schema] = {
    "name": "session_id",
    "in": "path",
    "required": True,
    "description": "The session's id.",
    "schema": {"type": "string"},
}
_LOCATION: Final[Schema] = {
    "Location": {"description": "Where the API has the session.", "schema": {"type": "string", "format": "uri"}}
}


def _query(name: str, schema: Schema, doc: str) -> Schema:
    return {"name": name, "in": "query", "description": doc, "schema": schema}


_BRANCH: Final = _query(
    "branch", BRANCH, "The id of a branch; left out: main or, where that was deleted, the first that is left."
)


def _operation(
    name: str,
    summary: str,
    doc: str,
    errors: Iterable[str],
    answers: Schema,
    *,
    body: tuple[str, object] | None = None,
    parameters: list[Schema] | None = None,
    secret: bool = False,
    tag: str = "sessions",
) -> Schema:
    operation: Schema = {"operationId": name, "summary": summary, "description": doc, "tags": [tag]}
    if parameters is not None:
        operation["parameters"] = parameters
    if body is not None:
        content = {"application/json": {"schema": ref(body[0]), "example": body[1]}}
        operation["requestBody"] = {"required": True, "content": content}
    names = {} if secret else {"403": "CrossOrigin"}
    told = {status: {"$ref": f"#/components/responses/{names.get(status, status)}"} for status in errors}
    operation["responses"] = {**answers, **told}
    operation["security"] = [{"secret": []}] if secret else []
    return operation


def _json(schema: str, example: object, doc: str) -> Schema:
    return {"description": doc, "content": {"application/json": {"schema": ref(schema), "example": example}}}


def _lines() -> Schema:
    example = "".join(f"{dumps(record)}\n" for record in examples.replayed())
    line = {"anyOf": [ref("Record"), ref("Error")]}
    schema = {"type": "string", "contentMediaType": "application/jsonl", "contentSchema": line}
    return {
        "description": "Records, a line each.",
        "content": {"application/jsonl": {"schema": schema, "example": example}},
    }


def _error(status: str) -> Schema:
    doc, example = ERRORS[status]
    return _json("Error", examples.error(*example), doc)
