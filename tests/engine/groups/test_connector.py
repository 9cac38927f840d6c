"""External tokens, at once or loaded over some steps, and how requests end with a connector (7.15)."""

from __future__ import annotations

import pytest

from engine.step_trace import ExternalTokens, Load
from tests.engine.groups.support import FULL, GroupRun, call, window, zeroed
from tests.engine.helpers import Json, events, finished, scheduled, short, trace


def external(tokens: int) -> dict[str, object]:
    return {"tokens": tokens}


def load(tokens: int, steps: int = 2) -> dict[str, object]:
    return {"tokens": tokens, "async": True, "steps": steps}


def loading(prompt: int = 20, tokens: int = 8, steps: int = 2, **options: Json) -> GroupRun:
    """N = 13, B = 4: `a` is about to load."""
    run = GroupRun(13, connector=True, **options)
    run.add("a", [(100, prompt)], external=load(tokens, steps))
    return run


# ---- asynchronous


def test_a_load_takes_blocks_but_neither_budget_nor_a_running_slot() -> None:
    run = loading(max_num_seqs=1, max_num_batched_tokens=4)
    run.add("b", [(900, 4)])
    outcome = run.step()
    asked = call(outcome, "a")
    assert (asked.ext_comp, asked.new, asked.new_blocks) == (8, 0, ((),))
    assert asked.gate is not None
    assert asked.check is not None
    assert (asked.gate.needed, asked.check.needed) == (5, 2)
    assert (run.tables("a"), run.comp("a"), run.status("a")) == ([[1, 2]], 8, "WAITING_FOR_REMOTE_KVS")
    assert scheduled(outcome) == {"b": 4}
    assert [one[0] for one in events(outcome)] == ["stored"]  # b's
    assert (run.holding, run.running) == (["a"], ["b"])


def test_it_is_not_looked_at_until_the_load_has_come() -> None:
    run = loading()
    assert trace(run.step()).loads == (Load("a", "begun"),)
    outcome = run.step()
    assert (outcome.calls, scheduled(outcome)) == ([], {})
    assert trace(outcome).loads == (Load("a", "going on"), Load("a", "received"))
    outcome = run.step()
    assert trace(outcome).loads == (Load("a", "used"),)
    hashes = short(run.hashes("a"))
    assert events(outcome) == [
        ["stored", hashes[:2], None, 8, 4, 0],
        ["stored", hashes[2:5], hashes[1], 12, 4, 0],
    ]
    asked = call(outcome, "a")
    assert asked.gate is not None
    assert (asked.comp, asked.new, asked.gate.needed, run.status("a")) == (8, 12, 3, "RUNNING")


@pytest.mark.parametrize("steps", [0, 1])
def test_a_load_of_one_step_is_received_in_the_step_that_starts_it(steps: int) -> None:
    run = loading(prompt=8, tokens=8, steps=steps)
    run.step()
    assert run.comp("a") == 8
    outcome = run.step()
    asked = call(outcome, "a")
    assert (asked.comp, asked.new, scheduled(outcome)) == (7, 1, {"a": 1})
    assert events(outcome) == [["stored", short(run.hashes("a"))[:2], None, 8, 4, 0]]


def test_a_lookup_counts_once_with_the_local_hit() -> None:
    run = loading()
    counted = run.step().prefix_cache
    assert (counted.requests, counted.queries, counted.hits) == (1, 20, 0)
    assert [run.step().prefix_cache.requests for _ in range(2)] == [0, 0]


def test_what_is_under_way_is_reserved() -> None:
    for drafts, wanted in ((0, 6), (2, 8)):
        options = {"num_speculative_tokens": drafts, "num_lookahead_tokens": drafts}
        run = GroupRun(21, connector=True, long_prefill_token_threshold=8, **options)
        run.add("a", [(100, 30)])
        run.add("b", [(900, 20)], external=load(8))
        outcome = run.step()
        assert scheduled(outcome) == {"a": 8}
        assert call(outcome, "b").reserved_blocks == wanted
        check = call(outcome, "b").check
        assert check is not None
        assert check.spare == check.free - wanted - 2


def test_a_load_that_leaves_too_little_for_others_is_refused_and_blocks_the_queue() -> None:
    run = GroupRun(12, connector=True, long_prefill_token_threshold=8)
    run.add("a", [(100, 40)])
    run.add("b", [(900, 12)], external=load(8))
    run.add("c", [(800, 1)])
    outcome = run.step()
    asked = call(outcome, "b")
    assert asked.gate is not None
    assert (asked.gate.passes, asked.reserved_blocks, asked.refused_by) == (True, 8, "check")
    assert asked.shortfall == 1
    assert (scheduled(outcome), run.waiting) == ({"a": 8}, ["b", "c"])


def test_a_received_request_that_gets_no_blocks_holds_up_everybody() -> None:
    run = GroupRun(8, connector=True, scheduler_reserve_full_isl=False)
    run.add("a", [(100, 20)], external=load(8))
    run.add("b", [(900, 16)])
    run.steps(2)
    run.add("c", [(800, 1)])
    outcome = run.step()
    assert call(outcome, "a").granted is False
    assert (run.status("a"), run.comp("a"), run.holding, run.waiting) == ("WAITING", 8, ["a"], ["c"])
    run.abort("b")
    outcome = run.step()
    assert (scheduled(outcome), trace(outcome).loads) == ({"a": 12, "c": 1}, ())


def test_requests_put_aside_keep_their_order() -> None:
    run = GroupRun(41, connector=True)
    for name in "abc":
        run.add(name, [(ord(name) * 1000, 20)], external=load(8, steps=3))
    for _ in range(3):
        run.step()
        assert run.holding == ["a", "b", "c"]


# ---- at once


def test_external_tokens_at_once_are_registered_in_the_same_call() -> None:
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 20)], external=external(9))
    outcome = run.step()
    asked = call(outcome, "a")
    assert (asked.ext_comp, asked.new, asked.new_blocks) == (9, 11, ((4, 5),))
    assert run.tables("a") == [[1, 2, 3, 4, 5]]
    assert events(outcome) == [["stored", short(run.hashes("a"))[:5], None, 20, 4, 0]]
    assert trace(outcome).external == (ExternalTokens("a", 0, 9, is_async=False),)


def test_at_once_a_token_is_left_to_compute() -> None:
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 8)], external=external(20))
    asked = call(run.step(), "a")
    assert (asked.ext_comp, asked.new) == (7, 1)


def test_external_tokens_stand_behind_the_local_hit() -> None:
    run = GroupRun(13, connector=True)
    run.add("warm", [(100, 9)], max_tokens=1)
    run.step()
    run.add("a", [(100, 20)], external=external(14))
    asked = call(run.step(), "a")
    assert (asked.hit_blocks, asked.new_comp, asked.ext_comp, asked.new) == (((1, 2),), 8, 6, 6)
    assert (asked.new_blocks, run.tables("a")) == (((5,),), [[1, 2, 3, 4, 5]])


def test_one_that_skips_the_cache_or_was_preempted_gets_nothing_external() -> None:
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 20)], external=external(9), skip_reading_prefix_cache=True)
    outcome = run.step()
    assert (call(outcome, "a").ext_comp, trace(outcome).external) == (0, ())
    run.add("b", [(900, 12)], external=external(9))
    assert call(run.step(), "b").ext_comp == 9
    run.reset(running=True)
    outcome = run.step()
    assert [one.ext_comp for one in outcome.calls] == [0, 0]


def test_with_a_window_only_blocks_in_it_are_taken_for_external_tokens() -> None:
    run = GroupRun(13, window(6), connector=True)
    run.add("a", [(100, 30)], external=external(17))
    assert call(run.step(), "a").new_blocks == ((3, 4, 5),)
    assert run.tables("a") == [[0, 0, 0, 1, 2, 3, 4, 5]]


def test_blocks_of_a_load_are_not_zeroed_those_of_tokens_at_once_are() -> None:
    for plan, wanted in ((load(8), None), (external(8), [1, 2, 3])):
        run = GroupRun(13, connector=True, needs_kv_cache_zeroing=True)
        run.add("a", [(100, 12)], external=plan)
        assert zeroed(run.step()) == wanted


# ---- ends


def test_with_a_connector_a_window_goes_back_in_two_goes() -> None:
    for connector, wanted in ((False, [5, 4, 3, 2, 1]), (True, [3, 2, 1, 5, 4])):
        run = GroupRun(13, window(6), connector=connector)
        run.add("a", [(100, 20)], max_tokens=1)
        run.step()
        assert run.queue[-5:] == wanted


def test_an_aborted_load_keeps_blocks_and_place_until_it_is_received() -> None:
    run = loading(steps=3)
    run.step()
    run.abort("a")
    assert (run.status("a"), run.tables("a"), run.holding) == ("FINISHED_ABORTED", [[1, 2]], [])
    requests = run.state["requests"]
    assert isinstance(requests, dict)
    assert list(requests) == ["a"]
    outcome = run.step()
    assert (finished(outcome), run.tables("a")) == (["a"], [[1, 2]])
    outcome = run.step()
    assert (finished(outcome), trace(outcome).loads) == ([], (Load("a", "received"),))
    assert run.state["requests"] == {}
    assert run.queue[:3] == [2, 1, 3]


def test_an_aborted_load_leaves_its_window_at_once() -> None:
    run = GroupRun(13, window(6), connector=True)
    run.add("a", [(100, 30)], external=load(20, steps=3))
    run.step()
    table = run.tables("a")[0]
    run.abort("a")
    assert run.tables("a")[0] == table == [0, 0, 0, 1, 2]


def test_a_load_aborted_after_it_came_goes_at_once() -> None:
    run = loading(steps=1)
    run.step()
    run.abort("a")
    assert (run.state["requests"], run.queue[:3]) == ({}, [2, 1, 3])
    assert finished(run.step()) == ["a"]


def test_a_load_may_be_aborted_while_a_step_runs() -> None:
    run = loading(steps=2)
    run.step()
    outcome = run.step("a")
    assert trace(outcome).loads == (Load("a", "going on"), Load("a", "received"))
    assert (run.state["requests"], run.queue[:3]) == ({}, [2, 1, 3])
    assert finished(run.step()) == ["a"]


def test_aborting_it_twice_does_nothing_more() -> None:
    run = loading(steps=3)
    run.step()
    run.abort("a")
    before = run.state
    assert run.abort("a").log == ()
    assert run.state == before


def test_a_request_aborted_while_its_step_runs_is_released_without_the_tokens_of_that_step() -> None:
    """Not in the document; the real scheduler does so: 5, 4 stay behind 3, 2 though 20 tokens were scheduled."""
    run = GroupRun(13, window(6), connector=True, max_num_batched_tokens=12)
    run.add("a", [(100, 20)])
    run.step()
    run.step("a")
    assert run.queue == [6, 7, 8, 9, 10, 11, 12, 1, 5, 4, 3, 2]


def test_between_steps_it_is_released_with_all_its_tokens() -> None:
    run = GroupRun(13, window(6), connector=True, max_num_batched_tokens=12)
    run.add("a", [(100, 22)])
    run.steps(2)
    assert run.comp("a") == 22
    run.abort("a")
    assert run.queue == [6, 7, 8, 9, 10, 11, 12, 1, 4, 3, 2, 5]


def test_a_load_of_a_whole_prompt_of_one_token_comes_again_and_again() -> None:
    """Not in the document; the real scheduler does so, for comp = 0 means that nothing was looked up."""
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 1)], external=load(1, steps=1))
    first = trace(run.step()).loads
    assert first == (Load("a", "begun"), Load("a", "received"))
    for _ in range(4):
        outcome = run.step()
        assert trace(outcome).loads == (Load("a", "used"), *first)
        assert (call(outcome, "a").ext_comp, run.tables("a"), run.free) == (1, [[1]], 11)
        assert outcome.prefix_cache.queries == 1
        assert run.history.holders == {1: ("a",)}
    run.abort("a")
    assert run.free == 12


# ---- resets


def test_a_reset_is_refused_while_a_load_holds_blocks() -> None:
    run = loading(steps=2)
    run.step()
    assert run.reset().reset is False
    run.abort("a")
    assert run.reset().reset is False
    run.step()
    assert run.reset().reset is True


def test_a_connector_changes_nothing_for_full_attention_without_external_tokens() -> None:
    plain, other = GroupRun(13, FULL), GroupRun(13, FULL, connector=True)
    for run in (plain, other):
        run.add("a", [(100, 20)], max_tokens=3)
        run.add("b", [(100, 20)], max_tokens=3)
        run.steps(4)
    assert plain.state == other.state
