"""Hits that end inside a block: a copy for who writes behind them, and what is registered (7.4, 7.6, 7.12)."""

from __future__ import annotations

import pytest

from engine.call_trace import PartialPrefix
from engine.step_trace import Copy
from tests.engine.groups.support import FULL, MAMBA, Group, GroupRun, call, copies, hit, lookup, window, zeroed
from tests.engine.helpers import events, short, trace


def made(steps: int = 3) -> GroupRun:
    """The example of 7.12: full attention and Mamba, B = 16, H = 4, a prompt of 27."""
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)], max_tokens=30)
    for _ in range(steps):
        run.step()
    return run


def at_24(run: GroupRun, group: int) -> list[int]:
    """The blocks registered for the prefix of 24 tokens, the oldest first."""
    run = run.fork()
    run.add("probe", [(100, 27)])
    return run.pool.cached.blocks((run.hashes("probe")[5], group))


# ---- the one that makes the prefix


def test_the_last_hash_boundary_of_the_prompt_is_registered_in_both_groups() -> None:
    run = made(1)
    assert run.tables("a") == [[1], [2]]
    outcome = run.step()
    assert run.tables("a") == [[1, 3], [2, 4]]
    parent, own = short(run.hashes("a"))[4:6]
    assert (parent[-4:], own[-4:]) == ("d5e4", "4697")
    assert events(outcome) == [["stored", [own], parent, 4, 4, group] for group in (0, 1)]
    hashes = run.hashes("a")
    assert call(outcome, "a").partial == (
        PartialPrefix(0, 3, hashes[5], hashes[4], 24),
        PartialPrefix(1, 4, hashes[5], hashes[4], 24),
    )
    assert (at_24(run, 0), at_24(run, 1)) == ([3], [4])


def test_its_next_step_copies_the_cache_away_and_it_stays_on_its_block() -> None:
    run = made(2)
    outcome = run.step()
    assert copies(outcome) == [(4, 5)]
    assert call(outcome, "a").new_blocks == ((), ())
    assert trace(outcome).copies == (Copy(1, "a", 4, 5, moved=True),)
    assert run.tables("a") == [[1, 3], [0, 4]]
    assert (at_24(run, 1), run.pool.keys_of(4)) == ([5], [])
    assert run.queue[-2:] == [2, 5]  # block 2 was released, the copy went to the tail
    assert events(outcome) == []


def test_the_copy_counts_as_a_block_to_take() -> None:
    asked = call(made(2).step(), "a")
    assert asked.check is not None
    assert [(one.fresh, one.copies, one.total) for one in asked.check.terms] == [(0, 0, 0), (0, 1, 1)]
    assert [(one.group, one.block) for one in asked.popped] == [(1, 5)]


def test_when_the_block_fills_the_shorter_prefix_makes_way_and_comes_back_as_a_second_key() -> None:
    run = made(7)
    outcome = run.step()
    assert run.comp("a") == 32
    full, part = short([run.hashes("a")[7], run.hashes("a")[5]])
    first, fourth = short([run.hashes("a")[3], run.hashes("a")[4]])
    assert events(outcome) == [
        ["removed", [part], 0],
        ["stored", [full], first, 16, 16, 0],
        ["stored", [part], fourth, 4, 4, 0],
        ["stored", [full], first, 16, 16, 1],
    ]
    assert run.pool.keys_of(3) == [(run.hashes("a")[7], 0), (run.hashes("a")[5], 0)]
    assert run.pool.block_hash_num_tokens[3] == 32
    assert run.pool.keys_of(4) == [(run.hashes("a")[7], 1)]


# ---- the one that hits it


def test_a_partial_hit_gets_a_copy_in_each_group() -> None:
    run = made()
    run.add("b", [(100, 27)])
    outcome = run.step()
    assert hit(outcome, "b") == (24, [[1, 3], [0, 5]])
    asked = call(outcome, "b")
    assert asked.new_blocks == ((6,), (7,))
    assert copies(outcome) == [(3, 6), (5, 7)]
    assert trace(outcome).copies == (Copy(0, "b", 3, 6, moved=False), Copy(1, "b", 5, 7, moved=False))
    assert run.tables("b") == [[1, 6], [0, 7]]
    assert (at_24(run, 0), at_24(run, 1)) == ([3, 6], [5])
    assert [run.pool.ref_cnt[block] for block in (3, 5, 6, 7)] == [1, 0, 1, 1]
    assert run.history.holders[3] == ("a",)
    assert run.history.holders[6] == ("b",)


def test_a_partial_hit_counts_one_block_more() -> None:
    run = made()
    run.add("b", [(100, 27)])
    asked = call(run.step(), "b")
    assert asked.check is not None
    assert [(one.fresh, one.idle_hits, one.copies) for one in asked.check.terms] == [(0, 0, 1), (0, 1, 1)]
    assert asked.check.needed == 3


def test_copies_of_attention_groups_are_zeroed_first() -> None:
    run = made()
    run.add("b", [(100, 27)])
    assert zeroed(run.step()) == [6]


def test_two_in_one_step_copy_the_same_blocks() -> None:
    run = made()
    run.abort("a")
    for name in "bc":
        run.add(name, [(100, 27)])
    outcome = run.step()
    assert copies(outcome) == [(3, 4), (3, 7), (5, 6), (5, 8)]  # group by group
    assert (run.tables("b"), run.tables("c")) == ([[1, 4], [0, 6]], [[1, 7], [0, 8]])
    assert run.queue[-2:] == [3, 5]
    assert at_24(run, 0) == [3, 4, 7]


def test_a_copy_is_registered_when_it_fills() -> None:
    run = made()
    run.abort("a")
    run.add("b", [(100, 40)])
    outcome = run.step()
    assert (copies(outcome), run.tables("b")) == ([(3, 4), (5, 6)], [[1, 4], [0, 6]])
    assert [(one.group, one.first, one.end, one.blocks) for one in call(outcome, "b").registered] == [
        (0, 1, 2, (4,)),
        (1, 1, 2, (6,)),
    ]


def test_ends_of_copies_are_given_back_copy_by_copy_group_by_group() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("c", [(900, 27)], max_tokens=1)
    run.steps(3)
    run.add("a", [(100, 27)])
    run.steps(2)
    run.add("d", [(900, 27)])
    assert copies(run.step()) == [(3, 10), (8, 9), (5, 11)]  # a goes on with 8; d hit 3 and 5
    assert run.queue[-3:] == [3, 9, 5]


def test_a_search_probes_inside_the_next_block() -> None:
    run = made()
    run.add("b", [(100, 27)])
    full, state = lookup(run.step(), "b").searches
    assert (full.limit, full.found, full.num_tokens, full.missing) == (26, 2, 24, None)
    assert (state.limit, state.found, state.num_tokens) == (24, 2, 24)


@pytest.mark.parametrize(("prompt", "wanted"), [(24, 16), (25, 24), (28, 24), (60, 24), (17, 16), (16, 0)])
def test_a_partial_hit_leaves_a_token_to_compute(prompt: int, wanted: int) -> None:
    run = made()
    run.add("b", [(100, prompt)])
    assert hit(run.step(), "b")[0] == wanted


# ---- when hits may be partial


@pytest.mark.parametrize(
    ("groups", "hash_size"),
    [
        ([FULL, MAMBA], 16),
        ([FULL, {**MAMBA, "mamba_cache_mode": "all"}], 4),
        ([FULL, MAMBA, window(8)], 4),
    ],
    ids=["hashes as long as blocks", "another mode", "another coarse kind"],
)
def test_partial_hits_need_an_align_group_with_hashes_finer_than_its_blocks(
    groups: list[Group], hash_size: int
) -> None:
    assert made().sim.config.alignment == 4
    run = GroupRun(41, *groups, block_size=16, hash_block_size=hash_size)
    assert run.sim.config.alignment == 16
    run.add("a", [(100, 27)], max_tokens=30)
    run.steps(3)
    run.add("b", [(100, 27)])
    assert hit(run.step(), "b")[0] == 16


def test_without_partial_hits_the_tail_is_registered_only_behind_an_aligned_length_and_never_found() -> None:
    run = GroupRun(41, {**FULL, "block_size": 8}, window(8, block_size=2))
    run.add("a", [(100, 23)], max_tokens=3)
    run.step()
    outcome = run.step()
    tail = call(outcome, "a").partial
    assert [(one.group, one.block, one.num_tokens) for one in tail] == [(0, 3, 22)]
    run.add("b", [(100, 23)])
    assert hit(run.step(), "b")[0] == 16


# ---- EAGLE


@pytest.mark.parametrize(
    ("prompt", "eagle", "wanted"),
    [
        (28, False, [(0, 24), (1, 24)]),
        (28, True, [(1, 24), (0, 28)]),
        (29, False, [(0, 28), (1, 28)]),
        (29, True, [(1, 24), (0, 28)]),
    ],
)
def test_which_boundary_of_the_prompt_is_registered(prompt: int, eagle: bool, wanted: list[tuple[int, int]]) -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4, use_eagle=eagle)
    run.add("a", [(100, prompt)], max_tokens=30)
    assert [(one.group, one.num_tokens) for _ in range(4) for one in call(run.step(), "a").partial] == wanted


def test_with_eagle_the_boundary_is_one_hash_earlier_for_the_state_and_the_hit_drops_one_hash() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4, use_eagle=True)
    run.add("a", [(100, 30)], max_tokens=30)
    found = [(one.group, one.num_tokens) for _ in range(3) for one in call(run.step(), "a").partial]
    assert found == [(1, 24), (0, 28)]
    run.steps(2)
    run.add("b", [(100, 30)])
    outcome = run.step()
    assert lookup(outcome, "b").searches[0].dropped
    assert hit(outcome, "b")[0] == 24
