"""What the page says about a refusal holds: with so many more free blocks it is admitted, with one fewer it isn't."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from app.rendering.calls import calls
from app.rendering.moment import Moment
from app.rendering.words import plain
from app.services.cursor import Cursor
from app.services.session import Branch, Session
from engine.actions import Action
from engine.record import current_state
from engine.scenario import parse_scenario, read_scenario
from engine.simulation import Outcome
from tests.app.scenarios import PREEMPTION, STEP, add
from tests.engine.helpers import random_scenario
from tests.engine.test_probe import BUILTIN
from tests.engine.test_shortfall import enlarge

SHORT = re.compile(r"Refused\. (.+) needs \d+ blocks?, and (\d+) more would have to be free\.\Z")
NEVER = re.compile(r"Refused\. (.+) needs \d+ blocks?, and can never fit in a pool of (\d+)\.\Z")
SCENARIOS = [(family, seed) for family in ("core", "priority", "noisl", "ngram", "keys") for seed in range(300, 304)]


def with_more(before: Cursor, action: Action, extra: int) -> Outcome:
    """The same action in a pool with so many more free blocks."""
    twin = before.simulation.fork()
    enlarge(twin.scheduler.kv_cache_manager.block_pool, extra)
    return twin.apply(action)


def refusals(branch: Branch) -> Iterator[tuple[Cursor, Action, str, bool]]:
    """Each refusal of a step that the page tells first: the state before, the action, the verdict, who asked."""
    session = Session("x", "", b"", branch)
    for at, action in enumerate(branch.actions):
        before = branch.head.fork()
        branch.advance(branch.head, at + 1, 60)
        moment = Moment.of(session, branch.head)
        assert moment.applied is not None
        first = next((i for i, call in enumerate(moment.applied.trace.calls) if not call.granted), None)
        if first is not None:
            told = next(call for call in calls(moment, first).calls if call.index == first)
            running = moment.applied.trace.calls[first].comp > 0
            yield before, action, plain(told.verdict), running


def goes_on(outcome: Outcome, request: str, *, running: bool) -> bool:
    """Whether the first call of the request was granted."""
    first = next((call for call in outcome.calls if call.request == request and (call.comp > 0) == running), None)
    return first is not None and first.granted


def check(branch: Branch) -> set[str]:
    """Every sentence of a branch against the engine; which kinds there were."""
    kinds = set()
    for before, action, verdict, running in refusals(branch):
        state = current_state(before.simulation)
        if found := SHORT.match(verdict):
            request, missing = found[1], int(found[2])
            assert goes_on(with_more(before, action, missing), request, running=running), verdict
            assert not goes_on(with_more(before, action, missing - 1), request, running=running), verdict
            kinds.add("running" if running else "waiting")
        else:
            assert NEVER.match(verdict), verdict
            kinds.add("never")
        assert current_state(before.simulation) == state
    return kinds


def test_of_the_built_in_scenario() -> None:
    scenario = read_scenario(BUILTIN.read_bytes())
    assert check(Branch(scenario.config, scenario.actions)) == {"waiting"}


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_of_random_scenarios(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    check(Branch(scenario.config, scenario.actions))


def test_of_a_running_request_that_preempts() -> None:
    config = {"num_blocks": 8, "block_size": 4, "max_num_seqs": 8, "max_model_len": 400}
    scenario = parse_scenario({"version": 1, "config": config, "actions": PREEMPTION})
    assert "running" in check(Branch(scenario.config, scenario.actions))


def test_of_one_that_can_never_fit() -> None:
    config = {"num_blocks": 8, "block_size": 4, "max_num_seqs": 8, "max_model_len": 400}
    scenario = parse_scenario({"version": 1, "config": config, "actions": [add("a", 40), STEP]})
    assert check(Branch(scenario.config, scenario.actions)) == {"never"}
