"""A probe calls `allocate_slots` on a copy: the answer is the real one, and the state stays what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.actions import AddRequest, Step
from engine.call_trace import CallTrace
from engine.errors import RequestError
from engine.probe import Arguments, draft, probe, probed, usual
from engine.record import apply_recorded, current_state
from engine.scenario import read_scenario
from engine.simulation import Simulation
from engine.snapshot import digest
from engine.tokens import Own, Shared
from tests.engine.helpers import Run, random_scenario, random_scenarios, simulation_of

BUILTIN = Path(__file__).parent.parent / "fixtures" / "one-call.json"


def builtin(at: int) -> Simulation:
    scenario = read_scenario(BUILTIN.read_bytes())
    simulation = simulation_of(scenario)
    for action in scenario.actions[:at]:
        simulation.apply(action)
    return simulation


def test_with_lookahead_16_the_built_in_call_takes_one_block() -> None:
    simulation = builtin(13)
    call = probe(simulation, "R", lookahead=16)
    assert call.granted
    assert (len(call.popped), call.free_before, call.free_after) == (1, 22, 21)
    assert call.check is not None
    assert call.check.terms[0].held + len(call.popped) == 21
    assert len(simulation.scheduler.kv_cache_manager.get_blocks("R")[0]) == 20


def test_a_waiting_request_is_looked_up_first() -> None:
    call = probe(builtin(5), "R")
    assert (call.new_comp, call.new, call.lookahead, call.watermark_blocks) == (128, 100, 0, 5)
    assert (len(call.touched), len(call.popped), call.free_after) == (8, 7, 27)
    assert call.full_sequence_must_fit


def test_a_refused_probe_names_the_same_shortfall() -> None:
    call = probe(builtin(14), "second")
    assert (call.granted, call.refused_by, call.shortfall) == (False, "gate", 21)
    call = probe(builtin(14), "second", full_sequence_must_fit=False)
    assert call.granted
    assert len(call.popped) == 7


def test_a_shorter_hit_can_be_asked_for() -> None:
    call = probe(builtin(5), "R", new_comp=32, new=16)
    assert (len(call.touched), len(call.popped)) == (2, 1)
    call = probe(builtin(5), "R", new_comp=0, has_scheduled_reqs=False)
    assert (call.new_comp, call.hit_blocks, call.watermark_blocks) == (0, ((),), 0)


def test_external_and_reserved_blocks() -> None:
    call = probe(builtin(5), "R", ext_comp=64, new=8, reserved_blocks=3)
    assert (call.new_comp, call.ext_comp, call.reserved_blocks) == (128, 64, 3)
    assert call.granted


@pytest.mark.parametrize(
    ("request_id", "arguments", "where", "expected"),
    [
        ("nobody", {}, "request", "a waiting or running one"),
        ("warm", {}, "request", "a waiting or running one"),
        ("R", {"new": -1}, "new", "0 to"),
        ("R", {"lookahead": 10**9}, "lookahead", "0 to"),
        ("R", {"reserved_blocks": -5}, "reserved_blocks", "0 to"),
        ("R", {"new": 173}, "new", "at most 172"),
        ("R", {"new": 0, "new_comp": 0}, "new", "1 to 300"),
        ("R", {"new_comp": 144}, "new_comp", "at most 128"),
        ("R", {"new_comp": 20}, "new_comp", "a multiple of 16"),
        ("R", {"ext_comp": 173}, "ext_comp", "at most 172"),
        ("holder", {"new_comp": 16}, "new_comp", "0"),
        ("holder", {"ext_comp": 16}, "ext_comp", "0"),
        ("holder", {"new": 2}, "new", "at most 1"),
    ],
)
def test_impossible_arguments_are_refused_where_they_stand(
    request_id: str, arguments: dict[str, Any], where: str, expected: str
) -> None:
    simulation = builtin(5)
    before = current_state(simulation)
    with pytest.raises(RequestError) as caught:
        probe(simulation, request_id, **arguments)
    assert caught.value.where == where
    assert expected in caught.value.expected
    assert current_state(simulation) == before


def test_an_untraced_engine_can_be_probed() -> None:
    run = Run(9, traced=False)
    run.add("a", 9)
    assert len(probe(run.sim, "a").popped) == 3


def first_call(simulation: Simulation) -> CallTrace | None:
    calls = simulation.fork().apply(Step()).calls
    return calls[0] if calls else None


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(200, 206)))
def test_left_out_arguments_are_the_schedulers_and_nothing_changes(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    simulation, straight = simulation_of(scenario), simulation_of(scenario)
    for action in scenario.actions:
        before, expected = current_state(simulation), first_call(simulation)
        if expected is not None:
            assert probe(simulation, expected.request) == expected
        for name in list(simulation.scheduler.requests):
            for arguments in (Arguments(), Arguments(lookahead=9), Arguments(reserved_blocks=2)):
                if usual(simulation, name).new or usual(simulation, name).ext_comp:
                    assert probed(simulation, name, arguments).call.request == name
        assert current_state(simulation) == before
        assert apply_recorded(simulation, action) == apply_recorded(straight, action)


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(206, 209)))
def test_a_draft_foretells_the_hit_of_an_admission(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    simulation = simulation_of(scenario)
    for action in scenario.actions:
        if isinstance(action, AddRequest):
            told = draft(simulation, action)
            simulation.apply(action)
            call = usual(simulation, action.id)
            assert (told.num_tokens, told.hit_tokens) == (
                simulation.scheduler.requests[action.id].num_tokens,
                call.new_comp,
            )
        else:
            simulation.apply(action)


def test_a_draft_counts_blocks_and_hits() -> None:
    run = Run(30)
    first = AddRequest("a", (Shared("s", 10), Own(4)), 3)
    assert draft(run.sim, first).hit_tokens == 0
    run.sim.apply(first)
    run.step()
    told = draft(run.sim, AddRequest("b", (Shared("s", 10), Own(5)), 3))
    assert (told.num_tokens, told.num_blocks, told.hit_tokens, told.hit_blocks) == (15, 4, 8, 2)
    assert not draft(run.sim, AddRequest("b", (Shared("s", 10),), 3, skip_reading_prefix_cache=True)).looked_up


def test_the_digest_stands_for_the_whole_state() -> None:
    run = Run(9)
    digests = [digest(run.scheduler)]
    run.add("a", 9)
    digests.append(digest(run.scheduler))
    for _ in range(2):
        run.step()
        digests.append(digest(run.scheduler))
    run.abort("a")
    digests.append(digest(run.scheduler))
    run.reset()
    digests.append(digest(run.scheduler))
    assert len(set(digests)) == len(digests)
    assert digest(run.fork().scheduler) == digests[-1]
    one, other = (Run(9) for _ in range(2))
    for some in (one, other):
        some.add("a", [(5, 9)])
        some.step()
    assert digest(one.scheduler) == digest(other.scheduler)
    other.pool.free_queue.append(other.pool.free_queue.popleft())
    assert digest(one.scheduler) != digest(other.scheduler)
