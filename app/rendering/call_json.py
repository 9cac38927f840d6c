"""One `allocate_slots` call for programs: its numbers as records write them, every stage, and the verdict in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

from app.rendering.calls import verdict
from app.rendering.moment import Moment
from app.rendering.words import plain
from engine.block_hash import short_hash
from engine.call_trace import CallTrace, FitTest
from engine.record import call_as_dict
from engine.trace import STAGES

Data = dict[str, Any]


def call_json(moment: Moment, call: CallTrace) -> Data:
    """`{"allocate_slots", "stages", "verdict"}`; the stages are all eight, each with whether it was reached."""
    reached = call.reached
    stages = [
        {"stage": name, "reached": name in reached, **(MAKERS[name](call) if name in reached else {})}
        for name in STAGES
    ]
    return {"allocate_slots": call_as_dict(call), "stages": stages, "verdict": plain(verdict(moment, call))}


def _gate(call: CallTrace) -> Data:
    assert call.gate is not None
    return _test(call.gate)


def _test(test: FitTest) -> Data:
    """`needed + watermark_blocks <= free - reserved_blocks`, for so many tokens; a negative `spare` is missing."""
    return {
        "passes": test.passes,
        "tokens": test.tokens,
        "needed": test.needed,
        "watermark_blocks": test.headroom,
        "free": test.free,
        "reserved_blocks": test.reserved,
        "spare": test.spare,
    }


def _release(call: CallTrace) -> Data:
    given = [
        {"group": one.group, "blocks": [*one.blocks], "front": [*one.front], "back": [*one.back]}
        for one in call.released
    ]
    return {"released_blocks": call.released_count, "given_back": given}


def _count(call: CallTrace) -> Data:
    assert call.check is not None
    return {"tokens": call.check.tokens, "groups": [asdict(terms) for terms in call.check.terms]}


def _check(call: CallTrace) -> Data:
    assert call.check is not None
    return _test(call.check)


def _touch(call: CallTrace) -> Data:
    return {"blocks": [asdict(touched) for touched in call.touched]}


def _pop(call: CallTrace) -> Data:
    blocks = [
        {"group": one.group, "block": one.block, "lost": [short_hash(key[0]) for key in one.lost]}
        for one in call.popped
    ]
    return {"blocks": blocks}


def _hash(call: CallTrace) -> Data:
    blocks = [
        {"group": some.group, "entry": entry, "block": block, "hash": short_hash(block_hash)}
        for some in call.registered
        for entry, block, block_hash in zip(some.indexes, some.blocks, some.hashes, strict=True)
    ]
    partial = [
        {"group": one.group, "tokens": one.num_tokens, "block": one.block, "hash": short_hash(one.block_hash)}
        for one in call.partial
    ]
    return {"blocks": blocks, "partial": partial}


def _return(call: CallTrace) -> Data:
    new = None if call.new_blocks is None else [[*group] for group in call.new_blocks]
    return {"free_before": call.free_before, "free_after": call.free_after, "new_blocks": new}


MAKERS: Final[dict[str, Callable[[CallTrace], Data]]] = {
    "gate": _gate,
    "release": _release,
    "count": _count,
    "check": _check,
    "touch": _touch,
    "pop": _pop,
    "hash": _hash,
    "return": _return,
}
