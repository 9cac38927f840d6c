"""What is folded from the trace agrees with the engine after every action: block events, holders, lineage, losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest

from engine.block_pool import BlockPool
from engine.history import Loss
from engine.kv_cache_block import Key
from engine.kv_events import AllBlocksCleared, BlockRemoved
from engine.simulation import Outcome, Simulation
from engine.step_trace import BlockEvent, block_events
from tests.engine.helpers import Run, random_scenario, random_scenarios, simulation_of

SCENARIOS = random_scenarios(range(110, 113))


class Folded:
    """A pool rebuilt from nothing but block events."""

    def __init__(self, num_blocks: int) -> None:
        self.ref_cnt = [0] * num_blocks
        self.queue = list(range(1, num_blocks))
        self.keys: list[list[Key]] = [[] for _ in range(num_blocks)]

    def absorb(self, outcome: Outcome) -> None:
        """Fold in what happened to the blocks. Blocks given back together tell the place they have afterwards."""
        for freed, batch in groupby(block_events(outcome.log), self.given_back):
            if freed is None:
                self.one_by_one(batch)
            else:
                self.all_at_once(list(batch))
        if AllBlocksCleared() in outcome.events:
            self.keys = [[] for _ in self.keys]

    @staticmethod
    def given_back(one: BlockEvent) -> tuple[object, ...] | None:
        """What makes one batch of blocks given back; None: something else."""
        return (one.request, one.why, one.group) if one.what in ("freed", "let_go") else None

    def one_by_one(self, batch: Iterable[BlockEvent]) -> None:
        taken = 0
        for one in batch:
            self.counts(one)
            if one.what == "popped":
                taken = 0 if one.place == 0 else taken
                assert (one.place, self.queue.pop(0)) == (taken, one.block)
                taken += 1
            elif one.what == "touched":
                assert (one.place is None) == (one.ref_before > 0)
                assert one.place is None or self.queue.pop(one.place) == one.block
            elif one.what == "evicted":
                assert self.keys[one.block] == list(one.keys)
                self.keys[one.block] = []
            else:
                assert one.what == "hashed"
                self.keys[one.block] += one.keys

    def all_at_once(self, batch: list[BlockEvent]) -> None:
        places = {}
        for one in batch:
            self.counts(one)
            assert (one.place is None) == (one.what == "let_go") == (one.ref_after > 0)
            if one.place is not None:
                places[one.place] = one.block
        old = iter(self.queue)
        self.queue = [places[at] if at in places else next(old) for at in range(len(self.queue) + len(places))]

    def counts(self, one: BlockEvent) -> None:
        assert self.ref_cnt[one.block] == one.ref_before
        self.ref_cnt[one.block] = one.ref_after


def runs(family: str, seed: int) -> Iterator[tuple[Simulation, Outcome]]:
    """A random scenario, action by action."""
    scenario = random_scenario(family, seed)
    simulation = simulation_of(scenario)
    for action in scenario.actions:
        yield simulation, simulation.apply(action)


def pool_of(simulation: Simulation) -> BlockPool:
    return simulation.scheduler.kv_cache_manager.block_pool


def tables(simulation: Simulation) -> dict[str, list[int]]:
    """The tables that hold anything."""
    manager = simulation.scheduler.kv_cache_manager
    return {name: table for name in simulation.scheduler.requests if (table := manager.get_blocks(name)[0])}


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_folding_block_events_gives_counts_keys_and_the_queue_in_order(family: str, seed: int) -> None:
    folded: Folded | None = None
    for simulation, outcome in runs(family, seed):
        pool = pool_of(simulation)
        folded = folded or Folded(pool.num_blocks)
        folded.absorb(outcome)
        assert folded.queue == pool.free_queue.get_all_free_blocks()
        assert folded.ref_cnt[1:] == pool.ref_cnt[1:]
        assert folded.keys == [pool.keys_of(block) for block in range(pool.num_blocks)]


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_holders_are_those_whose_tables_name_the_block_the_longest_first(family: str, seed: int) -> None:
    before: dict[int, tuple[str, ...]] = {}
    for simulation, _ in runs(family, seed):
        holders = simulation.history.holders
        named: dict[int, set[str]] = {}
        for name, table in tables(simulation).items():
            for block in table:
                named.setdefault(block, set()).add(name)
        assert {block: set(names) for block, names in holders.items()} == named
        for block, names in holders.items():
            stayed = [name for name in before.get(block, ()) if name in names]
            assert len(names) == len(named[block])
            # one that was preempted and came back within the action would stand at the end; the engine has none
            assert list(names[: len(stayed)]) == stayed
        before = dict(holders)


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_lineage_knows_parent_and_depth_of_every_hash_that_was_stored(family: str, seed: int) -> None:
    for simulation, _ in runs(family, seed):
        lineage, size = simulation.history.lineage, simulation.config.block_size
        assert set(pool_of(simulation).cached) <= set(lineage)
        for request in simulation.scheduler.requests.values():
            parent = None
            for place, block_hash in enumerate(request.block_hashes, 1):
                if known := lineage.get((block_hash, 0)):
                    assert (known.parent, known.num_tokens) == (parent, place * size)
                parent = block_hash


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_losses_tell_the_latest_loss_of_each_hash(family: str, seed: int) -> None:
    wanted: dict[Key, Loss] = {}
    cached: dict[Key, list[int]] = {}
    for simulation, outcome in runs(family, seed):
        lost = [
            (key, Loss(outcome.index, one.block, call.request))
            for call in outcome.calls
            for one in call.popped
            for key in one.lost
        ]
        removed = [(event.block_hash, event.group) for event in outcome.events if isinstance(event, BlockRemoved)]
        assert [key for key, _ in lost] == removed
        wanted.update(lost)
        losses = simulation.history.losses
        if outcome.reset:
            assert {losses[key].by for key in cached} <= {None}
            assert all(losses[key].action == outcome.index for key in cached)
            assert all(losses[key].block in blocks for key, blocks in cached.items())
            wanted.update((key, losses[key]) for key in cached)
        assert losses == wanted
        pool = pool_of(simulation)
        cached = {key: pool.cached.blocks(key) for key in pool.cached}


@pytest.mark.parametrize(("family", "seed"), SCENARIOS)
def test_leading_hits_are_those_of_the_admission(family: str, seed: int) -> None:
    wanted: dict[str, int] = {}
    for simulation, outcome in runs(family, seed):
        for call in outcome.calls:
            if call.granted and call.comp == 0:
                wanted[call.request] = len(call.hit_blocks[0]) if call.hit_blocks else 0
        held = tables(simulation)
        told = simulation.history.hit_blocks
        assert set(told) <= set(held)
        assert {name: told.get(name, (0,))[0] for name in held} == {name: wanted[name] for name in held}


def test_a_hit_that_was_refused_is_forgotten_when_the_request_is_admitted_without_it() -> None:
    run = Run(6)
    run.add("warm", [(100, 9)], max_tokens=1)
    run.step()
    run.add("a", 11, max_tokens=7)
    run.add("b", [(100, 8), (7, 9)])
    refused = run.step().calls[-1]
    assert (refused.request, refused.hit_blocks, refused.granted) == ("b", ((1, 2),), False)
    assert "b" not in run.history.hit_blocks
    while "b" not in run.running:
        outcome = run.step()
    assert outcome.calls[-1].new_comp == 0
    assert "b" not in run.history.hit_blocks


def test_a_reset_is_the_latest_loss_of_everything_cached() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=1)
    hashes = run.hashes("a")
    run.step()
    outcome = run.reset()
    assert [run.history.losses.get((one, 0)) for one in hashes[:2]] == [
        Loss(outcome.index, 1, None),
        Loss(outcome.index, 2, None),
    ]


def test_a_lost_hash_names_the_request_that_took_its_block() -> None:
    run = Run(3)
    run.add("a", [(100, 8)], max_tokens=1)
    first, second = run.hashes("a")
    run.step()
    run.add("b", 4, max_tokens=1)
    outcome = run.step()
    assert run.history.losses == {(second, 0): Loss(outcome.index, 2, "b")}
    assert run.history.lineage[second, 0].parent == first


def test_equal_traces_give_equal_histories() -> None:
    one, other = ([sim.history.__dict__ for sim, _ in runs("core", 113)][-1] for _ in range(2))
    assert one == other


def test_a_fork_of_the_history_is_independent() -> None:
    run = Run(9)
    run.add("a", 8)
    run.step()
    twin = run.fork()
    twin.abort("a")
    assert (run.history.holders, twin.history.holders) == ({1: ("a",), 2: ("a",)}, {})
