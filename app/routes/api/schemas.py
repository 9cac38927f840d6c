"""The shapes of the API's bodies, as the schemas of `/openapi.json`; scenarios and records have the engine's."""

from __future__ import annotations

from typing import Any, Final

from app.routes.api.probe_schema import probe_schema, probed_schema, stage_schemas
from app.services.links import MAX_SELECT
from engine.record_schema import record_definitions
from engine.schema import scenario_schema
from engine.schema_parts import Schema, object_of
from engine.strict_json import MAX_INT

NAMES: Final = {
    "action": "Action",
    "group": "Group",
    "span": "Span",
    "part": "Part",
    "id": "RequestId",
    "token": "TokenId",
    "record": "Record",
    "state": "State",
    "request_state": "RequestState",
    "allocate_slots": "AllocateSlots",
    "event": "Event",
    "prefix_cache": "PrefixCache",
}
"""What the engine's definitions are called here."""

BRANCH: Final[Schema] = {
    "type": "string",
    "description": (
        "The id of a branch of the session. Left out: main or, where that was deleted, the first branch that is left."
    ),
}
TOLD_BRANCH: Final[Schema] = {"type": "string", "description": "The id of the branch that this is about."}
AT: Final[Schema] = {
    "type": "integer",
    "description": "K, actions executed: 0 to the branch's number of actions.",
    "minimum": 0,
}
AT_OR_END: Final[Schema] = {
    "type": ["integer", "null"],
    "description": "K, actions executed; left out or null: all of the branch.",
    "minimum": 0,
    "maximum": MAX_INT,
}


def schemas() -> Schema:
    """Every schema by its name."""
    scenario: Any = scenario_schema()
    definitions = {**scenario.pop("$defs"), **record_definitions()}
    del scenario["$schema"]
    engine = {NAMES[name]: _renamed(schema) for name, schema in definitions.items()}
    return {
        "Scenario": _renamed(scenario),
        "Created": _created(),
        "Moment": _moment(),
        "Actions": _actions(),
        "Acted": _acted(),
        "Permalink": _permalink(),
        "Probe": probe_schema(BRANCH, AT_OR_END),
        "Probed": probed_schema(),
        **stage_schemas(),
        "Error": _error(),
        **engine,
    }


def ref(name: str) -> Schema:
    """A reference to one of them."""
    return {"$ref": f"#/components/schemas/{name}"}


def _renamed(schema: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same with its references led to where the definitions are here."""
    if isinstance(schema, list):
        return [_renamed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return ref(NAMES[schema["$ref"].rpartition("/")[2]])
    return {key: _renamed(value) for key, value in schema.items()}


def _url(doc: str) -> Schema:
    return {"type": "string", "format": "uri", "description": doc}


def _whole(properties: Schema, doc: str) -> Schema:
    return object_of(properties, tuple(properties), doc)


def _created() -> Schema:
    links: Schema = {
        "page": _url("The session's page, for people."),
        "session": _url("Where the API has the session."),
        "records": _url("Its records."),
        "permalink": _url("Its permalink."),
    }
    return _whole(
        {
            "id": {"type": "string", "pattern": "^[a-z2-9]{12}$", "description": "The session's id."},
            "secret": {"type": "string", "description": "The owner's secret; it is told only here."},
            "branch": {"const": "main"},
            "at": AT,
            "links": _whole(links, "Where it is found."),
        },
        "A new session.",
    )


def _moment() -> Schema:
    actions = {"type": "array", "items": ref("Action"), "description": "All actions of the branch, also those after K."}
    return _whole({"branch": TOLD_BRANCH, "at": AT, "actions": actions, "state": ref("State")}, "A moment of a branch.")


def _actions() -> Schema:
    several = {"type": "array", "items": ref("Action"), "minItems": 1}
    actions = {"anyOf": [ref("Action"), several], "description": "One action or several, all or none."}
    return object_of(
        {"branch": BRANCH, "at": AT_OR_END, "actions": actions}, ("actions",), "Actions at a moment of a branch."
    )


def _acted() -> Schema:
    records = {"type": "array", "items": ref("Record"), "description": "The record of each action."}
    connector = {
        "enum": ["same", "changed"],
        "description": "Only where an action brought the scenario its connector: everything was replayed with one, and "
        "the state before the actions is the same or has changed.",
    }
    return object_of(
        {
            "branch": {**BRANCH, "description": "Where the actions led: another branch where they differ."},
            "at": AT,
            "replayed_with_connector": connector,
            "records": records,
        },
        ("branch", "at", "records"),
        "What came of actions.",
    )


def _permalink() -> Schema:
    return _whole(
        {
            "branch": TOLD_BRANCH,
            "at": AT,
            "select": {"type": "string", "maxLength": MAX_SELECT, "description": "What is selected there."},
            "code": {"type": "string", "pattern": "^[0-9a-zA-Z_-]+$", "description": "The scenario, compressed."},
            "url": _url("The link."),
            "loopback": {"type": "boolean", "description": "Whether the link works on the server's own machine only."},
        },
        "A link that holds a branch, a moment and a selection.",
    )


def _error() -> Schema:
    error: Schema = {
        "code": {"type": "string", "pattern": "^[a-z_]+$", "description": "A stable word for programs."},
        "message": {"type": "string", "description": "What is wrong."},
        "where": {"type": "string", "description": "The place, as actions[3].prompt[0].tokens; may be empty."},
        "expected": {"type": "string", "description": "What would be right; may be empty."},
    }
    return _whole({"error": _whole(error, "What is wrong.")}, "The one shape of every error.")
