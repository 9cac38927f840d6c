"""The blocks beneath the tokens of a call: what a refused one holds, and what was lost in the same step."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.contexts import Call
from app.gallery import every_story
from app.rendering.calls import call_context
from app.rendering.held import held_table
from app.rendering.moment import Moment
from app.services.session import Branch, Session
from engine.config import EngineConfig
from engine.scenario import Scenario, parse_scenario
from tests.app.test_figures import GOLDEN, scenario_of

LONE = {
    "version": 1,
    "title": "Alone and too long",
    "config": {"num_blocks": 7, "block_size": 4, "max_num_batched_tokens": 128, "scheduler_reserve_full_isl": False},
    "actions": [
        {"do": "add_request", "id": "a", "prompt": {"tokens": 24}, "max_tokens": 4},
        {"do": "step"},
        {"do": "step"},
    ],
}


def moment_of(scenario: Scenario, at: int) -> Moment:
    session = Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))
    session.branch.advance(session.branch.head, at, 60)
    return Moment.of(session, session.branch.head)


def calls_at(scenario: Scenario, at: int) -> list[Call]:
    moment = moment_of(scenario, at)
    assert moment.applied is not None
    trace = moment.applied.trace
    return [call_context(moment, trace, index) for index in range(len(trace.calls))]


def blocks(call: Call) -> tuple[list[int], list[int]]:
    (row,) = call.rows
    return [chip.block for chip in row.old], [chip.block for chip in row.new]


def test_a_refused_one_that_is_tried_again_holds_its_blocks() -> None:
    refused, granted, *_ = calls_at(every_story()["preemption"].scenario, 5)
    assert (refused.request, refused.granted, granted.request, granted.granted) == ("ada", False, "ada", True)
    assert blocks(refused) == ([1, 2], [])
    assert blocks(granted) == ([1, 2], [7])
    (row,) = refused.rows
    assert [(chip.numbers, chip.hashed, chip.filled) for chip in row.old] == [((0,), True, 1), ((0,), True, 1)]
    assert (row.total, row.num_old, row.num_new) == (3, 2, 0)
    count = next(stage for stage in refused.stages if stage.name == "count")
    assert {term.word: term.blocks for term in count.formulas[0].terms}["held-before"] == (1, 2)


def test_one_that_preempts_itself_is_drawn_with_what_it_gave_back() -> None:
    call = calls_at(parse_scenario(LONE), 3)[-1]
    assert (call.request, call.granted) == ("a", False)
    assert call.next is not None
    assert "it preempts itself" in call.next.head
    assert blocks(call) == ([1, 2, 3, 4, 5, 6], [])
    (row,) = call.rows
    assert all(chip.numbers == (0,) and chip.hashed for chip in row.old)
    assert row.total == 7


def test_one_that_finishes_in_the_step_keeps_its_row() -> None:
    scenario = every_story()["preemption"].scenario
    moment = moment_of(scenario, 6)
    assert moment.applied is not None
    assert [one.request for one in moment.applied.trace.finishes] == ["ada"]
    call = next(call for call in calls_at(scenario, 6) if call.request == "ada")
    assert blocks(call) == ([1, 2, 7], [])
    (row,) = call.rows
    assert [(chip.numbers, chip.hashed) for chip in row.old] == [((0,), True), ((0,), True), ((0,), False)]
    assert row.old[2].filled == 2 / 16


@pytest.mark.parametrize("path", GOLDEN[::5], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_row_agrees_with_the_count(path: Path) -> None:
    """What was held before a call is what the engine counted, in every group, whatever came of the request."""
    scenario = scenario_of(path)
    session = Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))
    for at in range(session.branch.end + 1):
        session.branch.advance(session.branch.head, at, 60)
        check_held(Moment.of(session, session.branch.head), scenario.config)


def check_held(moment: Moment, config: EngineConfig) -> None:
    for call in moment.applied.trace.calls if moment.applied else ():
        assert call.check is not None
        for group, terms in enumerate(call.check.terms):
            table = held_table(moment, call, group).blocks
            if not call.granted:
                assert len(table) == terms.held
            elif call.comp and not call.ext_comp and config.groups[group].kind != "mamba":
                assert call.new_blocks is not None
                assert len(table) - len(call.new_blocks[group]) == terms.held
