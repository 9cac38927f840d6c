"""The schemas of the probe: what it may be asked, and every stage of what it answers."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from app.routes.api.probe import FLAGS, NUMBERS
from engine.call_trace import CountTerms
from engine.probe import MOST
from engine.schema_parts import Schema, object_of

ASKED: Final = {
    "new": "Tokens to make room for.",
    "new_comp": "Tokens of a prefix cache hit; the cache must hold one of just this length.",
    "ext_comp": "Tokens that a connector supplies.",
    "lookahead": "Slots behind them for drafts.",
    "reserved_blocks": "Free blocks that others still need.",
    "full_sequence_must_fit": "Whether the gate holds.",
    "has_scheduled_reqs": "Whether others are scheduled: then the watermark holds.",
}
"""The arguments; whatever isn't given is what the scheduler would pass for this request now."""


def probe_schema(branch: Schema, at: Schema) -> Schema:
    """The body of a probe."""
    numbers: Schema = {
        name: {"type": ["integer", "null"], "minimum": 0, "maximum": MOST, "description": ASKED[name]}
        for name in NUMBERS
    }
    flags: Schema = {name: {"type": ["boolean", "null"], "description": ASKED[name]} for name in FLAGS}
    request: Schema = {"request": {"type": "string", "description": "A living request."}}
    place: Schema = {"branch": branch, "at": at}
    return object_of({**request, **numbers, **flags, **place}, ("request",), "A call to try on a copy.")


def probed_schema() -> Schema:
    """The answer."""
    stages = {
        "type": "array",
        "description": "All eight, in order.",
        "prefixItems": [{"$ref": f"#/components/schemas/{name}"} for name in stage_schemas()],
        "items": False,
        "minItems": 8,
    }
    verdict = {"type": "string", "description": "What came of it, in plain words."}
    call = {"$ref": "#/components/schemas/AllocateSlots"}
    return _whole({"allocate_slots": call, "stages": stages, "verdict": verdict}, "A call that was tried on a copy.")


def stage_schemas() -> Schema:
    """Each stage by the name of its schema, in the order of the call."""
    return {
        "GateStage": _stage("gate", _test(), "Does the whole sequence fit?"),
        "ReleaseStage": _stage("release", _release(), "Blocks that left the window are given back."),
        "CountStage": _stage("count", _terms(), "How many blocks leave the free queue?"),
        "CheckStage": _stage("check", _test(), "Do these fit now?"),
        "TouchStage": _stage("touch", _touch(), "The hits get one more holder each."),
        "PopStage": _stage("pop", _pop(), "New blocks from the head of the free queue, and the hashes that they lost."),
        "HashStage": _stage("hash", _hash(), "The blocks that became full are hashed."),
        "ReturnStage": _stage("return", _return(), "The new blocks, a list a group; null: refused."),
    }


def _stage(name: str, own: Schema, doc: str) -> Schema:
    """A stage; one that was not reached has no numbers."""
    head: Schema = {"stage": {"const": name}}
    reached = _whole({**head, "reached": {"const": True}, **own}, doc)
    return {"oneOf": [reached, _whole({**head, "reached": {"const": False}}, "It was not reached.")]}


def _whole(properties: Schema, doc: str) -> Schema:
    return object_of(properties, tuple(properties), doc)


_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_WHOLE: Final[Schema] = {"type": "integer"}
_HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{16}$"}
_BLOCKS: Final[Schema] = {"type": "array", "items": _COUNT}


def _several(properties: Schema, doc: str) -> Schema:
    return {"type": "array", "items": _whole(properties, doc)}


def _test() -> Schema:
    return {
        "passes": {"type": "boolean", "description": "needed + watermark_blocks <= free - reserved_blocks"},
        "tokens": _COUNT,
        "needed": _COUNT,
        "watermark_blocks": _COUNT,
        "free": _COUNT,
        "reserved_blocks": _COUNT,
        "spare": {**_WHOLE, "description": "Free blocks left over; negative: so many are missing."},
    }


def _release() -> Schema:
    given: Schema = {"group": _COUNT, "blocks": _BLOCKS, "front": _BLOCKS, "back": _BLOCKS}
    return {"released_blocks": _COUNT, "given_back": _several(given, "Where they went in the free queue.")}


def _terms() -> Schema:
    terms: Schema = {field.name: _WHOLE for field in fields(CountTerms)}
    return {"tokens": _COUNT, "groups": _several(terms, "need - held - hits (or skipped) = fresh, + idle hits = total")}


def _touch() -> Schema:
    place: Schema = {"type": ["integer", "null"], "description": "In the free queue; null: it was held."}
    touched: Schema = {"group": _COUNT, "block": _COUNT, "ref_before": _COUNT, "place": place}
    return {"blocks": _several(touched, "A hit block.")}


def _pop() -> Schema:
    lost: Schema = {"type": "array", "items": _HASH}
    return {"blocks": _several({"group": _COUNT, "block": _COUNT, "lost": lost}, "A new block.")}


def _hash() -> Schema:
    full: Schema = {"group": _COUNT, "entry": _COUNT, "block": _COUNT, "hash": _HASH}
    part: Schema = {"group": _COUNT, "tokens": _COUNT, "block": _COUNT, "hash": _HASH}
    return {"blocks": _several(full, "A full block."), "partial": _several(part, "A prefix that ends inside a block.")}


def _return() -> Schema:
    new: Schema = {"type": ["array", "null"], "items": _BLOCKS}
    return {"free_before": _COUNT, "free_after": _COUNT, "new_blocks": new}
