"""Sliding window: hits that need only the window, release, count, admission cap (4.2, 5.3 to 5.5)."""

from __future__ import annotations

import pytest

from tests.engine.groups.support import GroupRun, call, hit, window
from tests.engine.helpers import Json, events, removed, scheduled, short, trace


def cached(num_blocks: int, tokens: int, prompt: int, **options: Json) -> GroupRun:
    """A run in which a prompt from 100 on has been computed and has ended."""
    run = GroupRun(num_blocks, window(tokens), **options)
    run.add("warm", [(100, prompt)], max_tokens=1)
    run.step()
    return run


def test_a_hit_needs_only_the_window() -> None:
    run = cached(9, 8, 24)
    assert run.keys() == [1, 2, 3, 4, 5, 6]
    run.pool.evict_blocks([6])
    run.add("again", [(100, 30)])
    outcome = run.step()
    assert hit(outcome, "again") == (20, [[0, 0, 0, 4, 5]])
    assert run.table("again")[:5] == [0, 0, 0, 4, 5]


def test_blocks_before_the_window_may_be_evicted_long_ago() -> None:
    run = cached(9, 8, 24)
    run.pool.evict_blocks([1, 2, 3, 4])
    run.add("again", [(100, 30)])
    assert hit(run.step(), "again") == (24, [[0, 0, 0, 0, 5, 6]])


@pytest.mark.parametrize(
    ("evicted", "wanted"),
    [
        ([2, 4, 5], (4, [[1]])),
        ([1, 2, 4, 5], (0, [[]])),
        ([1, 4, 6], (12, [[0, 2, 3]])),
        ([2, 4, 6], (4, [[1]])),
    ],
)
def test_a_run_that_is_too_short_counts_only_at_the_beginning(evicted: list[int], wanted: tuple[int, object]) -> None:
    run = cached(9, 8, 24)
    run.pool.evict_blocks(evicted)
    run.add("again", [(100, 30)])
    assert hit(run.step(), "again") == wanted


@pytest.mark.parametrize(("tokens", "needed"), [(2, 1), (5, 1), (6, 2), (9, 2), (10, 3)])
def test_the_window_sees_its_length_less_one_of_earlier_tokens(tokens: int, needed: int) -> None:
    run = cached(9, tokens, 24)
    run.add("again", [(100, 30)])
    blocks = hit(run.step(), "again")[1][0]
    assert blocks == [0] * (6 - needed) + list(range(7 - needed, 7))


@pytest.mark.parametrize(
    ("evicted", "wanted"),
    [
        ([], (20, [[0, 0, 0, 4, 5]])),
        ([4], (8, [[1, 2]])),
        ([3], (20, [[0, 0, 0, 4, 5]])),
        ([2, 3, 4, 5, 6], (0, [[]])),
    ],
)
def test_an_eagle_window_needs_one_block_more_and_drops_it(evicted: list[int], wanted: tuple[int, object]) -> None:
    run = cached(12, 8, 24, use_eagle=True)
    run.pool.evict_blocks(evicted)
    run.add("again", [(100, 30)])
    assert hit(run.step(), "again") == wanted


def test_a_block_outside_the_window_is_given_back_the_highest_first() -> None:
    run = GroupRun(9, window(6), max_num_batched_tokens=20)
    run.add("a", [(100, 21)], max_tokens=4)
    run.step()
    assert run.table("a") == [1, 2, 3, 4, 5]
    outcome = run.step()
    [released] = call(outcome, "a").released
    assert (released.blocks, released.back, released.front) == ((3, 2, 1), (3, 2, 1), ())
    assert run.table("a") == [0, 0, 0, 4, 5, 6]
    assert run.queue == [7, 8, 3, 2, 1]


def test_release_stops_at_the_first_null() -> None:
    run = GroupRun(9, window(8))
    run.add("a", [(100, 20)])
    run.step()
    run.step()
    assert run.table("a") == [0, 0, 0, 4, 5, 6]
    assert [call(run.step(), "a").released for _ in range(2)] == [(), ()]


def test_a_release_stays_though_the_check_refuses() -> None:
    run = GroupRun(6, window(8), max_num_batched_tokens=16, scheduler_reserve_full_isl=False)
    run.add("a", [(100, 30)])
    run.step()
    assert (run.table("a"), run.free) == ([1, 2, 3, 4], 1)
    asked = call(run.step(), "a")
    assert asked.released_count == 2
    assert asked.granted is False
    assert (asked.free_before, asked.free_after) == (1, 3)


def test_the_admission_cap_counts_6_blocks_for_a_prompt_of_13() -> None:
    run = GroupRun(9, window(8), max_num_batched_tokens=12)
    run.add("a", [(100, 50)])
    asked = call(run.step(), "a")
    assert asked.gate is not None
    [terms] = asked.gate.terms
    assert (asked.gate.tokens, terms.need, asked.gate.needed) == (50, 6, 6)
    assert asked.granted


def test_a_running_request_knows_no_cap() -> None:
    run = GroupRun(9, window(8), max_num_batched_tokens=12)
    run.add("a", [(100, 50)])
    asked = [call(run.step(), "a") for _ in range(5)]
    assert [one.check.terms[0].need for one in asked if one.check] == [3, 6, 9, 12, 13]
    assert [one.check.needed for one in asked if one.check] == [3, 3, 3, 3, 1]
    assert run.table("a") == [0] * 10 + run.table("a")[10:]


def test_hits_before_the_window_of_the_next_token_are_not_touched_nor_counted() -> None:
    run = cached(12, 5, 24)
    run.add("again", [(100, 26)])
    asked = call(run.step(), "again")
    assert asked.hit_blocks == ((0, 0, 0, 0, 0, 6),)
    assert [one.block for one in asked.touched] == [6]
    assert asked.check is not None
    [terms] = asked.check.terms
    assert (terms.need, terms.skipped, terms.hits, terms.fresh, terms.idle_hits) == (7, 5, 6, 1, 1)


def test_a_decode_is_granted_with_nothing_free_by_taking_its_own_block() -> None:
    run = GroupRun(5, window(8))
    run.add("a", [(100, 16)])
    own = short(run.hashes("a"))
    run.step()
    assert (run.table("a"), run.free) == ([1, 2, 3, 4], 0)
    outcome = run.step()
    asked = call(outcome, "a")
    assert [one.blocks for one in asked.released] == [(2, 1)]
    assert asked.new_blocks == ((2,),)
    assert removed(outcome) == [own[1]]
    assert (run.table("a"), run.queue) == ([0, 0, 3, 4, 2], [1])


def test_with_a_window_of_1_nothing_is_ever_registered() -> None:
    run = GroupRun(9, window(1))
    run.add("a", [(100, 9)])
    assert events(run.step()) == [["stored", [], None, 8, 4, 0]]
    assert run.keys() == []


def test_a_search_tells_that_the_window_was_filled() -> None:
    run = cached(9, 8, 24)
    run.pool.evict_blocks([6])
    run.add("again", [(100, 30)])
    [search] = trace(run.step()).lookups[0].searches
    assert (search.round, search.groups, search.limit, search.found, search.num_tokens) == (0, (0,), 29, 5, 20)
    assert search.missing == run.hashes("again")[6]


def test_a_window_longer_than_the_prompt_is_full_attention() -> None:
    run = GroupRun(12, window(1000))
    run.add("a", [(100, 24)], max_tokens=1)
    run.step()
    run.add("b", [(100, 24)])
    outcome = run.step()
    assert hit(outcome, "b") == (20, [[1, 2, 3, 4, 5]])
    assert scheduled(outcome) == {"b": 4}
