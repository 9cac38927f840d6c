"""The number of an aspect is another one where, and only where, the aspect is: told from the engine's own state."""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable
from itertools import chain
from pathlib import Path

import pytest

from app.services.aspects import NAMES, differing
from app.services.session import Branch
from engine.config import EngineConfig
from engine.scenario import Scenario, parse_scenario

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FILES = sorted(path for path in GOLDEN.glob("*.json.gz") if path.name.endswith(("-0001.json.gz", "-0007.json.gz")))


def read(path: Path) -> Scenario:
    return parse_scenario(json.loads(gzip.decompress(path.read_bytes()))["scenario"])


def state(branch: Branch) -> dict[str, Hashable]:
    """What the numbers stand for, read from the engine."""
    applied, scheduler = branch.head.applied, branch.head.simulation.scheduler
    manager, pool = scheduler.kv_cache_manager, scheduler.kv_cache_manager.block_pool
    output = applied.outcome.output if applied else None
    calls, preemptions = (applied.trace.calls, applied.trace.preemptions) if applied else ((), ())
    tables = [(name, tuple(map(tuple, manager.get_blocks(name)))) for name in scheduler.requests]
    waiting = chain(scheduler.waiting, scheduler.loads.holding)
    return {
        "schedule": tuple(output.num_scheduled_tokens.items()) if output else (),
        "refusals": (
            tuple((call.request, call.shortfall) for call in calls if not call.granted),
            tuple(one.victim for one in preemptions),
        ),
        "queues": (tuple(one.request_id for one in waiting), tuple(one.request_id for one in scheduler.running)),
        "tables": frozenset((name, table) for name, table in tables if any(table)),
        "free": tuple((block, pool.block_hash[block] is not None) for block in pool.free_queue),
    }


class Seen:
    """Which state a number stood for, and the other way round."""

    def __init__(self) -> None:
        self.state_of: dict[tuple[str, int], Hashable] = {}
        self.number_of: dict[tuple[str, Hashable], int] = {}

    def look(self, branch: Branch) -> None:
        for name, value in state(branch).items():
            number = branch.columns.aspects.numbers[name][branch.end]
            assert self.state_of.setdefault((name, number), value) == value, (name, branch.end)
            assert self.number_of.setdefault((name, value), number) == number, (name, branch.end)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name[:-8])
def test_a_number_stands_for_one_state(path: Path) -> None:
    scenario, seen = read(path), Seen()
    branch = Branch(scenario.config, has_connector=scenario.has_connector)
    seen.look(branch)
    for k, action in enumerate(scenario.actions):
        if k == len(scenario.actions) // 2:
            fork = branch.fork_at(branch.head)
        branch.append(action)
        seen.look(branch)
    for action in scenario.actions[fork.end :]:  # the copy reads everything again
        fork.append(action)
        seen.look(fork)
    end = branch.end
    assert differing(branch.columns.aspects, fork.columns.aspects, end) == {name: [] for name in NAMES}


def test_stretches_on_another_config() -> None:
    scenario = read(next(path for path in FILES if path.name.startswith("core")))
    a, b = Branch(scenario.config), Branch(EngineConfig.from_json({**scenario.config.to_json(), "max_num_seqs": 2}))
    states = []
    for branch in (a, b):
        told = [state(branch)]
        for action in scenario.actions:
            branch.append(action)
            told.append(state(branch))
        states.append(told)
    found = differing(a.columns.aspects, b.columns.aspects, a.end)
    for name in NAMES:
        apart = [at for at in range(a.end + 1) if states[0][at][name] != states[1][at][name]]
        assert [at for first, last in found[name] for at in range(first, last + 1)] == apart
    assert any(found.values())
