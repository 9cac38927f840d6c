"""What nothing is defined for, and what the engine rejects, says so in words and changes nothing (0.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.errors import ConfigError, InputError, RequestError, ScenarioError
from engine.scenario import parse_scenario
from tests.engine.groups.support import FULL, MAMBA, Group, GroupRun, chunked, window
from tests.engine.helpers import Run


def loading(steps: int) -> GroupRun:
    """`a` loads for so many steps, the first of which is over; `b` runs."""
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 20)], external={"tokens": 8, "async": True, "steps": steps})
    run.add("b", [(900, 4)])
    run.step()
    return run


def under_way() -> Run:
    return loading(3)


def arrived() -> Run:
    return loading(1)


def aborted() -> Run:
    run = loading(3)
    run.abort("a")
    return run


def refused_after_it_came() -> Run:
    run = GroupRun(8, connector=True, scheduler_reserve_full_isl=False)
    run.add("a", [(100, 20)], external={"tokens": 8, "async": True, "steps": 1})
    run.add("b", [(900, 16)])
    run.steps(2)
    assert (run.status("a"), run.holding) == ("WAITING", ["a"])
    return run


def unchanged(run: Run, act: Callable[[], object]) -> RequestError:
    """The error of an action; state, trace, and what comes next are as if it had not been tried."""
    twin, before = run.fork(), run.state
    with pytest.raises(RequestError) as caught:
        act()
    assert run.state == before
    assert "\n" not in str(caught.value)
    assert caught.value.expected
    after, as_if = run.step(), twin.step()
    assert (after.index, after.log, after.events) == (as_if.index, as_if.log, as_if.events)
    assert run.state == twin.state
    return caught.value


@pytest.mark.parametrize("make", [under_way, arrived, aborted, refused_after_it_came])
def test_running_requests_cannot_be_reset_while_a_load_holds_blocks(make: Callable[[], Run]) -> None:
    run = make()
    error = unchanged(run, lambda: run.reset(running=True))
    assert error.code == "load_holds_blocks"
    assert "'a' holds blocks for a load" in error.message


def test_they_can_before_a_load_and_behind_it() -> None:
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 20)], external={"tokens": 8, "async": True, "steps": 1})
    assert run.reset(running=True).reset is True
    run.steps(2)
    assert run.running == ["a"]
    assert run.reset(running=True).reset is True


def test_the_id_of_an_aborted_load_is_still_taken() -> None:
    run = aborted()
    error = unchanged(run, lambda: run.add("a", 5))
    assert (error.code, error.where) == ("live_id", "actions[4].id")
    run.steps(2)
    assert "a" not in run.scheduler.requests
    run.add("a", 5)
    assert run.waiting == ["a"]


def test_external_tokens_with_several_groups_are_refused_before_anything_runs() -> None:
    action = {"do": "add_request", "id": "a", "prompt": [[1, 9]], "max_tokens": 1, "external": {"tokens": 4}}
    scenario = {"version": 1, "config": {"num_blocks": 9, "groups": [FULL, window(8)]}, "actions": [action]}
    with pytest.raises(ScenarioError, match="external tokens can't be had with 2 groups") as caught:
        parse_scenario(scenario)
    assert caught.value.where == "actions[0].external"


# ---- groups that the engine rejects, or for which nothing is defined


@pytest.mark.parametrize(
    ("groups", "options", "where", "words"),
    [
        ([window(0)], {}, "groups[0].sliding_window", "0 is not allowed"),
        ([FULL, chunked(0)], {}, "groups[1].attention_chunk_size", "0 is not allowed"),
        ([{**MAMBA, "num_speculative_blocks": -1}], {}, "groups[0].num_speculative_blocks", "-1 is not allowed"),
        ([{**MAMBA, "mamba_cache_mode": "some"}], {}, "groups[0].mamba_cache_mode", '"some" is not allowed'),
        (
            [FULL, chunked(8)],
            {"prefix_cache_retention_interval": 16},
            "prefix_cache_retention_interval",
            "nothing to apply to",
        ),
        (
            [{**FULL, "block_size": 8}, {**MAMBA, "block_size": 12}],
            {"prefix_cache_retention_interval": 12},
            "prefix_cache_retention_interval",
            "12 is not a multiple of 24",
        ),
        ([{**FULL, "block_size": 8}, {**MAMBA, "block_size": 12}], {"hash_block_size": 8}, "hash_block_size", "12"),
        ([MAMBA], {"hash_block_size": 4}, "hash_block_size", "differs from the only group's block size"),
        ([chunked(32)], {"use_eagle": True}, "groups[0]", "EAGLE"),
        ([chunked(32), {**window(8), "block_size": 32}], {}, "groups[0].block_size", "multiples of 32"),
        (
            [FULL, chunked(32), {**MAMBA, "block_size": 32}],
            {"hash_block_size": 8},
            "groups[1].block_size",
            "block size 16 can't stand where hits are multiples of 32",
        ),
    ],
)
def test_groups_are_refused_with_words(groups: list[Group], options: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        EngineConfig.from_json({"num_blocks": 33, "groups": groups, **options})
    assert isinstance(caught.value, ConfigError)
    assert caught.value.where == f"config.{where}"
    assert words in caught.value.message
    assert caught.value.expected


# ---- found with the real scheduler, missing in 0.3


def test_a_step_that_takes_more_than_was_counted_is_undone() -> None:
    """The real scheduler raises: the count of 7.10 knows one state, yet external tokens take one besides."""
    run = GroupRun(2, MAMBA, connector=True)
    run.add("a", [(100, 20)], external={"tokens": 12})
    before = run.state
    for _ in range(2):
        with pytest.raises(RequestError, match="counted on fewer blocks than it takes") as caught:
            run.step()
        assert (caught.value.code, caught.value.where) == ("pool_exhausted", "actions[1]")
        assert run.state == before
    run.abort("a")
    run.add("b", [(900, 4)], max_tokens=1)
    run.step()
    assert run.state["requests"] == {}
    assert run.queue == [1]
