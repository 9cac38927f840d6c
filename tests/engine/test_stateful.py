"""Random actions under random configs: invariants after each, and nothing depends on how a state was reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.actions import Action
from engine.invariants import check
from engine.record import Record, apply_recorded, current_state, records
from engine.scenario import Scenario, parse_action
from engine.simulation import Outcome, Simulation
from tests.engine.helpers import ONE_GROUP_FAMILIES, Json, Run, config, random_scenario, random_scenarios, simulation_of


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    """A config of one full-attention group, small enough that blocks are short."""
    budget = draw(st.sampled_from([8, 12, 16, 24, 40, 64]))
    whole = draw(st.integers(0, 5)) == 0
    drafts = draw(st.sampled_from([0, 0, 1, 3]))
    threshold = 0 if whole else draw(st.sampled_from([0, 0, drafts + 1, 8]))
    return {
        "num_blocks": draw(st.sampled_from([7, 9, 13, 13, 21, 2])),
        "block_size": draw(st.sampled_from([1, 2, 4, 4, 4, 8])),
        "max_model_len": budget if whole else draw(st.sampled_from([32, 48, 96])),
        "max_num_batched_tokens": budget,
        "max_num_seqs": draw(st.sampled_from([8, 4, 3, 1])),
        "enable_prefix_caching": draw(st.integers(0, 4)) > 0,
        "enable_chunked_prefill": not whole,
        "long_prefill_token_threshold": threshold,
        "policy": draw(st.sampled_from(["fcfs", "priority"])),
        "watermark": draw(st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.1, 0.3])),
        "scheduler_reserve_full_isl": draw(st.booleans()),
        "prefix_caching_hash_algo": draw(st.sampled_from(["sha256_cbor", "sha256", "xxhash", "xxhash_cbor"])),
        "num_speculative_tokens": drafts,
        "num_lookahead_tokens": draw(st.sampled_from([0, 0, drafts, 5])),
        "use_eagle": draw(st.booleans()),
        "needs_kv_cache_zeroing": draw(st.booleans()),
    }


class Engine(RuleBasedStateMachine):
    """The engine under any order of actions; beside it one without a sink, and a fork that lags behind."""

    def __init__(self) -> None:
        super().__init__()
        self.config: dict[str, Any] = {}
        self.added = 0
        self.done: list[tuple[Action, Outcome]] = []

    @initialize(options=configs())
    def start(self, options: dict[str, Any]) -> None:
        self.config = options
        one = config(**options)
        self.sim, self.silent = Simulation(one), Simulation(one, traced=False)
        self.lagging, self.lagging_since = self.sim.fork(), 0

    def act(self, **written: Json) -> None:
        action = parse_action(written, "action")
        outcome, silent = self.sim.apply(action), self.silent.apply(action)
        self.done.append((action, outcome))
        assert (outcome.output, outcome.sampled, outcome.events) == (silent.output, silent.sampled, silent.events)

    @rule(
        prefix=st.sampled_from([0, 0, 1, 2]),
        shared=st.sampled_from([0, 4, 8, 9, 16]),
        own=st.sampled_from([1, 2, 3, 5, 8, 9, 24]),
        max_tokens=st.sampled_from([9, 2, 30, 1]),
        stop=st.sampled_from([None, None, None, 0, 2]),
        salt=st.sampled_from([None, None, "tenant-a"]),
        lora=st.sampled_from([None, None, "sql"]),
        skip=st.integers(0, 6),
        accept=st.lists(st.integers(0, 3), min_size=1, max_size=3),
        priority=st.integers(0, 2),
        too_large=st.integers(0, 15),
    )
    def add(
        self,
        prefix: int,
        shared: int,
        own: int,
        max_tokens: int,
        stop: int | None,
        salt: str | None,
        lora: str | None,
        skip: int,
        accept: list[int],
        priority: int,
        too_large: int,
    ) -> None:
        self.added += 1
        pool = (self.config["num_blocks"] - 1) * self.config["block_size"]
        longest = self.config["max_model_len"] if too_large == 11 else min(self.config["max_model_len"], pool)
        own = min(own, longest)
        shared = min(shared, longest - own)
        spans = [[100_000 * prefix, shared]] if shared else []
        optional: dict[str, Any] = {"cache_salt": salt, "lora": lora}
        self.act(
            do="add_request",
            id=f"r{self.added}",
            prompt=[*spans, [500_000 + 100 * self.added, own]],
            max_tokens=max_tokens,
            stop_token_ids=[] if stop is None else [1_000_000 + 100_000 * self.added + stop],
            skip_reading_prefix_cache=skip == 0,
            accept=accept,
            priority=priority,
            **{key: value for key, value in optional.items() if value is not None},
        )

    @precondition(lambda self: self.sim.scripts)
    @rule(data=st.data(), more=st.integers(1, 9))
    def next_turn(self, data: st.DataObject, more: int) -> None:
        earlier = data.draw(st.sampled_from(sorted(self.sim.scripts)))
        tokens = sum(span.count for span in self.sim.scripts[earlier].so_far()) + more
        if tokens <= self.config["max_model_len"]:
            self.added += 1
            prompt = [{"continue": earlier}, [900_000 + 100 * self.added, more]]
            self.act(do="add_request", id=f"r{self.added}", prompt=prompt, max_tokens=8)

    @rule(count=st.sampled_from([1, 1, 3, 8, 20]))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.act(do="step")
            check(self.sim)

    @precondition(lambda self: self.sim.scheduler.requests and len(self.done) % 3 == 0)
    @rule(data=st.data())
    def step_while_clients_hang_up(self, data: st.DataObject) -> None:
        living = st.sampled_from(sorted(self.sim.scheduler.requests))
        self.act(do="step", abort=data.draw(st.lists(living, min_size=1, max_size=3)))

    @precondition(lambda self: self.sim.scripts and len(self.done) % 4 == 0)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.act(do="abort", id=data.draw(st.sampled_from(sorted(self.sim.scripts))))

    @precondition(lambda self: len(self.done) % 5 == 0)
    @rule(running=st.booleans())
    def reset(self, running: bool) -> None:
        before = current_state(self.sim)
        self.act(do="reset_prefix_cache", reset_running_requests=running)
        if running:
            assert not self.sim.scheduler.running
            assert not len(self.sim.scheduler.kv_cache_manager.block_pool.cached)
        elif self.sim.scheduler.running:
            assert current_state(self.sim) == before

    @rule()
    def a_fork_left_behind_catches_up(self) -> None:
        for action, outcome in self.done[self.lagging_since :]:
            assert self.lagging.apply(action) == outcome
        assert current_state(self.lagging) == current_state(self.sim)
        assert self.lagging.history.__dict__ == self.sim.history.__dict__
        self.lagging, self.lagging_since = self.sim.fork(), len(self.done)

    @invariant()
    def named_invariants_hold(self) -> None:
        if self.config:
            check(self.sim)

    @invariant()
    def the_engine_without_a_sink_is_in_the_same_state(self) -> None:
        if self.config:
            assert current_state(self.silent) == current_state(self.sim)


Engine.TestCase.settings = settings(stateful_step_count=40)
TestEngine = Engine.TestCase


# ---- the same scenario again, from a fork, back and forth


def played(scenario: Scenario, actions: Sequence[Action] | None = None) -> list[Record]:
    """The records of a fresh run."""
    return list(records(simulation_of(scenario), scenario.actions if actions is None else actions))


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(120, 126)))
def test_invariants_hold_after_every_action_and_between_schedule_and_update(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    simulation = simulation_of(scenario)
    check(simulation)
    for action in scenario.actions:
        simulation.apply(action, lambda: check(simulation.scheduler))
        check(simulation)


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(130, 132)))
def test_a_scenario_replayed_twice_gives_identical_records(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    assert played(scenario) == played(scenario)


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(132, 134)))
def test_forks_at_any_action_go_on_as_a_fresh_replay(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    wanted = played(scenario)
    original = simulation_of(scenario)
    for at, action in enumerate(scenario.actions):
        if at % 7 == 0:
            assert list(records(original.fork(), scenario.actions[at:])) == wanted[at:]
        assert apply_recorded(original, action) == wanted[at]


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(134, 136)))
def test_a_cursor_moved_back_and_forth_gives_the_same_as_a_fresh_replay(family: str, seed: int) -> None:
    """Keeping a fork every 5 actions, as a cursor does: jump about, play on from the fork before."""
    scenario = random_scenario(family, seed)
    wanted = played(scenario)
    simulation = simulation_of(scenario)
    kept = []
    for at, action in enumerate(scenario.actions):
        if at % 5 == 0:
            kept.append(simulation.fork())
        simulation.apply(action)
    for at in (len(wanted) - 1, 0, 17, 3, 18, 17, 4, len(wanted) // 2):
        cursor = kept[at // 5].fork()
        assert list(records(cursor, scenario.actions[at // 5 * 5 : at + 1])) == wanted[at // 5 * 5 : at + 1]


@pytest.mark.parametrize("family", ONE_GROUP_FAMILIES)
def test_acting_otherwise_on_a_fork_leaves_the_original_alone(family: str) -> None:
    scenario, other = random_scenario(family, 136), random_scenario(family, 137)
    original = simulation_of(scenario)
    wanted = played(scenario)
    for at, action in enumerate(scenario.actions):
        twin = original.fork()
        for stray in (*other.actions[-6:], *scenario.actions[:0]):
            twin.apply(stray)
        twin.scheduler.finish_requests(list(twin.scheduler.requests))
        assert apply_recorded(original, action) == wanted[at]


# ---- the invariants see what they are there for


def busy() -> Run:
    """a runs with [1,2,3], b's [4,5] is idle and hashed, c waits."""
    run = Run(9, max_num_seqs=2)
    run.add("a", [(100, 9)])
    run.add("b", [(900, 9)], max_tokens=1)
    run.add("c", [(500, 9)])
    run.step()
    run.pool.take_events()
    assert (run.table("a"), run.queue, run.waiting) == ([1, 2, 3], [6, 7, 8, 5, 4], ["c"])
    return run


def break_count(run: Run) -> None:
    run.pool.free_queue.num_free_blocks += 1


def break_links(run: Run) -> None:
    run.pool.free_queue._prev[run.pool.num_blocks] = 6


def break_places(run: Run) -> None:
    run.pool.free_queue._label[7] += 1


def free_the_null_block(run: Run) -> None:
    run.pool.free_queue.append(0)


def hash_the_null_block(run: Run) -> None:
    run.pool.insert_key((b"key", 0), 0, 4)


def free_a_held_block(run: Run) -> None:
    run.pool.free_queue.append(3)


def hold_a_free_block(run: Run) -> None:
    run.pool.ref_cnt[8] = 1


def lose_a_block(run: Run) -> None:
    run.pool.free_queue.remove(8)


def hold_twice(run: Run) -> None:
    run.pool.ref_cnt[2] = 2


def list_a_key_that_no_block_carries(run: Run) -> None:
    run.pool.cached.insert((b"key", 0), 7)


def forget_a_listed_key(run: Run) -> None:
    run.pool.cached.pop((run.hashes("a")[0], 0), 1)


def drop_a_prefix_length(run: Run) -> None:
    run.pool.block_hash_num_tokens[1] = 0


def cache_with_caching_off(run: Run) -> None:
    run.pool.enable_caching = False


def keep_the_table_of_the_dead(run: Run) -> None:
    del run.scheduler.requests["a"]


def track_too_much(run: Run) -> None:
    run.manager.coordinator.managers[0].num_cached_block["a"] = 4


def run_twice(run: Run) -> None:
    run.scheduler.running.append(run.request("a"))


def wait_and_run(run: Run) -> None:
    run.scheduler.waiting.add(run.request("a"))


def run_without_the_status(run: Run) -> None:
    run.scheduler.running.append(run.request("c"))


BREAKS: list[tuple[str, Callable[[Run], None]]] = [
    ("queue length", break_count),
    ("queue links", break_links),
    ("queue places", break_places),
    ("null block", free_the_null_block),
    ("null block", hash_the_null_block),
    ("free or held", free_a_held_block),
    ("I1", hold_a_free_block),
    ("I1", lose_a_block),
    ("I4", hold_twice),
    ("I3", list_a_key_that_no_block_carries),
    ("I3", forget_a_listed_key),
    ("keys of a block", drop_a_prefix_length),
    ("caching off", cache_with_caching_off),
    ("table owners", keep_the_table_of_the_dead),
    ("tracking", track_too_much),
    ("running list", run_twice),
    ("run or wait", wait_and_run),
    ("running list", run_without_the_status),
]


@pytest.mark.parametrize(("name", "damage"), BREAKS, ids=[damage.__name__ for _, damage in BREAKS])
def test_a_broken_invariant_is_named(name: str, damage: Callable[[Run], None]) -> None:
    run = busy()
    check(run.sim)
    damage(run)
    with pytest.raises(AssertionError, match=f"^{name}: "):
        check(run.sim)
