"""Mamba: one running state, nulls, states that wait a step; the other modes; the zero list (7.10, 7.13, 7.14)."""

from __future__ import annotations

import pytest

from tests.engine.groups.support import FULL, MAMBA, GroupRun, call, hit, window, zeroed
from tests.engine.helpers import Json, events, scheduled, undone_victim


def alone(**options: Json) -> GroupRun:
    """The example of 7.10: full attention and Mamba, B = 8, a prompt of 30."""
    run = GroupRun(41, FULL, MAMBA, block_size=8, **options)
    run.add("a", [(100, 30)])
    return run


# ---- mode "align"


def test_the_first_chunk_has_one_state_at_its_end() -> None:
    run = alone()
    outcome = run.step()
    assert scheduled(outcome) == {"a": 24}
    assert run.tables("a") == [[1, 2, 3], [0, 0, 4]]
    assert call(outcome, "a").new_blocks == ((1, 2, 3), (0, 0, 4))
    first, second = events(outcome)
    assert ([len(one) for one in (first[1], second[1])], first[2:], second[2:]) == (  # type: ignore[arg-type]
        [3, 1],
        [None, 24, 8, 0],
        [None, 24, 8, 1],
    )


def test_the_state_before_the_running_one_is_given_back_a_step_later() -> None:
    run = alone()
    run.steps(2)
    assert run.tables("a") == [[1, 2, 3, 5], [0, 0, 4, 6]]
    asked = call(run.step(), "a")
    assert (asked.comp, [(one.group, one.blocks) for one in asked.released]) == (30, [(1, (4,))])
    assert run.tables("a")[1] == [0, 0, 0, 6]
    assert run.queue[-1] == 4


def test_a_state_is_registered_when_its_block_is_full() -> None:
    run = alone()
    run.steps(3)
    assert run.keys(1) == [4]
    outcome = run.step()
    assert call(outcome, "a").comp == 31
    assert [(one.group, one.blocks) for one in call(outcome, "a").registered] == [(0, (5,)), (1, (6,))]
    assert run.keys(1) == [4, 6]


def test_release_passes_over_nulls() -> None:
    run = alone()
    run.steps(5)
    assert run.tables("a")[1] == [0, 0, 0, 6, 8]
    assert [one.blocks for one in call(run.step(), "a").released] == [(6,)]


def test_draft_states_stand_behind_the_running_one_and_move_along() -> None:
    run = GroupRun(41, FULL, {**MAMBA, "num_speculative_blocks": 2}, block_size=8, num_speculative_tokens=2)
    run.add("a", [(100, 12)], accept=[2, 0])
    outcome = run.step()
    assert (scheduled(outcome), run.tables("a")[1]) == ({"a": 8}, [2, 3, 4])
    outcome = run.step()
    assert call(outcome, "a").new_blocks == ((5,), (6,))
    assert run.tables("a")[1] == [2, 3, 4, 6]
    asked = call(run.step(), "a")
    assert [one.blocks for one in asked.released] == [(2,)]
    assert run.tables("a")[1] == [0, 3, 4, 6]  # the state of block 1 lives in 3
    asked = call(run.step(), "a")
    assert (asked.comp + asked.new, run.tables("a")[1]) == (18, [0, 3, 4, 6, 8])


def test_a_jump_moves_the_draft_states_behind_the_new_running_one() -> None:
    run = GroupRun(41, {**MAMBA, "num_speculative_blocks": 2}, max_num_batched_tokens=8)
    run.add("a", [(100, 30)])
    run.step()
    assert run.tables("a") == [[0, 1, 2, 3]]
    assert call(run.step(), "a").new_blocks == ((2, 4),)
    assert run.tables("a") == [[0, 1, 0, 3, 2, 4]]  # 3 stands where the running state is wanted
    assert call(run.step(), "a").new_blocks == ((2, 5),)
    assert run.tables("a") == [[0, 0, 0, 3, 0, 4, 2, 5]]


def test_without_speculative_blocks_lookahead_is_ignored() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8, num_lookahead_tokens=8)
    run.add("a", [(100, 16)])
    run.step()
    asked = call(run.step(), "a")
    assert asked.check is not None
    assert [one.need for one in asked.check.terms] == [3, 2]


def test_a_request_that_waits_for_a_state_counts_more_than_there_are() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8)
    for name in "ab":
        run.add(name, [(100, 20)])
    for _ in range(2):
        asked = call(run.step(), "b")
        assert asked.gate is not None
        assert (asked.new_comp, asked.gate.needed, asked.granted) == (16, 43, False)
    outcome = run.step()
    assert scheduled(outcome) == {"a": 1, "b": 4}
    assert hit(outcome, "b") == (16, [[1, 2], [0, 3]])
    assert run.tables("b") == [[1, 2, 6], [0, 3, 7]]


def test_such_a_request_could_fit_however_long_it_is() -> None:
    run = GroupRun(9, MAMBA, max_num_batched_tokens=60)
    for name in "ab":
        run.add(name, [(100, 50)])
    asked = call(run.step(), "b")
    assert (asked.granted, asked.can_never_fit(8)) == (False, False)
    run.steps(2)
    assert run.running == ["a", "b"]


def test_freeing_forgets_that_the_request_had_started() -> None:
    run = GroupRun(41, FULL, {**MAMBA, "num_speculative_blocks": 2}, block_size=8)
    run.add("a", [(100, 12)])
    run.steps(2)
    run.reset(running=True)
    assert run.tables("a") == [[], []]
    run.step()
    assert [len(table) for table in run.tables("a")] == [1, 3]


# ---- the other modes


@pytest.mark.parametrize("mode", ["all", "none"])
def test_other_modes_have_a_table_as_long_as_the_sequence_and_the_blocks_for_drafts(mode: str) -> None:
    group = {**MAMBA, "mamba_cache_mode": mode, "num_speculative_blocks": 1}
    run = GroupRun(41, FULL, group, block_size=8, max_num_batched_tokens=20)
    for name in "ab":
        run.add(name, [(100, 30)], max_tokens=2)
    outcome = run.step()
    assert scheduled(outcome) == {"a": 20}  # no split
    assert run.tables("a") == [[1, 2, 3], [4, 5, 6, 7]]
    asked = call(outcome, "a")
    assert asked.gate is not None
    assert (asked.gate.needed, [one.need for one in asked.gate.terms]) == (9, [4, 5])
    outcome = run.step()
    asked, refused = outcome.calls
    assert ([one.blocks for one in asked.released], run.tables("a")) == ([(5, 4)], [[1, 2, 3, 8], [0, 0, 6, 7, 9]])
    assert refused.gate is not None
    assert (refused.hit_blocks, refused.gate.needed) == (((1, 2, 3), (0, 0, 6)), 43)  # made in this step
    assert run.step().calls[1].granted
    assert run.tables("b") == [[1, 2, 3, 10], [0, 0, 6, 11, 12]]


# ---- the zero list


def test_only_attention_groups_report_blocks_to_zero_group_by_group() -> None:
    run = GroupRun(41, window(8), MAMBA, FULL, block_size=8)
    run.add("a", [(100, 30)], max_tokens=1)
    run.add("b", [(9_000, 3)])
    outcome = run.step()
    assert [one.new_blocks for one in outcome.calls] == [((1, 2, 3), (0, 0, 4), (5, 6, 7)), ((8,), (9,), (10,))]
    assert zeroed(outcome) == [1, 2, 3, 8, 5, 6, 7, 10]


def test_blocks_are_zeroed_only_if_asked_for_or_with_a_mamba_group() -> None:
    for options, wanted in (({}, None), ({"needs_kv_cache_zeroing": True}, [1, 2])):
        run = GroupRun(41, FULL, **options)
        run.add("a", [(100, 8)], max_tokens=1)
        assert zeroed(run.step()) == wanted
        assert zeroed(run.step()) is None


def test_hit_blocks_are_not_zeroed_again() -> None:
    run = GroupRun(41, FULL, needs_kv_cache_zeroing=True)
    run.add("a", [(100, 8)])
    run.add("b", [(100, 12)])
    assert zeroed(run.step()) == [1, 2, 3]


def test_the_blocks_of_a_request_that_was_preempted_later_in_the_step_are_listed() -> None:
    outcome = undone_victim(needs_kv_cache_zeroing=True).step()
    assert scheduled(outcome) == {"a": 1}
    assert zeroed(outcome) == [7, 8, 8]
