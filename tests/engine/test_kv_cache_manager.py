"""Prefix lookup and its statistics (4), and `allocate_slots` (5)."""

from __future__ import annotations

import pytest

from engine.call_trace import read_calls
from engine.kv_cache_interface import cdiv
from engine.kv_cache_manager import KVCacheManager, PrefixCacheStats
from engine.simulation import Outcome
from engine.trace import Entry
from tests.engine.helpers import Json, Run, config, events, scheduled, short, trace, undone_victim


def stats(outcome: Outcome) -> tuple[int, ...]:
    one = outcome.prefix_cache
    return (
        one.requests,
        one.queries,
        one.hits,
        one.preempted_requests,
        one.preempted_queries,
        one.preempted_hits,
    )


def with_cached(tokens: int, num_blocks: int = 30, **options: Json) -> Run:
    """An idle engine in which the full blocks of the prompt 100.. of so many tokens are cached."""
    run = Run(num_blocks, **options)
    run.add("warm", [(100, tokens)], max_tokens=1)
    run.step()
    assert run.scheduler.requests == {}
    return run


def hit_of(run: Run, *prompt: tuple[int, int], **options: Json) -> int:
    """Tokens that such a prompt hits; nothing is changed."""
    twin = run.fork()
    twin.add("probe", prompt, **options)
    return twin.manager.get_computed_blocks(twin.request("probe")).num_tokens


@pytest.mark.parametrize(("a", "b", "wanted"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_cdiv_is_the_ceiling(a: int, b: int, wanted: int) -> None:
    assert cdiv(a, b) == wanted


# ---- lookup, 4, 4.1


@pytest.mark.parametrize(("tokens", "wanted"), [(9, 8), (8, 4), (5, 4), (4, 0), (1, 0), (13, 12)])
def test_the_last_token_is_always_computed(tokens: int, wanted: int) -> None:
    assert hit_of(with_cached(16), (100, tokens)) == wanted


@pytest.mark.parametrize(
    ("cached", "tokens", "wanted"), [(16, 9, 4), (8, 13, 4), (16, 5, 0), (16, 8, 0), (16, 13, 8), (4, 9, 0)]
)
def test_eagle_drops_the_last_block_after_the_limit(cached: int, tokens: int, wanted: int) -> None:
    assert hit_of(with_cached(cached, use_eagle=True), (100, tokens)) == wanted


def test_a_marked_group_is_an_eagle_group_by_itself() -> None:
    run = with_cached(16, groups=[{"kind": "full_attention", "eagle": True}])
    assert hit_of(run, (100, 9)) == 4


def test_the_walk_ends_at_the_first_miss_and_what_lies_behind_cannot_be_reached() -> None:
    run = with_cached(16)
    run.pool.evict_blocks([2])
    assert hit_of(run, (100, 16)) == 4
    run.add("b", [(100, 8)], max_tokens=1)  # computes the missing block again
    run.step()
    assert hit_of(run, (100, 16)) == 12


def test_a_prompt_that_differs_in_one_token_hits_up_to_there() -> None:
    run = with_cached(16)
    assert hit_of(run, (100, 6), (7, 1), (107, 9)) == 4


def test_a_lookup_changes_nothing() -> None:
    run = with_cached(16)
    run.add("b", [(100, 16)])
    before = run.state
    assert run.manager.get_computed_blocks(run.request("b")).blocks == ([1, 2, 3],)
    assert run.state == before
    assert run.manager.make_prefix_cache_stats() == PrefixCacheStats()


def test_with_caching_off_nothing_is_hit() -> None:
    run = with_cached(16, enable_prefix_caching=False)
    assert hit_of(run, (100, 16)) == 0


def test_skip_reading_hits_nothing_but_still_writes() -> None:
    run = Run(30)
    run.add("a", [(100, 8)], max_tokens=1, skip_reading_prefix_cache=True)
    run.step()
    assert hit_of(run, (100, 9)) == 8
    assert hit_of(run, (100, 9), skip_reading_prefix_cache=True) == 0


def test_a_resumed_request_is_looked_up_over_its_output_too() -> None:
    run = Run(30)
    run.add("a", [(100, 6)], max_tokens=20)
    run.steps(4)  # 10 tokens known, 9 computed: two full blocks
    run.scheduler._preempt(run.scheduler.running.pop(), None)
    [lookup] = trace(run.step()).lookups
    assert (lookup.limit, lookup.num_tokens) == (9, 8)


# ---- statistics, 4.4


def test_an_admission_counts_its_tokens_and_its_hit() -> None:
    run = with_cached(16)
    run.add("a", [(100, 11)])
    assert stats(run.step()) == (1, 11, 8, 0, 0, 0)
    assert stats(run.step()) == (0, 0, 0, 0, 0, 0)


def test_a_refused_attempt_counts_nothing() -> None:
    run = Run(4)
    run.add("a", 8, max_tokens=3)
    run.add("b", 8)
    assert stats(run.step()) == (1, 8, 0, 0, 0, 0)
    assert stats(run.step()) == (0, 0, 0, 0, 0, 0)


def test_a_chunked_prompt_counts_whole_and_once() -> None:
    run = Run(30, max_num_batched_tokens=8)
    run.add("a", 20)
    assert [stats(run.step()) for _ in range(3)] == [(1, 20, 0, 0, 0, 0), (0,) * 6, (0,) * 6]


def test_resumed_requests_are_counted_apart() -> None:
    run = Run(6)
    run.add("a", 8, max_tokens=4)
    run.add("b", [(100, 9)], max_tokens=9)
    assert stats(run.step()) == (2, 17, 0, 0, 0, 0)
    run.step()
    assert run.waiting == ["b"]
    while "b" not in run.running:
        outcome = run.step()
    assert stats(outcome) == (0, 0, 0, 1, 10, 8)


@pytest.mark.parametrize("options", [{"skip_reading_prefix_cache": True}, {}], ids=["skip", "caching off"])
def test_a_lookup_that_was_not_enabled_counts_nothing(options: dict[str, bool]) -> None:
    run = Run(9, enable_prefix_caching=bool(options))
    run.add("a", 8, **options)
    assert stats(run.step()) == (0, 0, 0, 0, 0, 0)


# ---- quantities, watermark, 5.1, 5.2


@pytest.mark.parametrize(
    ("num_blocks", "watermark", "wanted"), [(9, 0.25, 2), (21, 0.1, 2), (101, 0.05, 5), (9, 0.0, 0)]
)
def test_the_watermark_is_a_share_of_all_blocks_rounded_down(num_blocks: int, watermark: float, wanted: int) -> None:
    assert Run(num_blocks, watermark=watermark).manager.watermark_blocks == wanted


def test_headroom_is_asked_of_admissions_only_while_somebody_runs() -> None:
    run = Run(21, watermark=0.1)
    for name in ("a", "b"):
        run.add(name, 5)
    first, second = run.step().calls
    assert (first.watermark_blocks, second.watermark_blocks) == (0, 2)  # a, admitted in this step, counts
    assert {call.watermark_blocks for call in run.step().calls} == {0}


def test_headroom_is_asked_of_a_preempted_request_too() -> None:
    run = Run(21, watermark=0.1)
    for name in ("a", "b"):
        run.add(name, 5)
    run.step()
    run.reset(running=True)
    assert [(call.request, call.watermark_blocks) for call in run.step().calls] == [("a", 0), ("b", 2)]


def test_headroom_that_fits_exactly_is_granted() -> None:
    run = Run(9, watermark=0.25)
    run.add("a", 12)
    run.add("b", 12)  # 3 of 5 free, 2 stay
    run.step()
    assert run.running == ["a", "b"]


def test_headroom_bars_the_check_where_the_gate_is_off() -> None:
    run = Run(9, watermark=0.25, scheduler_reserve_full_isl=False)
    run.add("a", 12)
    run.add("b", 16)
    call = run.step().calls[-1]
    assert (call.gate, call.refused_by, call.free_before, call.shortfall) == (None, "check", 5, 1)


def test_slots_end_at_max_model_len() -> None:
    run = Run(30, max_model_len=16, num_lookahead_tokens=9)
    run.add("a", 14)
    [call] = run.step().calls
    assert call.check is not None
    assert (call.check.tokens, run.table("a")) == (16, [1, 2, 3, 4])


def test_lookahead_slots_are_reserved_behind_the_tokens() -> None:
    run = Run(30, num_lookahead_tokens=3)
    run.add("a", 6)
    run.step()
    assert run.table("a") == [1, 2, 3]


# ---- gate, count, check, 5.3, 5.5, 5.6


def test_the_gate_wants_room_for_the_whole_sequence() -> None:
    run = Run(7, max_num_batched_tokens=8)
    run.add("a", 25)
    [call] = run.step().calls
    assert (call.new, call.refused_by, call.shortfall) == (8, "gate", 1)
    assert call.gate is not None
    assert (call.gate.tokens, call.gate.needed) == (25, 7)
    assert run.waiting == ["a"]


def test_a_refusal_leaves_no_trace() -> None:
    run = with_cached(8, num_blocks=6)
    run.add("a", 9)
    run.step()
    run.add("b", [(100, 16)])
    before = run.state
    request = run.request("b")
    hit = run.manager.get_computed_blocks(request)
    assert run.manager.allocate_slots(request, 8, hit.num_tokens, hit.blocks, full_sequence_must_fit=True) is None
    assert run.manager.allocate_slots(request, 8, hit.num_tokens, hit.blocks) is None
    assert run.state == before
    assert run.manager.take_events() == []


def test_without_the_gate_only_the_chunk_must_fit() -> None:
    run = Run(7, max_num_batched_tokens=8, max_num_seqs=8, scheduler_reserve_full_isl=False)
    run.add("a", 25)
    [call] = run.step().calls
    assert (call.gate, call.new_blocks) == (None, ((1, 2),))


def test_the_check_refuses_what_the_gate_lets_through() -> None:
    run = Run(4, num_lookahead_tokens=4)
    run.add("a", 12)
    [call] = run.step().calls
    assert (call.refused_by, call.shortfall) == ("check", 1)
    assert call.gate is not None
    assert call.check is not None
    assert (call.gate.needed, call.check.needed) == (3, 4)


def test_idle_hits_count_and_held_ones_do_not() -> None:
    run = with_cached(16)
    run.add("a", [(100, 9)], max_tokens=9)
    run.step()  # holds 1 and 2 of the chain
    run.add("b", [(100, 16), (5, 5)])
    [_, call] = run.step().calls
    assert call.check is not None
    [terms] = call.check.terms
    assert (terms.need, terms.held, terms.hits, terms.fresh, terms.idle_hits, terms.total) == (6, 0, 4, 2, 2, 4)
    assert call.free_before - call.free_after == 4


def test_a_granted_call_takes_what_it_counted() -> None:
    run = with_cached(40)
    for number in range(4):
        run.add(f"r{number}", [(100, 8 * number + 5), (number, 3)])
    for _ in range(6):
        for call in run.step().calls:
            assert call.check is not None
            assert call.free_before + call.released_count - call.free_after == call.check.needed


def test_allocating_nothing_at_all_is_an_error() -> None:
    run = Run(9)
    run.add("a", 5)
    with pytest.raises(AssertionError, match="no tokens to allocate for"):
        run.manager.allocate_slots(run.request("a"), 0)


# ---- taking and registering: 5.7 and 5.8


def test_the_hit_is_the_head_of_the_table_and_only_new_blocks_are_returned() -> None:
    run = with_cached(16)
    run.add("a", [(100, 12), (5, 6)])
    [call] = run.step().calls
    assert (call.hit_blocks, call.new_blocks) == (((1, 2, 3),), ((5, 6),))
    assert run.table("a") == [1, 2, 3, 5, 6]


def test_growing_never_evicts_the_requests_own_hit() -> None:
    run = with_cached(12, num_blocks=5)
    assert run.queue == [4, 3, 2, 1]
    run.add("a", [(100, 12), (5, 3)])
    [call] = run.step().calls
    assert ([one.block for one in call.touched], [one.block for one in call.popped]) == ([1, 2, 3], [4])
    assert run.table("a") == [1, 2, 3, 4]


def test_a_block_is_registered_in_the_step_that_schedules_its_last_token() -> None:
    run = Run(9, max_num_batched_tokens=6)
    run.add("a", [(100, 10)])
    first, second = run.hashes("a")
    assert events(run.step()) == [["stored", short([first]), None, 4, 4, 0]]
    assert events(run.step()) == [["stored", short([second]), short([first])[0], 4, 4, 0]]


def test_a_block_filled_by_a_sampled_token_is_registered_one_step_later() -> None:
    run = Run(9)
    run.add("a", [(10, 10)])
    run.steps(2)
    assert (run.request("a").num_tokens, len(run.hashes("a")), run.hashed(3)) == (12, 3, False)
    run.step()
    assert run.hashed(3)


def test_drafts_are_never_registered() -> None:
    run = Run(9, num_speculative_tokens=3)
    run.add("a", [(10, 6)], accept=[3])
    run.step()
    outcome = run.step()
    assert scheduled(outcome) == {"a": 4}
    assert (run.comp("a"), run.hashed(2)) == (10, False)  # tokens 4 to 7 were drafts when they were scheduled


def test_with_caching_off_nothing_is_registered() -> None:
    run = Run(9, enable_prefix_caching=False)
    run.add("a", 12)
    assert run.step().events == ()
    assert not any(run.hashed(block) for block in range(9))


def test_delay_cache_blocks_leaves_the_blocks_unregistered() -> None:
    run = Run(9)
    run.add("a", 12)
    assert run.manager.allocate_slots(run.request("a"), 12, delay_cache_blocks=True) == ([1, 2, 3],)
    assert run.manager.take_events() == []


def test_reserved_blocks_bar_the_check_but_not_the_gate() -> None:
    log: list[Entry] = []
    manager, run = KVCacheManager(config(9), emit=log.append), Run(9)
    run.add("a", 20)
    allocate, request = manager.allocate_slots, run.request("a")
    assert allocate(request, 20, full_sequence_must_fit=True, reserved_blocks=4) is None
    [call] = read_calls(log)
    assert (call.refused_by, call.shortfall) == ("check", 1)
    assert allocate(request, 20, full_sequence_must_fit=True, reserved_blocks=3) == ([1, 2, 3, 4, 5],)


def test_freeing_gives_the_table_back_reversed() -> None:
    run = Run(9)
    run.add("a", [(10, 12)])
    run.step()
    run.abort("a")
    assert run.queue == [4, 5, 6, 7, 8, 3, 2, 1]
    assert run.table("a") == []


def test_rejected_drafts_keep_their_blocks_and_the_next_call_takes_fewer() -> None:
    run = Run(9, num_speculative_tokens=3)
    run.add("a", 9, accept=[0])
    run.steps(2)
    assert run.table("a") == [1, 2, 3, 4]
    outcome = run.step()
    assert outcome.calls[0].new_blocks == ((),)


# ---- what is to be zeroed, 7.13


def test_new_blocks_are_listed_for_zeroing_when_it_is_on() -> None:
    run = Run(9, needs_kv_cache_zeroing=True)
    run.add("a", [(100, 8)], max_tokens=9)
    run.add("b", [(100, 9)], max_tokens=9)
    zeroed = []
    for _ in range(3):
        output = run.step().output
        assert output is not None
        zeroed.append(output.new_block_ids_to_zero)
    assert zeroed == [[1, 2, 3], [4], None]


def test_blocks_of_a_request_preempted_later_in_the_step_are_listed_for_zeroing() -> None:
    run = undone_victim(needs_kv_cache_zeroing=True)
    output = run.step().output
    assert output is not None
    assert output.new_block_ids_to_zero == [7, 8, 8]
