"""What is folded from the trace is the engine's state after every action: windows, copies and loads included."""

from __future__ import annotations

import pytest

from engine.kv_cache_block import NULL_BLOCK, Key
from engine.simulation import Outcome, Simulation
from engine.step_trace import BlockEvent, block_events
from tests.engine.groups.support import GOLDEN_GROUPS, runs, scenario_named

SCENARIOS = [*GOLDEN_GROUPS, *(f"groups-{seed}" for seed in range(40))]


class Folded:
    """A pool rebuilt from nothing but block events."""

    def __init__(self, num_blocks: int) -> None:
        self.ref_cnt = [0] * num_blocks
        self.queue = list(range(1, num_blocks))
        self.keys: list[list[Key]] = [[] for _ in range(num_blocks)]

    def absorb(self, outcome: Outcome) -> None:
        """Fold in what happened to the blocks, one by one."""
        for one in block_events(outcome.log):
            assert self.ref_cnt[one.block] == one.ref_before, one
            self.ref_cnt[one.block] = one.ref_after
            self.move(one)

    def move(self, one: BlockEvent) -> None:
        if one.what == "popped":
            assert self.queue.pop(0) == one.block
        elif one.what == "touched":
            assert (one.place is None) == (one.ref_before > 0)
            assert one.place is None or self.queue.pop(one.place) == one.block
        elif one.what in ("freed", "let_go"):
            assert (one.place is None) == (one.what == "let_go") == (one.ref_after > 0)
            if one.place is not None:
                self.queue.insert(one.place, one.block)  # those behind the tail stand further off until all are there
        elif one.what == "evicted" or (one.what == "moved" and one.why.startswith("to ")):
            assert self.keys[one.block] == list(one.keys)
            self.keys[one.block] = []
        elif one.what in ("hashed", "moved"):
            self.keys[one.block] += one.keys
        else:
            assert one.what in ("copied", "held")

    def check(self, simulation: Simulation) -> None:
        """It is the pool of the simulation."""
        pool = simulation.scheduler.kv_cache_manager.block_pool
        assert self.queue == pool.free_queue.get_all_free_blocks()
        assert self.ref_cnt[1:] == pool.ref_cnt[1:]
        assert self.keys == [pool.keys_of(block) for block in range(pool.num_blocks)]


def holders(simulation: Simulation) -> dict[int, list[str]]:
    """Block -> its holders as folded by the history."""
    return {block: sorted(names) for block, names in simulation.history.holders.items()}


def named(simulation: Simulation) -> dict[int, list[str]]:
    """Block -> the requests whose tables name it."""
    found: dict[int, list[str]] = {}
    manager = simulation.scheduler.kv_cache_manager
    for name in simulation.scheduler.requests:
        for table in manager.get_blocks(name):
            for block in table:
                if block != NULL_BLOCK:
                    found.setdefault(block, []).append(name)
    return {block: sorted(names) for block, names in found.items()}


@pytest.mark.parametrize("name", SCENARIOS)
def test_folding_block_events_gives_counts_keys_and_the_queue_in_order(name: str) -> None:
    scenario = scenario_named(name)
    folded = Folded(scenario.config.num_blocks)
    for simulation, outcome in runs(scenario):
        folded.absorb(outcome)
        folded.check(simulation)


@pytest.mark.parametrize("name", SCENARIOS)
def test_holders_are_those_whose_tables_name_the_block(name: str) -> None:
    for simulation, _ in runs(scenario_named(name)):
        assert holders(simulation) == named(simulation)
