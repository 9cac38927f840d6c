"""Chunked local attention: chunks that are over count as there, and are given back (4.3, 5.3, 5.4, 7.9)."""

from __future__ import annotations

from tests.engine.groups.support import FULL, GroupRun, call, chunked, hit
from tests.engine.helpers import scheduled, trace


def beside_full() -> GroupRun:
    """The example of 7.9: C = 8, B = 4, budget 12, a prompt of 30 beside full attention."""
    run = GroupRun(41, FULL, chunked(8), max_num_batched_tokens=12)
    run.add("a", [(100, 30)], max_tokens=1)
    return run


def test_a_chunk_that_is_over_is_a_hit_without_looking() -> None:
    run = GroupRun(9, chunked(8))
    run.add("a", [(100, 21)])
    outcome = run.step()
    assert hit(outcome, "a") == (16, [[0, 0, 0, 0]])
    assert scheduled(outcome) == {"a": 5}
    assert run.tables("a") == [[0, 0, 0, 0, 1, 2]]
    counted = outcome.prefix_cache
    assert (counted.requests, counted.queries, counted.hits) == (1, 21, 16)
    [search] = trace(outcome).lookups[0].searches
    assert (search.limit, search.found, search.num_tokens, search.missing) == (20, 4, 16, run.hashes("a")[4])


def test_in_the_chunk_of_the_limit_blocks_are_added_while_cached() -> None:
    run = GroupRun(9, chunked(16))
    run.add("a", [(100, 29)], max_tokens=1)
    run.step()
    assert run.keys() == [1, 2, 3]
    for evicted, wanted in ([], [1, 2, 3]), ([3], [1, 2]), ([2], [1]), ([1], []):
        twin = run.fork()
        twin.pool.evict_blocks(evicted)
        twin.add("b", [(100, 29)])
        assert hit(twin.step(), "b") == (16 + 4 * len(wanted), [[0, 0, 0, 0, *wanted]])


def test_chunks_that_are_over_are_released() -> None:
    run = beside_full()
    run.step()
    assert run.tables("a") == [[1, 2, 3], [4, 5, 6]]
    asked = call(run.step(), "a")
    assert (asked.comp, [(one.group, one.blocks) for one in asked.released]) == (12, [(1, (5, 4))])
    assert run.tables("a") == [[1, 2, 3, 7, 8, 9], [0, 0, 6, 10, 11, 12]]
    asked = call(run.step(), "a")
    assert (asked.comp, [(one.group, one.blocks) for one in asked.released]) == (24, [(1, (12, 11, 10, 6))])


def test_the_gate_of_a_later_identical_prompt_counts_9_and_the_check_10() -> None:
    run = beside_full()
    run.steps(3)
    run.add("b", [(100, 30)])
    outcome = run.step()
    assert hit(outcome, "b") == (28, [[1, 2, 3, 7, 8, 9, 13], [0, 0, 0, 0, 0, 0, 15]])
    asked = call(outcome, "b")
    assert asked.gate is not None
    assert asked.check is not None
    assert (asked.gate.needed, asked.check.needed) == (9, 10)
    assert [(one.need, one.fresh, one.idle_hits) for one in asked.gate.terms] == [(8, 1, 7), (5, 0, 1)]
    assert [(one.need, one.fresh, one.idle_hits) for one in asked.check.terms] == [(8, 1, 7), (8, 1, 1)]
    assert run.tables("b") == [[1, 2, 3, 7, 8, 9, 13, 16], [0, 0, 0, 0, 0, 0, 15, 14]]


def test_the_gate_may_let_in_what_the_check_refuses() -> None:
    run = beside_full()
    run.steps(3)
    run.pool.get_new_blocks(31, 0)
    run.add("b", [(100, 30)])
    assert run.free == 9
    asked = call(run.step(), "b")
    assert asked.gate is not None
    assert (asked.gate.needed, asked.gate.passes, asked.refused_by, asked.shortfall) == (9, True, "check", 1)


def test_the_admission_cap_is_a_chunk_and_a_step() -> None:
    run = GroupRun(41, chunked(10), max_num_batched_tokens=11)
    run.add("a", [(100, 60)], skip_reading_prefix_cache=True)
    asked = call(run.step(), "a")
    assert asked.gate is not None
    assert (asked.gate.tokens, asked.gate.needed) == (60, 6)


def test_a_chunk_that_is_no_multiple_of_the_block_rounds_down() -> None:
    run = GroupRun(21, chunked(10))
    run.add("a", [(100, 26)])
    assert hit(run.step(), "a") == (20, [[0, 0, 0, 0, 0]])
    run.add("b", [(200, 19)])
    assert hit(run.step(), "b") == (8, [[0, 0]])


def test_without_caching_nothing_is_skipped_at_admission() -> None:
    run = GroupRun(21, chunked(8), enable_prefix_caching=False)
    run.add("a", [(100, 21)])
    outcome = run.step()
    assert scheduled(outcome) == {"a": 21}
    assert run.tables("a") == [[1, 2, 3, 4, 5, 6]]
    assert [one.blocks for one in call(run.step(), "a").released] == [(4, 3, 2, 1)]
