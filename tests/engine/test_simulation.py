"""Actions on the engine, the scripted model and drafter (0.3, 0.4), forks."""

from __future__ import annotations

import pytest

from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import ConfigError, RequestError
from engine.record import records
from engine.scenario import parse_action
from engine.simulation import Simulation
from tests.engine.helpers import Run, drafts, random_scenario, scheduled, simulation_of


def ids(run: Run, name: str) -> list[int]:
    """Every token that a request knows."""
    return run.request(name).all_token_ids[:]


# ---- the model


def test_the_default_output_depends_on_how_many_requests_were_added() -> None:
    run = Run(20)
    run.add("a", [(10, 3)])
    run.add("b", [(20, 3)])
    run.steps(2)
    assert (ids(run, "a"), ids(run, "b")) == (
        [10, 11, 12, 1_100_000, 1_100_001],
        [20, 21, 22, 1_200_000, 1_200_001],
    )


def test_the_model_says_the_output_token_by_token() -> None:
    run = Run(20)
    run.add("a", [(10, 3)], max_tokens=4, output=[(500, 2), (7, 1), (900, 9)])
    run.steps(3)
    assert ids(run, "a")[3:] == [500, 501, 7]
    run.step()
    assert "a" not in run.scheduler.requests


def test_a_prefill_chunk_samples_nothing() -> None:
    run = Run(20, max_num_batched_tokens=8)
    run.add("a", 12)
    assert [run.step().sampled for _ in range(3)] == [{"a": 0}, {"a": 1}, {"a": 1}]


def test_a_request_that_lost_its_progress_goes_on_with_its_output() -> None:
    run = Run(20)
    run.add("a", [(10, 3)], output=[(500, 40)])
    run.steps(2)
    run.reset(running=True)
    assert run.step().sampled == {"a": 1}
    assert ids(run, "a")[3:] == [500, 501, 502]


# ---- the drafter


def test_as_many_drafts_are_right_as_accept_says_over_and_over() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 5, accept=[2, 0], output=[(500, 60)], max_tokens=30)
    run.step()
    assert run.request("a").spec_token_ids == [501, 502, 7]
    assert run.step().sampled == {"a": 3}
    assert run.request("a").spec_token_ids == [7, 7, 7]
    assert run.step().sampled == {"a": 1}
    assert run.request("a").spec_token_ids == [505, 506, 7]


def test_a_wrong_draft_that_is_the_truth_by_chance_is_accepted() -> None:
    run = Run(20, num_speculative_tokens=2)
    run.add("a", 5, accept=[0], output=[(500, 1), (7, 1), (600, 60)])
    run.step()
    assert run.request("a").spec_token_ids == [7, 7]
    assert run.step().sampled == {"a": 2}


def test_the_schedule_of_accept_goes_on_after_a_preemption() -> None:
    run = Run(20, num_speculative_tokens=1)
    run.add("a", 5, accept=[1, 0], output=[(500, 60)], max_tokens=30)
    run.step()
    run.reset(running=True)
    assert run.request("a").spec_token_ids == []
    run.step()
    assert run.request("a").spec_token_ids == [7]


def test_an_id_used_again_starts_its_schedule_anew() -> None:
    run = Run(20, num_speculative_tokens=1)
    for _ in range(2):
        run.add("a", 5, accept=[1, 0], output=[(500, 60)])
        run.step()
        assert run.request("a").spec_token_ids == [501]
        run.abort("a")


def test_placeholders_never_match() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 9)
    run.step()
    run.add("b", 1, accept=[3])
    outcome = run.step()
    assert (drafts(outcome)["b"], outcome.sampled) == (3, {"a": 1, "b": 1})
    assert run.comp("b") == 1


def test_nothing_is_proposed_for_a_request_that_ended() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 5, max_tokens=1)
    run.step()
    assert run.sim.scripts["a"].drafted == 0


# ---- actions


def test_arrival_time_is_the_index_of_the_action() -> None:
    run = Run(9)
    run.step()
    run.step()
    run.add("a", 3)
    assert run.request("a").arrival_time == 2.0


def test_a_prompt_can_continue_an_earlier_request() -> None:
    run = Run(20)
    run.add("a", [(10, 5)], max_tokens=3, output=[(500, 40)])
    run.steps(3)
    run.sim.apply(_continue("b", "a"))
    assert ids(run, "b")[:8] == [10, 11, 12, 13, 14, 500, 501, 502]
    assert run.step().calls[0].new_comp == 4


def _continue(name: str, earlier: str) -> Action:
    prompt = [{"continue": earlier}, [900, 2]]
    return parse_action({"do": "add_request", "id": name, "prompt": prompt, "max_tokens": 4}, "action")


def test_a_live_id_is_refused_and_nothing_changes() -> None:
    run = Run(9)
    run.add("a", 3)
    before, actions = run.state, run.sim.num_actions
    with pytest.raises(RequestError) as caught:
        run.add("a", 3)
    assert (caught.value.code, caught.value.where) == ("live_id", "actions[1].id")
    assert (run.state, run.sim.num_actions) == (before, actions)
    run.add("b", 3)
    run.step()
    assert ids(run, "b")[-1] == 1_200_000  # the refused one was not counted


def test_continuing_an_unknown_request_is_refused() -> None:
    run = Run(9)
    with pytest.raises(RequestError) as caught:
        run.sim.apply(_continue("b", "a"))
    assert caught.value.code == "unknown_id"
    assert run.sim.num_actions == 0


def test_an_id_may_be_used_again_once_its_request_has_ended() -> None:
    run = Run(9)
    for _ in range(3):
        run.add("a", 3, max_tokens=1)
        run.step()
    assert (run.sim.uses["a"], run.scheduler.requests) == (3, {})


def test_a_config_that_the_engine_rejects_makes_no_simulation() -> None:
    with pytest.raises(ConfigError):
        Simulation(EngineConfig(num_blocks=9, watermark=1.5))


def test_an_outcome_tells_its_index_and_action() -> None:
    run = Run(9)
    first = run.add("a", 3)
    second = run.step()
    assert (first.index, first.action.do, first.output, first.reset) == (0, "add_request", None, None)
    assert (second.index, second.action.do, second.sampled) == (1, "step", {"a": 1})


# ---- forks


def test_a_fork_goes_its_own_way() -> None:
    run = Run(20)
    run.add("a", 7)
    run.step()
    before, twin = run.state, run.fork()
    twin.add("b", 9)
    twin.steps(4)
    twin.abort("a")
    assert run.state == before
    assert (scheduled(run.step()), run.sim.num_actions) == ({"a": 1}, 3)


def test_a_fork_lists_its_own_blocks_for_zeroing() -> None:
    run = Run(9, needs_kv_cache_zeroing=True)
    run.add("a", 5)
    for one in (run.fork(), run.fork(), run):
        output = one.step().output
        assert output is not None
        assert output.new_block_ids_to_zero == [1, 2]


@pytest.mark.parametrize("family", ["core", "priority", "eagle", "midstep"])
def test_a_fork_at_any_time_goes_on_like_the_original(family: str) -> None:
    scenario = random_scenario(family, 100)
    original = simulation_of(scenario)
    for action in scenario.actions:
        twin = original.fork()
        [got], [wanted] = records(twin, [action]), records(original, [action])
        assert got == wanted
        assert twin.history.__dict__ == original.history.__dict__
