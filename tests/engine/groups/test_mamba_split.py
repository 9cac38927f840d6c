"""Prefill chunks end where a Mamba state is wanted (7.11)."""

from __future__ import annotations

import pytest

from tests.engine.groups.support import FULL, MAMBA, GroupRun, hit, lookup
from tests.engine.helpers import Json, scheduled, trace


def chunks(run: GroupRun, *, name: str = "a") -> list[int]:
    """Tokens of each step until the prompt is computed."""
    found: list[int] = []
    while run.request(name).num_output_tokens == 0:
        found.append(scheduled(run.step())[name])
    return found


@pytest.mark.parametrize(
    ("options", "prompt", "wanted"),
    [
        ({"block_size": 8}, 30, [24, 6]),
        ({"block_size": 8, "enable_prefix_caching": False}, 30, [24, 6]),
        ({"block_size": 8, "use_eagle": True}, 30, [16, 14]),
        ({"block_size": 16, "hash_block_size": 4}, 27, [16, 8, 3]),
        ({"block_size": 16}, 27, [16, 11]),
        ({"block_size": 8}, 8, [8]),
        ({"block_size": 8}, 9, [8, 1]),
        ({"block_size": 8, "use_eagle": True}, 8, [8]),
        ({"block_size": 8, "max_num_batched_tokens": 20}, 50, [16, 16, 16, 2]),
        ({"block_size": 8, "max_num_batched_tokens": 5}, 30, [5, 3, 5, 3, 5, 3, 5, 1]),
        ({"block_size": 8, "max_num_batched_tokens": 12, "long_prefill_token_threshold": 4}, 30, [8, 8, 8, 6]),
    ],
)
def test_chunks_of_a_prompt(options: dict[str, Json], prompt: int, wanted: list[int]) -> None:
    run = GroupRun(41, FULL, MAMBA, **options)
    run.add("a", [(100, prompt)])
    assert chunks(run) == wanted


def test_the_unit_is_the_block_size_of_the_config_not_the_groups() -> None:
    run = GroupRun(41, {**FULL, "block_size": 8}, {**MAMBA, "block_size": 16}, block_size=8)
    run.add("a", [(100, 30)])
    assert chunks(run) == [24, 6]


@pytest.mark.parametrize(("modes", "wanted"), [(["all", "align"], [30]), (["align", "all"], [24, 6])])
def test_the_mode_of_the_first_mamba_group_decides(modes: list[str], wanted: list[int]) -> None:
    run = GroupRun(61, FULL, *({**MAMBA, "mamba_cache_mode": mode} for mode in modes), block_size=8)
    run.add("a", [(100, 30)])
    assert chunks(run) == wanted


def test_a_chunk_tells_that_it_was_split() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8)
    run.add("a", [(100, 30)])
    [chunk] = trace(run.step()).chunks
    assert (chunk.wanted, chunk.uncut, chunk.tokens, chunk.cut_by) == (30, 30, 24, "split")


def test_a_request_that_would_get_nothing_ends_the_pass() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8, max_num_batched_tokens=12)
    run.add("a", [(100, 9)])
    run.add("b", [(9_000, 30)])
    run.add("c", [(8_000, 2)])
    outcome = run.step()
    assert scheduled(outcome) == {"a": 8}
    assert [(one.in_pass, one.reason, one.request) for one in trace(outcome).halts] == [("waiting", "split", "b")]
    assert run.waiting == ["b", "c"]


def test_a_shared_prefix_is_a_stop_and_its_state_serves_a_third_prompt() -> None:
    run = GroupRun(61, FULL, MAMBA, block_size=8, prefix_cache_retention_interval=0)
    run.add("a", [(100, 50)], max_tokens=1)
    run.steps(2)
    run.add("b", [(100, 27), (9_000, 20)])
    outcome = run.step()
    found = lookup(outcome, "b")
    assert (found.num_tokens, found.shared_prefix_boundary) == (0, 24)
    assert [(one.groups, one.num_tokens) for one in found.searches] == [((0,), 24), ((1,), 0)]
    assert [scheduled(outcome)["b"], *chunks(run, name="b")] == [24, 16, 7]
    run.add("c", [(100, 27), (8_000, 20)])
    assert hit(run.step(), "c")[0] == 24


def test_a_preempted_request_is_split_over_prompt_and_output() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=8)
    run.add("a", [(100, 6)], max_tokens=30)
    run.steps(13)
    assert run.request("a").num_tokens == 19
    run.reset(running=True)
    assert [scheduled(run.step()) for _ in range(2)] == [{"a": 16}, {"a": 3}]


def test_the_boundary_of_the_prompt_is_no_stop_for_one_that_has_gone_further() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)], max_tokens=60)
    run.steps(25)
    assert run.request("a").num_tokens == 50
    run.reset(running=True)
    assert [scheduled(run.step()) for _ in range(2)] == [{"a": 48}, {"a": 2}]


def test_a_preempted_request_whose_whole_prompt_is_cached_is_split_too() -> None:
    run = GroupRun(10, FULL, MAMBA, block_size=8, policy="priority", scheduler_reserve_full_isl=False)
    run.add("b", [(100, 6)], max_tokens=40, priority=5)
    run.step()
    run.add("a", [(900, 6)], max_tokens=22)
    run.steps(23)
    outcome = run.step()
    [chunk] = trace(outcome).chunks
    assert (chunk.computed, chunk.wanted, chunk.tokens, chunk.cut_by) == (16, 9, 8, "split")
    assert scheduled(outcome) == {"b": 8}
