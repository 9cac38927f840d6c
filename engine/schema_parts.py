"""The words that JSON Schemas of this project are made of; `doc` says in a sentence what something means."""

from collections.abc import Mapping
from typing import TypeAlias

from engine.scenario_parse import MAX_NAME
from engine.strict_json import MAX_INT

Schema: TypeAlias = dict[str, object]


def object_of(properties: Mapping[str, object], required: tuple[str, ...], doc: str) -> Schema:
    """An object with just these keys."""
    return {
        "type": "object",
        "description": doc,
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(items: Schema, doc: str, minimum: int = 0) -> Schema:
    """A list."""
    return {"type": "array", "description": doc, "items": items, "minItems": minimum}


def integer(doc: str, minimum: int, default: int | None = None) -> Schema:
    """A whole number that fits into 64 bits."""
    schema: Schema = {"type": "integer", "description": doc, "minimum": minimum, "maximum": MAX_INT}
    return schema if default is None else {**schema, "default": default}


def text(doc: str, default: str | None = None, minimum: int = 1) -> Schema:
    """A text, no longer than names are."""
    schema: Schema = {"type": "string", "description": doc, "minLength": minimum, "maxLength": MAX_NAME}
    return schema if default is None else {**schema, "default": default}


def flag(doc: str) -> Schema:
    """True or false; false by default."""
    return {"type": "boolean", "description": doc, "default": False}


def or_null(schema: Schema) -> Schema:
    """The same, or null for "not given"."""
    return {**schema, "type": [schema["type"], "null"]}
