"""The scheduler (6): the two passes, preemption, the step's output, aborts and resets."""

from __future__ import annotations

import pytest

from engine.errors import RequestError
from engine.kv_events import BlockStored
from engine.request import RequestStatus
from engine.sched.output import SchedulerOutput
from engine.simulation import Outcome
from tests.engine.helpers import (
    Run,
    drafts,
    events,
    finished,
    preempted,
    removed,
    scheduled,
    short,
    trace,
    undone_victim,
)


def output(outcome: Outcome) -> SchedulerOutput:
    assert outcome.output is not None
    return outcome.output


def granted(outcome: Outcome) -> list[tuple[str, tuple[int, ...] | None]]:
    """Every call, and the new blocks it got."""
    return [(call.request, None if call.new_blocks is None else call.new_blocks[0]) for call in outcome.calls]


# ---- worked examples, 6.11


def test_x1_fcfs_preempts_the_last_admitted() -> None:
    run = Run(7)
    run.add("a", 8)
    run.add("b", 8)
    run.add("c", [(500, 7)])
    run.step()
    assert [run.table(name) for name in "abc"] == [[1, 2], [3, 4], [5, 6]]
    assert run.free == 0
    lost = short(run.hashes("c"))[0]
    outcome = run.step()
    assert granted(outcome) == [("a", None), ("a", (6,)), ("b", (5,))]
    assert removed(outcome) == [lost]
    assert (preempted(outcome), run.running, run.waiting, run.free) == (["c"], ["a", "b"], ["c"], 0)


def test_x2_a_priority_self_victim_ends_the_pass() -> None:
    run = Run(7, policy="priority")
    run.add("v", 7, priority=5)
    run.step()
    run.add("a", 5, priority=0)
    run.add("b", 5, priority=1)
    run.step()
    assert ([run.table(name) for name in "vab"], run.free) == ([[1, 2], [3, 4], [5, 6]], 0)
    outcome = run.step()
    assert (scheduled(outcome), preempted(outcome), run.running) == ({}, ["v"], ["a", "b"])
    assert list(scheduled(run.step())) == ["a", "b"]


def test_x3_an_undone_victim_leaves_hashes_of_tokens_never_computed() -> None:
    run = undone_victim()
    assert (run.table("v"), run.comp("v"), run.table("a"), run.free) == ([1, 2, 3, 4], 16, [5, 6], 2)
    lost = short(run.hashes("v"))[5]
    outcome = run.step()
    assert granted(outcome) == [("v", (7, 8)), ("a", None), ("a", (8,))]
    assert scheduled(outcome) == {"a": 1}
    assert removed(outcome) == [lost]
    assert [kind for kind, *_ in events(outcome)] == ["stored", "removed"]
    assert run.queue == [7, 4, 3, 2, 1]
    [lookup] = trace(run.step()).lookups
    assert (lookup.blocks, lookup.num_tokens) == (((1, 2, 3, 4, 7),), 20)


def test_x4_drafts_are_verified_and_the_rest_is_rolled_back() -> None:
    run = Run(9, num_speculative_tokens=3)
    run.add("a", 6, accept=[1, 3])
    first = run.step()
    assert (first.sampled, run.request("a").num_tokens, run.comp("a")) == ({"a": 1}, 7, 6)
    second = run.step()
    assert (scheduled(second), drafts(second), second.sampled) == ({"a": 4}, {"a": 3}, {"a": 2})
    assert (run.comp("a"), run.request("a").num_tokens, run.table("a")) == (8, 9, [1, 2, 3])
    assert not run.hashed(2)  # full of known tokens, but was capped at 7 when it was registered
    third = run.step()
    assert (drafts(third), third.sampled) == ({"a": 3}, {"a": 4})
    assert (run.comp("a"), run.request("a").num_tokens, run.hashed(2)) == (12, 13, True)


def test_x5_the_budget_cuts_drafts_and_they_are_lost() -> None:
    run = Run(20, num_speculative_tokens=3, max_num_batched_tokens=5)
    run.add("a", 2, accept=[0])
    run.add("b", 2, accept=[0])
    run.step()
    assert [len(run.request(name).spec_token_ids) for name in "ab"] == [3, 3]
    outcome = run.step()
    assert (scheduled(outcome), drafts(outcome)) == ({"a": 4, "b": 1}, {"a": 3})


def test_x5_max_model_len_cuts_drafts_too() -> None:
    run = Run(20, num_speculative_tokens=3, max_model_len=12)
    run.add("a", 8, accept=[0])
    run.step()
    assert run.comp("a") == 8
    outcome = run.step()
    assert (scheduled(outcome), drafts(outcome)) == ({"a": 3}, {"a": 2})


def test_x6_a_single_first_token_is_padded_with_placeholders() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", [(100, 9)], accept=[0])
    run.step()
    run.add("b", [(100, 9)], accept=[0])
    outcome = run.step()
    assert (scheduled(outcome)["b"], drafts(outcome)["b"], outcome.calls[-1].hit_blocks) == (4, 3, ((1, 2),))
    assert output(outcome).scheduled_spec_decode_tokens["b"] == [-1, -1, -1]
    assert (run.comp("b"), run.request("b").num_tokens) == (9, 10)


@pytest.mark.parametrize(("alone", "wanted"), [(False, 4), (True, 1)])
def test_x6_a_one_token_prompt_is_padded_only_beside_a_running_request(alone: bool, wanted: int) -> None:
    run = Run(20, num_speculative_tokens=3)
    if not alone:
        run.add("a", 9)
        run.step()
    run.add("b", 1)
    assert scheduled(run.step())["b"] == wanted


# ---- adding, 6.1


def test_a_live_id_is_refused() -> None:
    run = Run(9)
    run.add("a", 5)
    run.step()
    with pytest.raises(RequestError, match="still alive") as caught:
        run.scheduler.add_request(run.request("a"))
    assert caught.value.code == "live_id"
    assert run.running == ["a"]


def test_the_running_list_is_in_order_of_admission_in_both_policies() -> None:
    run = Run(30, policy="priority")
    run.add("a", 5, priority=3)
    run.step()
    run.add("b", 5, priority=2)
    run.add("c", 5, priority=1)
    run.step()
    assert run.running == ["a", "c", "b"]


# ---- running pass, 6.3


def test_running_requests_come_before_admissions() -> None:
    run = Run(30)
    run.add("b", 5)
    run.step()
    run.add("a", 5)
    assert list(scheduled(run.step())) == ["b", "a"]


def test_the_budget_is_used_up_in_order() -> None:
    run = Run(30, max_num_batched_tokens=10)
    for name, tokens in (("a", 12), ("b", 12), ("c", 3)):
        run.add(name, tokens)
    assert scheduled(run.step()) == {"a": 10}
    assert scheduled(run.step()) == {"a": 2, "b": 8}
    assert scheduled(run.step()) == {"a": 1, "b": 4, "c": 3}


def test_the_threshold_cuts_everybody_while_somebody_else_is_there() -> None:
    run = Run(60, max_num_batched_tokens=64, long_prefill_token_threshold=4)
    run.add("a", 10)
    run.add("b", 10)
    seen = [scheduled(run.step()) for _ in range(3)]
    assert seen == [{"a": 4, "b": 4}, {"a": 4, "b": 4}, {"a": 2, "b": 2}]


def test_a_request_at_the_end_of_the_context_stops() -> None:
    run = Run(20, max_model_len=8)
    run.add("a", 6, max_tokens=50)
    run.steps(2)
    assert run.scheduler.requests == {}
    assert finished(run.step()) == ["a"]


def test_a_prompt_of_max_model_len_samples_one_token() -> None:
    run = Run(20, max_model_len=8)
    run.add("a", 8, max_tokens=50)
    assert run.step().sampled == {"a": 1}
    assert run.scheduler.requests == {}


def test_priority_preempts_the_largest_priority_then_the_latest() -> None:
    run = Run(7, policy="priority")
    run.add("late", 5, priority=3)
    run.add("low", 5, priority=1)
    run.step()
    assert run.running == ["low", "late"]
    run.add("later", 5, priority=3)
    run.step()
    assert run.running == ["low", "late", "later"]
    run.steps(2)  # low and late fill their second block; then low needs a third
    outcome = run.step()
    assert preempted(outcome) == ["later"]


def test_equal_pairs_preempt_the_earliest_in_the_list() -> None:
    run = Run(7, policy="priority")
    for name in ("a", "b", "c"):
        run.add(name, 7, priority=1)
    for request in run.scheduler.requests.values():
        request.arrival_time = 0.0
    run.steps(2)
    assert preempted(run.step()) == ["a"]


def test_an_undone_victims_tokens_go_back_to_the_budget() -> None:
    """v takes 8 of 16 and is undone, a takes 1: b gets the whole threshold of 8, of which 7 were left otherwise."""
    run = Run(
        9,
        policy="priority",
        max_num_batched_tokens=16,
        long_prefill_token_threshold=8,
        scheduler_reserve_full_isl=False,
    )
    run.add("v", 25, priority=5)
    run.add("passing", 1, max_tokens=1, priority=9)
    run.step()
    run.add("a", 4)
    run.add("b", 20)
    assert scheduled(run.step()) == {"v": 8, "a": 4, "b": 4}
    outcome = run.step()
    assert [(one.victim, one.by, one.undone) for one in trace(outcome).preemptions] == [("v", "a", 8)]
    assert scheduled(outcome) == {"a": 1, "b": 8}


def test_an_undone_victims_drafts_leave_the_output() -> None:
    run = Run(4, policy="priority", num_speculative_tokens=3)
    run.add("v", 3, priority=5)
    run.step()
    run.add("a", 4)
    run.step()
    assert (run.table("v"), run.table("a"), run.free) == ([1, 2], [3], 0)
    outcome = run.step()
    assert [(one.request, one.scheduled) for one in trace(outcome).drafts] == [("v", 3), ("a", 3)]
    assert (scheduled(outcome), drafts(outcome), preempted(outcome)) == ({"a": 4}, {"a": 3}, ["v"])
    assert run.request("v").spec_token_ids == []


# ---- waiting pass, 6.4


def test_admissions_of_one_step_share_blocks_of_each_other() -> None:
    run = Run(20)
    run.add("a", [(100, 9)])
    run.add("b", [(100, 9)])
    outcome = run.step()
    assert scheduled(outcome) == {"a": 9, "b": 1}


def test_nobody_is_tried_behind_an_obstacle() -> None:
    run = Run(7)
    run.add("a", 30)
    run.add("b", 4)
    assert [call.request for call in run.step().calls] == ["a"]


def test_max_num_seqs_limits_the_running_list() -> None:
    run = Run(30, max_num_seqs=2)
    for name in "abc":
        run.add(name, 5)
    assert list(scheduled(run.step())) == ["a", "b"]
    run.abort("a")
    assert list(scheduled(run.step())) == ["b", "c"]


def test_whole_prefills_never_start_in_part() -> None:
    run = Run(30, max_num_batched_tokens=20, max_model_len=20, max_num_seqs=4, enable_chunked_prefill=False)
    run.add("a", 12)
    run.add("b", 9)
    assert scheduled(run.step()) == {"a": 12}
    assert scheduled(run.step()) == {"a": 1, "b": 9}


def test_padding_needs_a_context_that_holds_it() -> None:
    """c0 + (1 + k) + 1 <= max_model_len."""
    for max_model_len, wanted in ((13, 4), (12, 1)):
        run = Run(20, num_speculative_tokens=3, max_model_len=max_model_len)
        run.add("a", [(100, 9)], max_tokens=1)
        run.step()
        run.add("b", [(100, 9)])
        assert scheduled(run.step()) == {"b": wanted}


def test_no_padding_while_a_prefill_runs() -> None:
    run = Run(30, num_speculative_tokens=3, max_num_batched_tokens=16)
    run.add("a", 30)
    run.step()
    run.add("b", 1)
    assert scheduled(run.step()) == {"a": 14, "b": 1}  # a was in prefill in its previous step


def test_an_admission_of_the_same_step_does_not_bring_padding() -> None:
    run = Run(30, num_speculative_tokens=3)
    run.add("a", 5)
    run.add("b", 1)
    assert scheduled(run.step()) == {"a": 5, "b": 1}


# ---- preemption, 6.5


def test_several_victims_of_a_pass_keep_their_order() -> None:
    run = Run(5, scheduler_reserve_full_isl=False, max_num_batched_tokens=8)
    run.add("a", 20)
    run.step()
    run.add("b", 4)
    run.add("c", 4)
    # a has 2 blocks and needs 2 more; nobody else fits yet
    outcome = run.step()
    assert (scheduled(outcome), run.running) == ({"a": 8}, ["a"])
    run.step()
    assert run.waiting == ["a", "b", "c"]


def test_a_preempted_request_cannot_come_back_in_the_same_step() -> None:
    run = Run(5)
    run.add("a", 8, max_tokens=1)
    run.add("b", 7, max_tokens=9)
    run.step()  # a has ended: 2 blocks are free
    run.add("c", 7, max_tokens=9)
    run.step()
    outcome = run.step()
    while not preempted(outcome):
        outcome = run.step()
    assert (scheduled(outcome), run.waiting) == ({"b": 1}, ["c"])


# ---- the step's output, 6.6


def test_a_new_request_is_sent_whole_once() -> None:
    run = Run(20, max_num_batched_tokens=8)
    run.add("a", [(100, 10)])
    [new] = output(run.step()).scheduled_new_reqs
    assert (new.request_id, new.prompt_token_ids) == ("a", list(range(100, 110)))
    assert (new.block_ids, new.num_computed_tokens) == (([1, 2],), 0)
    second = output(run.step())
    assert second.scheduled_new_reqs == []
    [cached] = second.scheduled_cached_reqs
    assert (cached.request_id, cached.resumed, cached.new_block_ids) == ("a", False, ([3],))
    assert (cached.num_computed_tokens, cached.num_output_tokens, cached.all_token_ids) == (8, 0, None)


def test_a_new_requests_table_holds_its_hit() -> None:
    run = Run(20)
    run.add("a", [(100, 9)], max_tokens=1)
    run.step()
    run.add("b", [(100, 9)])
    [new] = output(run.step()).scheduled_new_reqs
    assert (new.block_ids, new.num_computed_tokens) == (([1, 2, 3],), 8)


def test_what_was_sent_never_changes_afterwards() -> None:
    run = Run(20)
    run.add("a", 4)
    first = output(run.step())
    run.steps(4)
    assert len(run.table("a")) == 2
    assert first.scheduled_new_reqs[0].block_ids == ([1],)
    run.reset(running=True)
    second = output(run.step())
    table = run.table("a")
    run.steps(4)
    assert len(run.table("a")) > len(table)
    assert second.scheduled_cached_reqs[0].new_block_ids == (table,)


def test_without_new_blocks_null_is_sent() -> None:
    run = Run(20)
    run.add("a", 5)
    run.step()
    [cached] = output(run.step()).scheduled_cached_reqs
    assert (cached.new_block_ids, cached.num_computed_tokens, cached.num_output_tokens) == (None, 5, 1)


def test_a_resumed_request_sends_its_whole_table_and_all_its_tokens_last() -> None:
    run = Run(20)
    run.add("z", 5)
    run.step()
    run.add("a", [(100, 9)])
    run.step()
    run.reset(running=True)
    run.add("new", 5)
    step = output(run.step())
    assert [one.request_id for one in step.scheduled_new_reqs] == ["new"]
    z, a = step.scheduled_cached_reqs
    assert (z.request_id, a.request_id, z.resumed, a.resumed) == ("z", "a", True, True)
    assert a.all_token_ids is None  # it was scheduled in the step before
    assert a.new_block_ids == (run.table("a"),)
    assert step.preempted_req_ids == {"z", "a"}


def test_all_token_ids_go_to_a_request_that_missed_the_step_before() -> None:
    run = Run(20, max_num_batched_tokens=5)
    run.add("a", 3)
    run.add("b", [(100, 2)], output=[(500, 30)])
    run.step()
    run.request("a").spec_token_ids = [9, 9, 9, 9]
    assert scheduled(run.step()) == {"a": 5}  # nothing is left for b
    a, b = output(run.step()).scheduled_cached_reqs
    assert (a.all_token_ids, b.all_token_ids) == (None, [100, 101, 500])


def test_total_tokens_of_a_step() -> None:
    run = Run(20)
    run.add("a", 5)
    run.add("b", 6)
    assert output(run.step()).total_num_scheduled_tokens == 11
    assert output(Run(3).step()).total_num_scheduled_tokens == 0


# ---- update_from_output, 6.8


def test_a_stop_token_ends_the_request_and_the_rest_is_thrown_away() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 4, output=[(500, 40)], stop_token_ids=[502], accept=[3])
    run.step()
    request = run.request("a")
    outcome = run.step()  # truth: 501, 502, 503, 504
    assert outcome.sampled == {"a": 2}
    assert request.status is RequestStatus.FINISHED_STOPPED
    assert request.all_token_ids[-3:] == [500, 501, 502]
    assert finished(run.step()) == ["a"]


def test_a_stop_token_wins_over_the_length() -> None:
    run = Run(20)
    run.add("a", 4, max_tokens=1, output=[(500, 40)], stop_token_ids=[500])
    assert [one.status for one in trace(run.step()).finishes] == ["FINISHED_STOPPED"]


@pytest.mark.parametrize("options", [{"max_tokens": 2}, {"max_tokens": 90}], ids=["max_tokens", "max_model_len"])
def test_the_length_ends_a_request(options: dict[str, int]) -> None:
    run = Run(20, max_model_len=8 if options["max_tokens"] == 90 else 64)
    run.add("a", 6, **options)
    run.step()
    assert [one.status for one in trace(run.step()).finishes] == ["FINISHED_LENGTH_CAPPED"]


def test_blocks_of_several_that_stop_are_freed_in_scheduling_order() -> None:
    run = Run(12)
    for name in "abc":
        run.add(name, 7, max_tokens=1)
    run.step()
    assert run.queue == [6, 4, 2, 7, 8, 9, 10, 11, 1, 3, 5]


def test_the_order_of_those_that_go_on_stays() -> None:
    run = Run(20)
    for name, tokens in (("a", 9), ("b", 1), ("c", 9), ("d", 1), ("e", 9)):
        run.add(name, 3, max_tokens=tokens)
    run.step()
    assert run.running == ["a", "c", "e"]


def test_rolling_back_never_unregisters_a_block() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 6, accept=[1, 0, 2])
    seen = 0
    for _ in range(6):
        run.step()
        hashed = sum(run.hashed(block) for block in run.table("a"))
        assert hashed >= seen
        assert hashed * 4 <= run.request("a").num_tokens
        seen = hashed


def test_drafts_behind_a_prefill_chunk_and_of_unknown_requests_are_ignored() -> None:
    run = Run(20, num_speculative_tokens=2, max_num_batched_tokens=8)
    run.add("a", 12)
    run.step()
    run.scheduler.update_draft_token_ids({"a": [1, 2], "nobody": [3]})
    assert run.request("a").spec_token_ids == []
    run.step()
    run.scheduler.update_draft_token_ids({"a": [1, 2]})
    assert run.request("a").spec_token_ids == [1, 2]


# ---- abort, 6.9 and aborts while a step runs (0.4)


def test_aborting_an_unknown_id_does_nothing() -> None:
    run = Run(9)
    run.add("a", 5)
    before = run.state
    assert run.abort("b").log == ()
    assert run.state == before
    assert finished(run.step()) == []


def test_aborting_frees_the_blocks_and_emits_nothing() -> None:
    run = Run(9)
    run.add("a", 9)
    run.add("b", 5)
    run.step()
    outcome = run.abort("a")
    assert (outcome.events, run.running, run.queue) == ((), ["b"], [3, 6, 7, 8, 2, 1])
    assert finished(run.step()) == ["a"]
    assert finished(run.step()) == []


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_aborting_a_waiting_request_takes_it_from_the_queue(policy: str) -> None:
    run = Run(9, policy=policy, max_num_seqs=1)
    for name in "abc":
        run.add(name, 5)
    run.step()
    run.abort("b")
    assert run.waiting == ["c"]
    assert finished(run.step()) == ["b"]


def test_a_request_aborted_while_the_step_runs_samples_nothing_and_is_freed_first() -> None:
    run = Run(9)
    run.add("a", 7, max_tokens=1)
    run.add("b", 7, max_tokens=9)
    outcome = run.step("b")
    assert outcome.sampled == {"a": 1, "b": 0}
    assert run.queue == [2, 4, 5, 6, 7, 8, 3, 1]  # b's [4,3] first, then a's [2,1]
    assert finished(run.step()) == ["a", "b"]


def test_a_request_just_admitted_can_be_aborted_while_the_step_runs() -> None:
    run = Run(9)
    run.add("a", 9)
    outcome = run.step("a", "a", "nobody")
    assert (scheduled(outcome), outcome.sampled, run.scheduler.requests) == ({"a": 9}, {"a": 0}, {})
    assert [type(event) for event in outcome.events] == [
        BlockStored
    ]  # registered when scheduled, though never computed


# ---- reset, 6.10


def test_a_plain_reset_with_blocks_in_use_is_refused() -> None:
    run = Run(9)
    run.add("a", 9)
    run.step()
    before = run.state
    outcome = run.reset()
    assert (outcome.reset, outcome.events, run.state) == (False, (), before)


def test_a_reset_of_an_idle_engine_forgets_every_hash() -> None:
    run = Run(9)
    run.add("a", 9, max_tokens=1)
    run.step()
    outcome = run.reset()
    assert (outcome.reset, events(outcome), run.queue) == (True, [["cleared"]], [3, 4, 5, 6, 7, 8, 2, 1])


def test_a_reset_with_running_requests_preempts_them_from_the_end() -> None:
    run = Run(20)
    for name in "abc":
        run.add(name, 4)
    run.step()
    run.add("d", 4)
    outcome = run.reset(running=True)
    assert (outcome.reset, run.running, run.waiting) == (True, [], ["a", "b", "c", "d"])
    assert [one.victim for one in trace(outcome).preemptions] == ["c", "b", "a"]
    assert {run.request(name).num_preemptions for name in "abc"} == {1}
    step = run.step()
    assert (list(scheduled(step)), preempted(step)) == (["a", "b", "c", "d"], ["a", "b", "c"])


def test_a_reset_with_nobody_running_preempts_nobody() -> None:
    run = Run(9)
    run.add("a", 9)
    outcome = run.reset(running=True)
    assert (outcome.reset, run.waiting) == (True, ["a"])
    assert run.request("a").num_preemptions == 0
