"""The surprising consequences that one group shows (8), each from a small scenario, with the numbers given there."""

from __future__ import annotations

from tests.engine.helpers import (
    Run,
    drafts,
    events,
    finished,
    hits,
    preempted,
    removed,
    scheduled,
    short,
    trace,
    undone_victim,
)


def test_01_requests_admitted_in_one_step_share_blocks_that_are_not_computed_yet() -> None:
    run = Run(9)
    run.add("a", [(100, 9)])
    run.add("b", [(100, 9)])
    outcome = run.step()
    assert scheduled(outcome) == {"a": 9, "b": 1}
    assert hits(outcome)["b"] == (1, 2)
    assert (run.table("a"), run.table("b")) == ([1, 2, 3], [1, 2, 4])


def test_02_a_fully_cached_prompt_of_8_still_computes_4() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 8)])
    outcome = run.step()
    assert (scheduled(outcome), hits(outcome)) == ({"b": 4}, {"b": (1,)})
    assert run.listed(run.hashes("b")[1]) == [2, 3]


def test_03_of_duplicates_the_oldest_is_hit_even_when_it_is_free() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=2)
    run.add("b", [(100, 8)])
    run.steps(2)
    assert run.queue == [4, 6, 7, 8, 2]
    assert run.table("b") == [1, 3, 5]
    run.add("c", [(100, 9)])
    assert hits(run.step())["c"] == (1, 2)


def test_04_the_newest_token_is_never_in_the_cache() -> None:
    run = Run(9)
    run.add("a", 10, max_tokens=2)
    run.step()
    request = run.request("a")
    run.step()
    assert request.num_tokens == 12
    assert not run.hashed(3)
    assert run.queue == [3, 4, 5, 6, 7, 8, 2, 1]


def test_05_unhashed_blocks_are_reused_last_in_first_out() -> None:
    run = Run(9)
    for name in "abc":
        run.add(name, 3, max_tokens=1)
    run.step()
    assert run.queue == [3, 2, 1, 4, 5, 6, 7, 8]


def test_06_chains_are_eaten_from_the_tail() -> None:
    run = Run(5)
    run.add("old", [(100, 16)], max_tokens=1)
    run.step()
    assert run.queue == [4, 3, 2, 1]
    run.add("new", 5, max_tokens=1)
    outcome = run.step()
    assert outcome.calls[0].new_blocks == ((4, 3),)
    assert len(removed(outcome)) == 2
    run.add("again", [(100, 16)])
    [lookup] = trace(run.step()).lookups
    assert lookup.num_tokens == 8


def test_07_free_cached_blocks_of_ones_own_hit_count_as_needed() -> None:
    run = Run(5)
    run.add("a", [(100, 13)], max_tokens=1)
    run.step()
    assert run.queue == [4, 3, 2, 1]
    assert [run.hashed(block) for block in (1, 2, 3, 4)] == [True, True, True, False]
    run.add("b", [(100, 18)])
    [call] = run.step().calls
    assert call.gate is not None
    [terms] = call.gate.terms
    assert (call.new_comp, terms.fresh, terms.idle_hits, call.gate.needed) == (12, 2, 3, 5)
    assert (call.granted, call.free_before) == (False, 4)


def test_08_the_watermark_refuses_what_would_fit() -> None:
    run = Run(9, watermark=0.25)
    run.add("a", 12, max_tokens=1)
    run.add("b", 11)
    run.add("c", 16)
    a, b, c = run.step().calls
    assert [(call.watermark_blocks, call.free_before, call.granted) for call in (a, b, c)] == [
        (0, 8, True),
        (2, 5, True),
        (2, 2, False),
    ]
    later = run.step().calls[-1]
    assert (later.request, later.watermark_blocks, later.free_before, later.granted) == ("c", 2, 5, False)


def test_09_the_threshold_is_off_for_a_request_that_is_alone() -> None:
    run = Run(33, max_num_batched_tokens=16, max_num_seqs=1, long_prefill_token_threshold=4)
    run.add("a", 30)
    assert scheduled(run.step()) == {"a": 16}
    run.add("b", 30)
    assert scheduled(run.step()) == {"a": 4}


def test_10_a_prompt_that_can_never_be_admitted_holds_back_everybody_for_ever() -> None:
    run = Run(7)
    run.add("large", 25)
    run.add("small", 4)
    for _ in range(20):
        assert scheduled(run.step()) == {}
    assert run.waiting == ["large", "small"]
    assert run.step().calls[0].can_never_fit(6)


def test_11_without_the_gate_it_is_admitted_preempts_itself_and_is_refused_with_its_own_hit() -> None:
    run = Run(7, max_num_batched_tokens=24, scheduler_reserve_full_isl=False)
    run.add("large", 25)
    assert scheduled(run.step()) == {"large": 24}
    assert run.free == 0
    outcome = run.step()
    assert (scheduled(outcome), preempted(outcome)) == ({}, ["large"])
    [call] = run.step().calls
    assert call.check is not None
    [terms] = call.check.terms
    assert (call.new_comp, terms.idle_hits, terms.fresh, call.check.needed) == (24, 6, 1, 7)
    assert (call.granted, call.free_before) == (False, 6)


def test_12_without_chunked_prefill_a_small_request_waits_behind_one_that_does_not_fit_the_rest() -> None:
    run = Run(33, enable_chunked_prefill=False, max_num_batched_tokens=64, max_model_len=64)
    for name, tokens in (("a", 40), ("b", 30), ("c", 2)):
        run.add(name, tokens)
    assert scheduled(run.step()) == {"a": 40}
    assert run.waiting == ["b", "c"]


def test_13_a_step_that_preempts_admits_nobody_even_with_free_blocks_left() -> None:
    run = undone_victim()
    run.add("small", 1)
    outcome = run.step()
    assert (scheduled(outcome), preempted(outcome), run.free) == ({"a": 1}, ["v"], 5)
    assert run.waiting == ["small", "v"]


def test_14_two_victims_and_then_itself() -> None:
    run = Run(5, scheduler_reserve_full_isl=False, max_num_batched_tokens=16, long_prefill_token_threshold=8)
    run.add("a", 24)
    run.add("b", 4)
    run.add("c", 4)
    run.step()
    assert [run.table(name) for name in "abc"] == [[1, 2], [3], [4]]
    outcome = run.step()
    assert [one.victim for one in trace(outcome).preemptions] == ["c", "b"]
    assert (scheduled(outcome), run.waiting) == ({"a": 8}, ["b", "c"])
    outcome = run.step()
    assert [(one.victim, one.by) for one in trace(outcome).preemptions] == [("a", "a")]
    assert (scheduled(outcome), run.waiting) == ({}, ["a", "b", "c"])


def test_15_a_priority_self_victim_silences_everybody_behind_it() -> None:
    run = Run(7, policy="priority")
    run.add("v", 7, priority=5)
    run.step()
    run.add("a", 5, priority=0)
    run.add("b", 5, priority=1)
    run.step()
    assert (run.running, run.free) == (["v", "a", "b"], 0)
    outcome = run.step()
    assert (scheduled(outcome), preempted(outcome)) == ({}, ["v"])
    assert scheduled(run.step()) == {"a": 1, "b": 1}


def test_16_a_hash_may_stand_for_tokens_never_computed() -> None:
    run = undone_victim()
    assert run.comp("v") == 16
    run.step()
    [lookup] = trace(run.step()).lookups
    assert (lookup.request, lookup.num_tokens) == ("v", 20)


def test_17_a_preempted_request_lives_off_its_own_leftovers_and_is_counted_once() -> None:
    run = Run(6)
    run.add("a", 8, max_tokens=4)
    run.add("b", 12)
    run.step()
    assert run.table("b") == [3, 4, 5]
    outcome = run.step()
    assert (preempted(outcome), outcome.calls[1].new_blocks, run.queue) == (["b"], ((5,),), [4, 3])
    for _ in range(2):
        outcome = run.step()
        assert [(one.request, one.num_tokens) for one in trace(outcome).lookups] == [("b", 8)]
        assert not outcome.calls[-1].granted
        assert outcome.prefix_cache.preempted_requests == 0
    outcome = run.step()
    assert hits(outcome) == {"b": (3, 4)}
    counted = outcome.prefix_cache
    assert (counted.preempted_requests, counted.preempted_queries, counted.preempted_hits) == (1, 13, 8)
    assert (counted.requests, counted.queries, counted.hits) == (0, 0, 0)


def test_18_a_prompt_of_one_token_is_scheduled_as_4_beside_another_decode() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("alone", 1)
    assert scheduled(run.step()) == {"alone": 1}
    run.add("beside", 1)
    outcome = run.step()
    assert (scheduled(outcome)["beside"], drafts(outcome)["beside"]) == (4, 3)


def test_19_padding_can_block_the_queue() -> None:
    run = Run(20, num_speculative_tokens=3, max_num_batched_tokens=6)
    run.add("warm", [(100, 9)], max_tokens=1)
    run.steps(2)
    run.add("a", 2)
    run.step()
    run.add("b", [(100, 9)])
    run.add("c", 2)
    outcome = run.step()
    assert scheduled(outcome) == {"a": 4}
    assert [(one.request, one.num_tokens) for one in trace(outcome).lookups] == [("b", 8)]
    assert [(one.reason, one.request) for one in trace(outcome).halts] == [("padding", "b")]
    assert run.waiting == ["b", "c"]


def test_20_drafts_cut_by_the_budget_are_dropped_not_kept() -> None:
    run = Run(20, num_speculative_tokens=3, max_num_batched_tokens=5)
    for name in "ab":
        run.add(name, 2, accept=[3])
    run.step()
    assert len(run.request("b").spec_token_ids) == 3
    outcome = run.step()
    assert (scheduled(outcome), drafts(outcome)) == ({"a": 4, "b": 1}, {"a": 3})
    assert [(one.request, one.scheduled, one.lost) for one in trace(outcome).drafts] == [("a", 3, 0), ("b", 0, 3)]


def test_21_eagle_drops_the_only_block_found_and_computes_it_again() -> None:
    run = Run(9, use_eagle=True)
    run.add("a", [(100, 5)], max_tokens=1)
    run.step()
    run.add("b", [(100, 5)])
    outcome = run.step()
    [lookup] = trace(outcome).lookups
    [search] = lookup.searches
    assert (search.found, search.dropped, lookup.num_tokens) == (1, True, 0)
    assert scheduled(outcome) == {"b": 5}
    assert run.listed(run.hashes("b")[0]) == [1, run.table("b")[0]]


def test_30_removed_comes_once_per_block_not_per_hash() -> None:
    run = Run(6)
    run.add("a", [(100, 8)], max_tokens=1)
    run.add("b", [(100, 8)], max_tokens=1)
    second = short(run.hashes("a"))[1]
    run.step()
    assert run.queue == [4, 5, 2, 3, 1]
    run.add("new", 16)
    assert [event for event in events(run.step()) if event[0] == "removed"] == [["removed", [second], 0]] * 2


def test_31_finished_and_aborted_ids_show_up_in_the_next_step() -> None:
    run = Run(9, max_num_seqs=1)
    run.add("ends", 5, max_tokens=1)
    run.add("never ran", 5)
    assert finished(run.step()) == []
    run.abort("never ran")
    assert finished(run.step()) == ["ends", "never ran"]
    assert finished(run.step()) == []


def test_32_a_reset_is_refused_or_starts_everybody_again() -> None:
    run = Run(9)
    for name in "abc":
        run.add(name, 4)
    run.step()
    assert len(run.queue) == 8 - 3
    before = run.state
    assert run.reset().reset is False
    assert run.state == before
    run.add("d", 3)
    assert run.reset(running=True).reset is True
    assert run.waiting == ["a", "b", "c", "d"]
    outcome = run.step()
    assert (list(scheduled(outcome)), preempted(outcome)) == (["a", "b", "c", "d"], ["a", "b", "c"])
    counted = outcome.prefix_cache
    assert (counted.preempted_requests, counted.preempted_queries, counted.preempted_hits) == (3, 15, 0)


def test_33_the_salt_enters_only_the_first_key_and_separates_the_whole_chain() -> None:
    run = Run(20)
    run.add("plain", [(10, 9)])
    run.step()
    run.add("salted", [(10, 9)], cache_salt="tenant-a")
    assert short(run.hashes("plain"))[0] == "562191918b384279"
    assert short(run.hashes("salted"))[0] == "670eed33cf67a780"
    assert set(run.hashes("plain")).isdisjoint(run.hashes("salted"))
    outcome = run.step()
    assert hits(outcome)["salted"] == ()
    run.add("again", [(10, 9)], cache_salt="tenant-a")
    assert hits(run.step())["again"] == tuple(run.table("salted")[:2])


def test_34_skip_reading_hits_and_counts_nothing_but_stores_duplicates() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 8)], skip_reading_prefix_cache=True)
    outcome = run.step()
    assert (scheduled(outcome), hits(outcome), outcome.prefix_cache.requests) == ({"b": 8}, {"b": ()}, 0)
    assert [run.listed(block_hash) for block_hash in run.hashes("b")[:2]] == [[1, 3], [2, 4]]


def test_36_blocks_given_to_rejected_drafts_are_not_returned() -> None:
    run = Run(9, num_speculative_tokens=3)
    run.add("a", 9, accept=[0])
    run.steps(2)
    assert (run.comp("a"), run.request("a").num_tokens, run.table("a")) == (10, 11, [1, 2, 3, 4])
