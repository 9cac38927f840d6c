"""Random groups of any kinds, random actions: invariants after each; how a state was reached makes no difference."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import InputError, RequestError
from engine.invariants import check
from engine.record import apply_recorded, current_state, records
from engine.scenario import parse_action
from engine.simulation import Outcome, Simulation
from tests.engine.groups.support import FULL, GOLDEN_GROUPS, Group, chunked, scenario_named, window
from tests.engine.groups.test_trace_fold import Folded, holders, named
from tests.engine.helpers import Json, simulation_of


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A group of any kind."""
    size = draw(st.sampled_from([2, 4, 4, 8]))
    kind = draw(st.sampled_from(["full", "window", "chunked", "mamba", "mamba"]))
    eagle = {"eagle": True} if draw(st.integers(0, 7)) == 7 else {}
    if kind == "full":
        return {**FULL, "block_size": size, **eagle}
    if kind == "window":
        return window(draw(st.sampled_from([6, 8, 1, 2, 13])), block_size=size, **eagle)
    if kind == "chunked":
        return chunked(draw(st.sampled_from([8, 4, 16, 10])), block_size=size)
    spare = draw(st.sampled_from([0, 0, 1, 2]))
    return {"kind": "mamba", "block_size": size, "num_speculative_blocks": spare, **eagle}


@st.composite
def configs(draw: st.DrawFn) -> Json:
    """A config with any groups that the engine takes."""
    chosen = draw(st.lists(groups(), min_size=1, max_size=4))
    mode = draw(st.sampled_from(["align", "align", "align", "all", "none"]))
    sizes = [group["block_size"] for group in chosen]
    unit, drafts = math.gcd(*sizes), draw(st.sampled_from([0, 0, 1, 3]))
    interval = draw(st.sampled_from([None, None, None, 0, 1, 2]))
    fine = draw(st.sampled_from([None, 1, 2]))
    written = {
        "num_blocks": draw(st.sampled_from([13, 21, 33, 9])),
        "block_size": draw(st.sampled_from([4, 8, 2])),
        "max_model_len": draw(st.sampled_from([64, 96])),
        "max_num_batched_tokens": draw(st.sampled_from([24, 8, 16, 40])),
        "max_num_seqs": draw(st.sampled_from([8, 4, 2])),
        "groups": [{**group, "mamba_cache_mode": mode} if group["kind"] == "mamba" else group for group in chosen],
        "enable_prefix_caching": draw(st.integers(0, 5)) < 5,
        "policy": draw(st.sampled_from(["fcfs", "priority"])),
        "scheduler_reserve_full_isl": draw(st.booleans()),
        "watermark": draw(st.sampled_from([0.0, 0.0, 0.1])),
        "long_prefill_token_threshold": draw(st.sampled_from([0, 0, 8])),
        "num_speculative_tokens": drafts,
        "num_lookahead_tokens": draw(st.sampled_from([0, drafts])),
        "use_eagle": draw(st.integers(0, 3)) == 3,
        "hash_block_size": None if fine is None or len(chosen) == 1 else unit // math.gcd(unit, fine),
        "prefix_cache_retention_interval": None if interval is None else interval * math.lcm(*sizes),
        "needs_kv_cache_zeroing": draw(st.booleans()),
    }
    try:
        EngineConfig.from_json(written)
    except InputError:
        assume(False)
    return written


class Engine(RuleBasedStateMachine):
    """The engine under any order of actions; beside it one without a sink, and a fork that lags behind."""

    def __init__(self) -> None:
        super().__init__()
        self.config: Json = None
        self.added = 0
        self.done: list[tuple[Action, Outcome]] = []

    @initialize(options=configs(), connector=st.booleans())
    def start(self, options: Json, connector: bool) -> None:
        self.config = options
        one = EngineConfig.from_json(options)
        self.connector = connector and len(one.groups) == 1
        self.sim = Simulation(one, has_connector=self.connector)
        self.silent = Simulation(one, has_connector=self.connector, traced=False)
        self.lagging, self.lagging_since = self.sim.fork(), 0
        self.folded = Folded(one.num_blocks)

    def act(self, **written: Json) -> None:
        action = parse_action(written, "action")
        failed: RequestError | None = None
        try:
            outcome = self.sim.apply(action)
        except RequestError as error:
            failed = error
        if failed is not None:  # a Mamba group may take more for external tokens than was counted
            assert (failed.code, self.config["groups"][0]["kind"]) == ("pool_exhausted", "mamba")
            with pytest.raises(RequestError, match="counted on fewer"):
                self.silent.apply(action)
            return
        silent = self.silent.apply(action)
        self.done.append((action, outcome))
        self.folded.absorb(outcome)
        assert (outcome.output, outcome.sampled, outcome.events) == (silent.output, silent.sampled, silent.events)

    @rule(
        prefix=st.sampled_from([0, 0, 1]),
        shared=st.sampled_from([0, 8, 17, 24, 30]),
        own=st.sampled_from([3, 1, 5, 9, 24]),
        max_tokens=st.sampled_from([9, 2, 30, 1]),
        skip=st.integers(0, 6),
        accept=st.lists(st.integers(0, 3), min_size=1, max_size=3),
        priority=st.integers(0, 2),
        external=st.sampled_from([0, 0, 5, 8, 30]),
        steps=st.sampled_from([None, None, 0, 2, 3]),
    )
    def add(
        self,
        prefix: int,
        shared: int,
        own: int,
        max_tokens: int,
        skip: int,
        accept: list[int],
        priority: int,
        external: int,
        steps: int | None,
    ) -> None:
        self.added += 1
        spans = [[100_000 * prefix, shared]] if shared else []
        optional: Json = {"skip_reading_prefix_cache": True} if skip == 0 else {}
        if self.connector and external:
            optional["external"] = {"tokens": external, "async": steps is not None, "steps": steps or 0}
        self.act(
            do="add_request",
            id=f"r{self.added}",
            prompt=[*spans, [500_000 + 100 * self.added, own]],
            max_tokens=max_tokens,
            accept=accept,
            priority=priority,
            **optional,
        )

    @rule(count=st.sampled_from([1, 1, 3, 8]))
    def step(self, count: int) -> None:
        for _ in range(count):
            self.act(do="step")
            check(self.sim)

    @precondition(lambda self: self.added and len(self.done) % 3 == 0)
    @rule(data=st.data())
    def step_while_a_client_hangs_up(self, data: st.DataObject) -> None:
        self.act(do="step", abort=[f"r{data.draw(st.integers(1, self.added))}"])

    @precondition(lambda self: self.added and len(self.done) % 4 == 0)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.act(do="abort", id=f"r{data.draw(st.integers(1, self.added))}")

    @precondition(lambda self: len(self.done) % 5 == 0)
    @rule(running=st.booleans())
    def reset(self, running: bool) -> None:
        before = current_state(self.sim)
        aborted = any(request.status.value == "FINISHED_ABORTED" for request in self.sim.scheduler.requests.values())
        action: Json = {"do": "reset_prefix_cache", "reset_running_requests": running}
        if running and (self.sim.scheduler.loads.holding or aborted):
            with pytest.raises(RequestError, match="holds blocks for a load"):
                self.sim.apply(parse_action(action, "action"))
            assert current_state(self.sim) == before
            return
        self.act(**action)
        if running:
            assert not self.sim.scheduler.running
            assert not len(self.sim.scheduler.kv_cache_manager.block_pool.cached)

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
    def the_trace_says_what_the_blocks_are(self) -> None:
        if self.config:
            self.folded.check(self.sim)
            assert holders(self.sim) == named(self.sim)

    @invariant()
    def the_engine_without_a_sink_is_in_the_same_state(self) -> None:
        if self.config:
            assert current_state(self.silent) == current_state(self.sim)

    def teardown(self) -> None:
        """Two replays are equal, and equal to what was played."""
        if self.config:
            again = Simulation(EngineConfig.from_json(self.config), has_connector=self.connector)
            for action, outcome in self.done:
                assert again.apply(action) == outcome
            assert current_state(again) == current_state(self.sim)


Engine.TestCase.settings = settings(stateful_step_count=30, max_examples=200)
TestEngine = Engine.TestCase

SCENARIOS = [*GOLDEN_GROUPS[1::6], *(f"groups-{seed}" for seed in range(80, 100))]


@pytest.mark.parametrize("name", [*GOLDEN_GROUPS, *(f"groups-{seed}" for seed in range(100, 160))])
def test_invariants_hold_after_every_action_and_between_schedule_and_update(name: str) -> None:
    scenario = scenario_named(name)
    simulation = simulation_of(scenario)
    for action in scenario.actions:
        simulation.apply(action, lambda: check(simulation.scheduler))
        check(simulation)


@pytest.mark.parametrize("name", SCENARIOS)
def test_replays_and_forks_at_any_action_give_the_same_records(name: str) -> None:
    scenario = scenario_named(name)
    wanted = list(records(simulation_of(scenario), scenario.actions))
    original = simulation_of(scenario)
    for at, action in enumerate(scenario.actions):
        if at % 11 == 0:
            twin = original.fork()
            assert list(records(twin.fork(), scenario.actions[at:])) == wanted[at:]
            twin.scheduler.finish_requests(list(twin.scheduler.requests))
            twin.apply(parse_action({"do": "step"}, "action"))
        assert apply_recorded(original, action) == wanted[at]
