"""Records: what each action did, in the format of behaviour 0.5 and the bytes of 0.6."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from engine import snapshot
from engine.actions import Action
from engine.block_hash import short_hash
from engine.call_trace import CallTrace
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent
from engine.simulation import Outcome, Simulation

Record = dict[str, object]


def records(simulation: Simulation, actions: Iterable[Action]) -> Iterator[Record]:
    """Execute the actions and yield the record of each. O(pool) an action: the state is written out.

    Raises:
        RequestError: an action is impossible when its turn comes; the records before it were yielded.
    """
    for action in actions:
        yield apply_recorded(simulation, action)


def apply_recorded(simulation: Simulation, action: Action) -> Record:
    """Execute one action and return its record.

    Raises:
        RequestError: the action is impossible now; nothing has changed.
    """
    scheduled: list[dict[str, object]] = []
    outcome = simulation.apply(action, lambda: scheduled.append(current_state(simulation)))
    record: Record = {"action": outcome.index, "do": action.do}
    if outcome.output is not None:
        record |= _step(outcome, scheduled[0])
    if outcome.reset is not None:
        record["reset"] = outcome.reset
    record["state"] = current_state(simulation)
    record["events"] = [event_as_list(event) for event in outcome.events]
    record["prefix_cache"] = asdict(outcome.prefix_cache)
    return record


def current_state(simulation: Simulation) -> dict[str, object]:
    """The state now, as records write it."""
    return snapshot.state(simulation.scheduler, simulation.scripts)


def dumps(record: object) -> str:
    """The bytes of 0.6: compact, keys in their order, ASCII."""
    return json.dumps(record, separators=(",", ":"))


def _step(outcome: Outcome, scheduled: dict[str, object]) -> Record:
    output = outcome.output
    assert output is not None
    return {
        "num_scheduled_tokens": [list(item) for item in output.num_scheduled_tokens.items()],
        "spec_tokens": {name: len(drafts) for name, drafts in output.scheduled_spec_decode_tokens.items()},
        "preempted": sorted(output.preempted_req_ids),
        "finished": sorted(output.finished_req_ids),
        "zero_blocks": output.new_block_ids_to_zero,
        "copies": [list(copy) for copy in output.kv_cache_block_copies],
        "allocate_slots": [call_as_dict(call) for call in outcome.calls],
        "scheduled": scheduled,
        "sampled": outcome.sampled,
    }


def call_as_dict(call: CallTrace) -> Record:
    """One `allocate_slots` call as records write it."""
    gate_refused = call.refused_by == "gate"
    return {
        "request": call.request,
        "comp": call.comp,
        "new_comp": call.new_comp,
        "ext_comp": call.ext_comp,
        "new": call.new,
        "lookahead": call.lookahead,
        "hit_blocks": [list(group) for group in call.hit_blocks] if any(call.hit_blocks) else [],
        "full_sequence_must_fit": call.full_sequence_must_fit,
        "watermark_blocks": call.watermark_blocks,
        "reserved_blocks": call.reserved_blocks,
        "whole_sequence_blocks": call.gate.needed if call.gate else None,
        "released_blocks": None if gate_refused else call.released_count,
        "blocks_to_allocate": None if gate_refused or call.check is None else call.check.needed,
        "free_before": call.free_before,
        "free_after": call.free_after,
        "new_blocks": None if call.new_blocks is None else [list(group) for group in call.new_blocks],
    }


def event_as_list(event: KVCacheEvent) -> list[object]:
    """One KV event as records write it."""
    match event:
        case BlockStored():
            hashes = [short_hash(block_hash) for block_hash in event.block_hashes]
            parent = event.parent_block_hash and short_hash(event.parent_block_hash)
            return ["stored", hashes, parent, len(event.token_ids), event.block_size, event.group]
        case BlockRemoved():
            return ["removed", [short_hash(event.block_hash)], event.group]
        case AllBlocksCleared():
            return ["cleared"]
