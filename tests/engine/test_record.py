"""Records (0.5) and their bytes (0.6)."""

from __future__ import annotations

import json
import re
from pathlib import Path

from engine.actions import Step
from engine.record import apply_recorded, dumps
from tests.engine.helpers import Run

BEHAVIOUR = Path(__file__).parent.parent.parent / "docs" / "engine-behaviour.md"


def reference_bytes() -> str:
    """The whole small result that 0.6 prints, its line breaks taken out."""
    found = re.search(r'^ +\{"action":1,.*?"preempted_hits":0\}\}$', BEHAVIOUR.read_text("utf-8"), re.S | re.M)
    assert found is not None
    return "".join(line.strip() for line in found[0].splitlines())


def small() -> Run:
    run = Run(4, max_model_len=16, max_num_batched_tokens=8, max_num_seqs=2)
    run.add("a", [(10, 5)], max_tokens=1)
    return run


def test_the_example_of_the_behaviour_document_byte_for_byte() -> None:
    assert dumps(apply_recorded(small().sim, Step())) == reference_bytes()


def test_keys_stand_in_the_order_of_the_document() -> None:
    record = apply_recorded(small().sim, Step())
    step = "num_scheduled_tokens spec_tokens preempted finished zero_blocks copies allocate_slots scheduled sampled"
    assert list(record) == ["action", "do", *step.split(), "state", "events", "prefix_cache"]


def test_non_ascii_is_escaped_and_there_are_no_spaces() -> None:
    run = Run(4)
    run.add("Zoë", 3)
    text = dumps(run.state)
    assert '"waiting":["Zo\\u00eb"]' in text
    assert " " not in text


def test_usage_is_rounded_to_nine_decimals() -> None:
    for num_blocks, wanted in ((4, "0.666666667"), (9, "0.25"), (3, "1.0")):
        run = Run(num_blocks)
        assert dumps(run.state).endswith('"usage":0.0}')
        run.add("a", 5)
        run.step()
        assert dumps(run.state).endswith(f'"usage":{wanted}}}')


def test_a_pool_of_only_the_null_block_has_the_integer_0() -> None:
    assert dumps(Run(1).state).endswith('"num_free_blocks":0,"usage":0}')


def test_scheduled_is_the_state_before_the_step_is_accounted_for() -> None:
    run = Run(9)
    run.add("a", 5, max_tokens=1)
    record = json.loads(dumps(apply_recorded(run.sim, Step(("a",)))))
    assert record["scheduled"]["requests"]["a"]["num_computed_tokens"] == 5
    assert record["state"]["requests"] == {}


def test_a_request_used_again_keeps_its_first_place() -> None:
    run = Run(9)
    run.add("b", 3, max_tokens=1)
    run.add("a", 3)
    run.step()
    run.add("b", 3)
    requests = run.state["requests"]
    assert isinstance(requests, dict)
    assert list(requests) == ["b", "a"]


def test_a_waiting_request_has_one_empty_table() -> None:
    run = Run(9)
    run.add("a", 3)
    requests = run.state["requests"]
    assert isinstance(requests, dict)
    assert requests["a"]["block_ids"] == [[]]


def test_cached_is_sorted_by_hash_and_lists_duplicates_in_order_of_insertion() -> None:
    run = Run(9)
    run.add("a", [(100, 8)])
    run.add("b", [(100, 8)])
    run.add("c", [(900, 12)])
    run.step()
    cached = run.state["cached"]
    assert isinstance(cached, list)
    assert cached == sorted(cached)
    assert sorted(blocks for _, _, blocks in cached) == [[1], [2, 3], [4], [5], [6]]
