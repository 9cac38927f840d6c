"""Which full blocks get a key: masks, and the retention interval (7.8)."""

from __future__ import annotations

import pytest

from engine.block_hash import short_hash
from tests.engine.groups.support import FULL, MAMBA, GroupRun, hit, lookup, window
from tests.engine.helpers import events, scheduled


def chosen(run: GroupRun, prompt: int, group: int = 0) -> list[int]:
    """Table indexes that got a key when a prompt was computed."""
    run.add("a", [(100, prompt)], max_tokens=2)
    found: set[int] = set()
    while "a" in run.scheduler.requests:
        for call in run.step().calls:
            found |= {index for one in call.registered if one.group == group for index in one.indexes}
    return sorted(found)


def test_a_window_keeps_the_end_of_each_aligned_segment() -> None:
    run = GroupRun(61, {**FULL, "block_size": 16}, window(6))
    run.add("a", [(100, 50)])
    outcome = run.step()
    assert [list(one.indexes) for one in outcome.calls[0].registered if one.group == 1] == [[2, 3, 6, 7, 10, 11]]
    stored = events(outcome)[1]
    assert isinstance(stored[1], list)
    assert (len(stored[1]), stored[3:]) == (6, [48, 4, 1])


@pytest.mark.parametrize(
    ("interval", "wanted"),
    [
        (None, list(range(12))),
        (0, [10, 11]),
        (16, [2, 3, 6, 7, 10, 11]),
        (32, [6, 7, 10, 11]),
        (4, list(range(12))),
        (8, list(range(12))),
        (48, [10, 11]),
    ],
)
def test_a_window_of_8_with_a_retention_interval(interval: int | None, wanted: list[int]) -> None:
    assert chosen(GroupRun(61, window(8), prefix_cache_retention_interval=interval), 50) == wanted


def test_blocks_that_were_not_chosen_count_as_done_and_their_event_is_emitted() -> None:
    run = GroupRun(61, window(8), prefix_cache_retention_interval=0, max_num_batched_tokens=24)
    run.add("a", [(100, 50)])
    first, second = events(run.step()), events(run.step())
    assert first == [["stored", [], None, 24, 4, 0]]
    assert [len(one[1]) for one in second] == [2]  # type: ignore[arg-type]
    assert second[0][3:] == [24, 4, 0]


def test_a_window_of_1_registers_nothing_yet_each_call_emits_its_event() -> None:
    run = GroupRun(61, window(1), max_num_batched_tokens=8)
    run.add("a", [(100, 20)])
    parents = [None, *(short_hash(run.hashes("a")[index]) for index in (1, 3))]
    for parent, count in zip(parents, (8, 8, 4), strict=True):
        assert events(run.step()) == [["stored", [], parent, count, 4, 0]]
    assert run.keys() == []


def test_a_retained_hit_ends_where_the_same_prompt_would() -> None:
    run = GroupRun(61, window(8), prefix_cache_retention_interval=0)
    run.add("a", [(100, 50)], max_tokens=1)
    run.step()
    run.add("same", [(100, 50)])
    run.add("longer", [(100, 70)])
    run.add("shorter", [(100, 40)])
    outcome = run.step()
    assert [hit(outcome, name)[0] for name in ("same", "longer", "shorter")] == [48, 48, 0]


@pytest.mark.parametrize(("prompt", "wanted"), [(50, [9, 10, 11]), (48, [8, 9, 10, 11])])
def test_with_eagle_the_window_before_the_dropped_block_is_kept(prompt: int, wanted: list[int]) -> None:
    run = GroupRun(61, window(8), prefix_cache_retention_interval=0, use_eagle=True)
    found = chosen(run, prompt)
    assert found == wanted
    run.add("same", [(100, prompt)])
    assert hit(run.step(), "same")[0] == (prompt - 1) // 4 * 4 - 4


@pytest.mark.parametrize(
    ("interval", "wanted"),
    [(None, [0, 1, 2, 3, 4, 5]), (0, [5]), (8, [0, 1, 2, 3, 4, 5]), (16, [1, 3, 5]), (32, [3, 5])],
)
def test_mamba_states_with_a_retention_interval(interval: int | None, wanted: list[int]) -> None:
    run = GroupRun(61, FULL, MAMBA, block_size=8, max_num_batched_tokens=8, prefix_cache_retention_interval=interval)
    assert chosen(run, 50, group=1) == wanted


def test_a_prefix_that_two_prompts_share_is_kept_for_the_third() -> None:
    run = GroupRun(61, FULL, MAMBA, block_size=8, prefix_cache_retention_interval=0)
    run.add("a", [(100, 50)], max_tokens=1)
    run.steps(2)
    run.add("b", [(100, 27), (9_000, 20)], max_tokens=1)
    outcome = run.step()
    assert (lookup(outcome, "b").num_tokens, lookup(outcome, "b").shared_prefix_boundary) == (0, 24)
    assert [scheduled(outcome), scheduled(run.step()), scheduled(run.step())] == [{"b": 24}, {"b": 16}, {"b": 7}]
    run.add("c", [(100, 27), (8_000, 20)])
    assert hit(run.step(), "c")[0] == 24
