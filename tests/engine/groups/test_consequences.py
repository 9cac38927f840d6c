"""The surprising consequences of section 8 that need other kinds of group, or a connector: the numbers given there."""

from __future__ import annotations

from tests.engine.groups.support import FULL, MAMBA, GroupRun, call, chunked, copies, hit, window
from tests.engine.helpers import events, finished, removed, scheduled, short


def test_22_a_decode_can_be_granted_with_0_blocks_free() -> None:
    run = GroupRun(5, window(8))
    run.add("a", [(100, 16)])
    keys = short(run.hashes("a"))
    run.step()
    outcome = run.step()
    asked = call(outcome, "a")
    assert (asked.comp, asked.free_before, asked.released_count, asked.free_after) == (16, 0, 2, 1)
    assert (asked.new_blocks, removed(outcome)) == (((2,),), [keys[1]])


def test_23_a_hit_of_20_tokens_of_which_two_blocks_exist() -> None:
    run = GroupRun(9, window(8))
    run.add("a", [(100, 24)], max_tokens=1)
    run.step()
    run.pool.evict_blocks([1, 2, 3, 6])
    run.add("b", [(100, 30)])
    assert hit(run.step(), "b") == (20, [[0, 0, 0, 4, 5]])


def test_24_chunked_local_attention_alone_hits_in_an_empty_cache() -> None:
    run = GroupRun(9, chunked(8))
    run.add("a", [(100, 21)])
    assert len(run.pool.cached) == 0
    outcome = run.step()
    assert hit(outcome, "a") == (16, [[0, 0, 0, 0]])
    assert (outcome.prefix_cache.queries, outcome.prefix_cache.hits) == (21, 16)


def test_25_stored_events_without_a_hash() -> None:
    run = GroupRun(9, window(1))
    run.add("a", [(100, 9)])
    assert events(run.step()) == [["stored", [], None, 8, 4, 0]]

    run = GroupRun(41, FULL, MAMBA, block_size=8, use_eagle=True)
    run.add("a", [(100, 30)])
    run.step()
    second = short(run.hashes("a"))[1]
    assert second[-4:] == "8b3c"
    assert events(run.step())[1] == ["stored", [], second, 8, 8, 1]
    assert run.tables("a")[1][2] == 0


def test_26_the_gate_may_count_less_than_the_allocation() -> None:
    run = GroupRun(41, FULL, chunked(8), max_num_batched_tokens=12)
    run.add("a", [(100, 30)], max_tokens=1)
    run.steps(3)
    run.add("b", [(100, 30)])
    asked = call(run.step(), "b")
    assert asked.gate is not None
    assert asked.check is not None
    assert (asked.gate.needed, asked.check.needed) == (9, 10)


def test_27_a_mamba_prefix_cannot_be_shared_in_the_step_that_makes_it_nor_in_the_next() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8)
    for name in "ab":
        run.add(name, [(100, 20)])
    asked = [call(run.step(), "b") for _ in range(3)]
    assert [one.gate.needed for one in asked if one.gate] == [43, 43, 3]
    assert [one.granted for one in asked] == [False, False, True]


def test_28_the_mamba_split_applies_with_caching_off_too() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8, enable_prefix_caching=False)
    run.add("a", [(100, 30)])
    assert [scheduled(run.step()) for _ in range(2)] == [{"a": 24}, {"a": 6}]


def test_29_copy_on_write_of_a_producer_copies_the_cache_away() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)])
    run.steps(2)
    assert run.keys(1) == [2, 4]
    assert copies(run.step()) == [(4, 5)]
    assert (run.tables("a")[1], run.keys(1)) == ([0, 4], [2, 5])


def test_35_an_asynchronous_load_is_overtaken_and_keeps_its_blocks_when_aborted() -> None:
    run = GroupRun(13, connector=True, max_num_seqs=1, max_num_batched_tokens=4)
    run.add("a", [(100, 20)], external={"tokens": 8, "async": True, "steps": 3})
    run.add("b", [(900, 4)])
    assert scheduled(run.step()) == {"b": 4}
    run.abort("a")
    assert (finished(run.step()), run.tables("a")) == (["a"], [[1, 2]])
    run.step()
    assert "a" not in run.scheduler.requests
