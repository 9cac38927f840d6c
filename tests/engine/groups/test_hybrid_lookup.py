"""Lookups over several groups: every kind cuts the hit until nobody cuts it any more (7.2 to 7.7)."""

from __future__ import annotations

import pytest

from tests.engine.groups.support import FULL, MAMBA, Group, GroupRun, hit, lookup, window
from tests.engine.helpers import Json, events


def warm(*groups: Group, prompt: int = 30, **options: Json) -> GroupRun:
    """A run in which a prompt from 100 on has been computed and has ended."""
    run = GroupRun(61, *groups, **options)
    run.add("warm", [(100, prompt)], max_tokens=1)
    run.step()
    return run


def lost(run: GroupRun, group: int, *indexes: int) -> None:
    """A group loses these blocks of the prompt from 100 on."""
    twin = run.fork()
    twin.add("probe", [(100, 100)])
    size = run.sim.config.groups[group].block_size // run.sim.config.hash_size
    keys = [(twin.hashes("probe")[(index + 1) * size - 1], group) for index in indexes]
    run.pool.evict_blocks([block for key in keys for block in run.pool.cached.blocks(key)])


def rounds(run: GroupRun, prompt: int = 30) -> list[tuple[int, tuple[int, ...], int, int]]:
    """(round, groups, up to where, cut to what) of each search for a prompt from 100 on."""
    run.add("again", [(100, prompt)])
    return [(one.round, one.groups, one.limit, one.num_tokens) for one in lookup(run.step(), "again").searches]


def length(run: GroupRun, prompt: int = 30) -> int:
    """Tokens that a prompt from 100 on hits; nothing is changed."""
    twin = run.fork()
    twin.add("again", [(100, prompt)])
    return hit(twin.step(), "again")[0]


# ---- the example of 7.6


def full_and_window() -> GroupRun:
    return warm(FULL, window(8, block_size=8))


def test_s_is_the_lcm_and_h_the_gcd() -> None:
    config = full_and_window().sim.config
    assert (config.scheduler_block_size, config.hash_size, config.alignment) == (8, 4, 8)


def test_a_prompt_of_30_hits_24_of_which_the_window_holds_one_block() -> None:
    run = full_and_window()
    assert (run.keys(0), run.keys(1)) == ([1, 2, 3, 4, 5, 6], [9, 10, 11])
    run.add("again", [(100, 30)])
    assert hit(run.step(), "again") == (24, [[1, 2, 3, 4, 5, 6], [0, 0, 11]])


def test_a_prompt_of_21_hits_16_for_the_alignment_cuts_20() -> None:
    run = full_and_window()
    run.add("again", [(100, 21)])
    outcome = run.step()
    assert hit(outcome, "again") == (16, [[1, 2, 3, 4], [0, 10]])
    full, in_window = lookup(outcome, "again").searches
    assert (full.groups, full.limit, full.found, full.num_tokens) == ((0,), 20, 5, 16)
    assert (in_window.groups, in_window.limit, in_window.num_tokens) == ((1,), 16, 16)


# ---- rounds


def test_full_attention_and_one_other_kind_need_one_round() -> None:
    run = warm(FULL, window(8))
    lost(run, 1, 5)
    twin = run.fork()
    assert rounds(run) == [(0, (0,), 29, 28), (0, (1,), 28, 20)]
    twin.add("again", [(100, 30)])
    outcome = twin.step()
    assert hit(outcome, "again") == (20, [[1, 2, 3, 4, 5], [0, 0, 0, 12, 13]])
    assert lookup(outcome, "again").shared_prefix_boundary == 28


def test_each_round_starts_from_what_the_one_before_left_and_full_attention_is_only_cut() -> None:
    run = warm(FULL, window(8), window(16))
    lost(run, 2, 5)
    assert rounds(run.fork()) == [
        (0, (0,), 29, 28),
        (0, (1,), 28, 28),
        (0, (2,), 28, 20),
        (1, (1,), 20, 20),
        (1, (2,), 20, 20),
    ]
    lost(run, 1, 4)
    assert rounds(run.fork())[3:] == [(1, (1,), 20, 16), (1, (2,), 16, 16), (2, (1,), 16, 16), (2, (2,), 16, 16)]
    run.add("again", [(100, 30)])
    assert hit(run.step(), "again") == (16, [[1, 2, 3, 4], [0, 0, 11, 12], [17, 18, 19, 20]])


def test_kinds_without_full_attention_go_round_too() -> None:
    run = warm(window(8), window(16))
    lost(run, 1, 5)
    assert rounds(run) == [(0, (0,), 29, 28), (0, (1,), 28, 20), (1, (0,), 20, 20), (1, (1,), 20, 20)]


def test_full_attention_is_searched_first_wherever_it_stands() -> None:
    run = warm(window(8), window(16), FULL)
    assert [one[1] for one in rounds(run)] == [(2,), (0,), (1,), (0,), (1,)]


def test_groups_with_equal_specs_are_one_and_all_must_hold_a_block() -> None:
    run = warm(FULL, window(8), FULL)
    assert [one[1] for one in rounds(run.fork())] == [(0, 2), (1,)]
    lost(run, 2, 4)
    assert rounds(run) == [(0, (0, 2), 29, 16), (0, (1,), 16, 16)]


def test_a_longer_prefix_that_some_group_still_holds_is_remembered_until_the_next_lookup() -> None:
    run = warm(FULL, window(8))
    lost(run, 1, 1, 2, 3, 4, 5, 6)
    run.add("again", [(100, 30)])
    found = lookup(run.step(), "again")
    assert (found.num_tokens, found.shared_prefix_boundary) == (4, 28)
    assert run.request("again").shared_prefix_boundary == 28
    run.reset(running=True)
    assert lookup(run.step(), "again").shared_prefix_boundary == 0
    assert run.request("again").shared_prefix_boundary == 0


# ---- EAGLE


def test_a_search_that_will_drop_a_block_looks_one_further() -> None:
    run = warm(FULL, window(8, eagle=True), prompt=33)
    lost(run, 0, 5)
    run.add("again", [(100, 33)])
    full, in_window = lookup(run.step(), "again").searches
    assert (full.limit, full.dropped, full.num_tokens) == (32, False, 20)
    assert (in_window.limit, in_window.dropped, in_window.found, in_window.num_tokens) == (24, True, 6, 20)


def test_the_margin_ends_with_the_hashes() -> None:
    run = warm(FULL, window(8, eagle=True))
    assert rounds(run) == [(0, (0,), 29, 28), (0, (1,), 28, 24)]


def test_a_cut_by_another_kind_makes_an_eagle_group_drop_again() -> None:
    run = warm(FULL, window(8, eagle=True), window(16))
    lost(run, 2, 4)
    run.add("again", [(100, 30)])
    found = lookup(run.step(), "again").searches
    assert [(one.round, one.groups, one.limit, one.dropped, one.num_tokens) for one in found] == [
        (0, (0,), 29, False, 28),
        (0, (1,), 28, True, 24),
        (0, (2,), 24, False, 16),
        (1, (1,), 20, True, 16),
        (1, (2,), 16, False, 16),
    ]


def test_without_a_cut_it_drops_only_once() -> None:
    run = warm(FULL, window(8, eagle=True), window(16))
    run.add("again", [(100, 30)])
    found = lookup(run.step(), "again").searches
    assert [(one.round, one.groups, one.dropped, one.num_tokens) for one in found] == [
        (0, (0,), False, 28),
        (0, (1,), True, 24),
        (0, (2,), False, 24),
        (1, (1,), False, 24),
        (1, (2,), False, 24),
    ]


def test_a_marked_group_is_eagle_though_the_config_is_not_and_the_others_are_not() -> None:
    assert length(warm(FULL, window(8))) == 28
    assert length(warm(FULL, window(8, eagle=True))) == 24
    assert length(warm(FULL, window(8), use_eagle=True)) == 24
    assert warm(FULL, window(8, eagle=True), use_eagle=True).sim.config.eagle_groups == (False, True)


# ---- which tokens are registered, 7.7


@pytest.mark.parametrize(
    ("full", "registered"),
    [(FULL, [1, 2, 3, 4, 5, 6]), ({**FULL, "eagle": True}, [1, 2, 3, 4, 5, 6, 7])],
    ids=["aligned", "eagle: a block more"],
)
def test_only_aligned_tokens_are_registered(full: Group, registered: list[int]) -> None:
    run = warm(full, window(8, block_size=8))
    assert run.keys(0) == registered


def test_an_eagle_group_registers_nothing_before_the_first_aligned_length() -> None:
    run = warm({**FULL, "eagle": True}, window(8, block_size=8), prompt=7)
    assert run.keys(0) == []
    assert warm(FULL, prompt=7).keys(0) == [1]


def test_each_group_emits_its_own_stored_event() -> None:
    run = GroupRun(61, FULL, window(8, block_size=8))
    run.add("a", [(100, 30)])
    first, second = events(run.step())
    assert (first[0], len(first[1]), *first[2:]) == ("stored", 6, None, 24, 4, 0)  # type: ignore[arg-type]
    assert (second[0], len(second[1]), *second[2:]) == ("stored", 3, None, 24, 8, 1)  # type: ignore[arg-type]
    hashes = first[1]
    assert isinstance(hashes, list)
    assert second[1] == hashes[1::2]  # the fine hash that ends where the block ends


def test_without_caching_nothing_is_looked_up_or_registered() -> None:
    run = GroupRun(61, FULL, window(8, block_size=8), MAMBA, enable_prefix_caching=False)
    run.add("a", [(100, 30)], max_tokens=1)
    outcome = run.step()
    assert (lookup(outcome, "a").limit, lookup(outcome, "a").searches) == (None, ())
    assert (events(outcome), len(run.pool.cached)) == ([], 0)
