"""The record format (behaviour 0.5) as a JSON Schema (2020-12): what one action did, and the state after it."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from engine.actions import Abort, AddRequest, ResetPrefixCache, Step
from engine.kv_cache_manager import PrefixCacheStats
from engine.request import RequestStatus
from engine.schema import DIALECT
from engine.schema_parts import Schema, object_of

HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "The low 64 bits of a hash."}


def record_schema() -> Schema:
    """The schema of one record."""
    return {"$schema": DIALECT, "title": "Poolscope record", "$ref": "#/$defs/record", "$defs": record_definitions()}


def record_definitions() -> Schema:
    """What a record is made of; its parts refer to each other under `#/$defs/`."""
    return {
        "record": {"oneOf": [_step(), _reset(), *(_plain(action.do) for action in (AddRequest, Abort))]},
        "state": _state(),
        "request_state": _request(),
        "allocate_slots": _call(),
        "event": {"oneOf": _events()},
        "prefix_cache": _all(
            {field.name: _count(_QUERIED[field.name]) for field in fields(PrefixCacheStats)},
            "Prefix cache counters since the previous record.",
        ),
    }


_QUERIED: Final = {
    "requests": "Lookups, but for requests that were preempted before.",
    "queries": "Tokens that they asked for.",
    "hits": "Tokens of those that they found.",
    "preempted_requests": "Lookups of requests that were preempted before.",
    "preempted_queries": "Tokens that they asked for.",
    "preempted_hits": "Tokens of those that they found.",
}


def _plain(do: str, more: Schema | None = None, doc: str = "") -> Schema:
    """The record of one kind of action: its index and kind, what is its own, and what every record has."""
    head: Schema = {"action": _count("The action's index."), "do": {"const": do}}
    tail: Schema = {
        "state": _ref("state"),
        "events": _array(_ref("event"), "KV events since the previous record, oldest first."),
        "prefix_cache": _ref("prefix_cache"),
    }
    return _all({**head, **(more or {}), **tail}, doc or f"What {do} did.")


def _reset() -> Schema:
    done: Schema = {"type": "boolean", "description": "Whether the prefix cache was emptied."}
    return _plain(ResetPrefixCache.do, {"reset": done})


def _step() -> Schema:
    own: Schema = {
        "num_scheduled_tokens": _array(
            _pair({"type": "string"}, _count("Tokens.")),
            "[id, tokens] in scheduling order: running pass first, then admissions.",
        ),
        "spec_tokens": _map(_count("Drafts scheduled."), "Request id to drafts scheduled; only ids with drafts."),
        "preempted": _ids("Ids preempted since the previous step, sorted."),
        "finished": _ids("Ids finished or aborted since the previous step, sorted."),
        "zero_blocks": {
            "type": ["array", "null"],
            "items": _BLOCK,
            "description": "New blocks that must be zeroed before use; null: none.",
        },
        "copies": _array(_pair(_BLOCK, _BLOCK), "[source, destination]: blocks to copy before the model runs."),
        "allocate_slots": _array(_ref("allocate_slots"), "Every call of this step in call order, refused ones too."),
        "scheduled": _ref("state"),
        "sampled": _map(_count("Sampled ids."), "Request id to sampled ids that were kept."),
    }
    return _plain(Step.do, own, "What a step did; `scheduled` is the state after schedule(), before the model runs.")


def _call() -> Schema:
    per_group = {"type": "array", "items": {"type": "array", "items": _BLOCK}}
    return _all(
        {
            "request": {"type": "string", "description": "The request's id."},
            "comp": _count("Tokens computed before the call."),
            "new_comp": _count("Tokens of the local prefix cache hit."),
            "ext_comp": _count("Tokens that a connector supplies."),
            "new": _count("Tokens to schedule; 0 when an async load is admitted."),
            "lookahead": _count("Slots behind them for drafts."),
            "hit_blocks": {**per_group, "description": "Hit blocks, a list a group, 0 for null; [] if there is none."},
            "full_sequence_must_fit": {"type": "boolean", "description": "Whether the gate holds."},
            "watermark_blocks": _count("Free blocks that must stay behind."),
            "reserved_blocks": _count("Free blocks that loads under way still need."),
            "whole_sequence_blocks": _count_or_null("The gate's count; null: the gate is off."),
            "released_blocks": _count_or_null("Free blocks gained by the release; null: the call ended at the gate."),
            "blocks_to_allocate": _count_or_null("The check's count; null: the call ended at the gate."),
            "free_before": _count("Free blocks before the call."),
            "free_after": _count("Free blocks after it."),
            "new_blocks": {**per_group, "type": ["array", "null"], "description": "A list a group; null: refused."},
        },
        "One call of allocate_slots.",
    )


def _state() -> Schema:
    return _all(
        {
            "running": _ids("Ids in running-list order."),
            "waiting": _ids("Ids as they would be served; those whose load is under way first."),
            "requests": _map(_ref("request_state"), "Living requests by id, in order of their first add_request."),
            "free_queue": _array(_BLOCK, "Free blocks, head first."),
            "ref_cnt": {
                "type": "object",
                "description": "Block id to reference count; only blocks in use, never the null block.",
                "propertyNames": {"pattern": "^[1-9][0-9]*$"},
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
            "cached": _array(
                _tuple([HASH, _count("Group."), _array(_BLOCK, "Oldest first.", 1)], "A hash and its blocks."),
                "[hash, group, [block ids]], sorted by hash, then group.",
            ),
            "num_free_blocks": _count("How many blocks are free."),
            "usage": {"type": "number", "minimum": 0, "maximum": 1, "description": "kv_cache_usage_perc, 9 decimals."},
        },
        "The state of the engine.",
    )


def _request() -> Schema:
    return _all(
        {
            "status": {"enum": [status.value for status in RequestStatus]},
            "num_computed_tokens": _count("Tokens whose KV is computed."),
            "num_tokens": _count("Prompt and output tokens."),
            "num_output_tokens": _count("Output tokens."),
            "num_preemptions": _count("How often it was preempted."),
            "block_ids": {
                "type": "array",
                "description": "Its block table, a list a group; 0 for null.",
                "items": {"type": "array", "items": _BLOCK},
            },
        },
        "A living request.",
    )


def _events() -> list[Schema]:
    parent = {**HASH, "type": ["string", "null"], "description": "The hash before them; null: none."}
    stored: list[Schema] = [
        {"const": "stored"},
        _array(HASH, "New hashes."),
        parent,
        _count("Tokens."),
        _count("Block size."),
    ]
    return [
        _tuple([*stored, _count("Group.")], "Blocks were given hashes."),
        _tuple([{"const": "removed"}, _array(HASH, "The hash.", 1), _count("Group.")], "The last block lost a hash."),
        _tuple([{"const": "cleared"}], "The prefix cache was emptied."),
    ]


# ---- words


_BLOCK: Final[Schema] = {"type": "integer", "minimum": 0}


def _all(properties: Schema, doc: str) -> Schema:
    """An object with all of these keys, in this order."""
    return object_of(properties, tuple(properties), doc)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _count(doc: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": doc}


def _count_or_null(doc: str) -> Schema:
    return {"type": ["integer", "null"], "minimum": 0, "description": doc}


def _array(items: Schema, doc: str, minimum: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": minimum, "description": doc}


def _ids(doc: str) -> Schema:
    return _array({"type": "string"}, doc)


def _map(values: Schema, doc: str) -> Schema:
    return {"type": "object", "additionalProperties": values, "description": doc}


def _pair(first: Schema, second: Schema) -> Schema:
    return {"type": "array", "prefixItems": [first, second], "items": False, "minItems": 2}


def _tuple(items: list[Schema], doc: str) -> Schema:
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items), "description": doc}
