"""The trace of part two: calls that add up, windows, blocks of copies and loads, lineage of partial keys."""

from __future__ import annotations

import pytest

from engine.call_trace import CallTrace
from engine.config import EngineConfig
from engine.record import current_state
from engine.simulation import Outcome, Simulation
from engine.step_trace import Preemption, block_events
from tests.engine.groups.support import FULL, GOLDEN_GROUPS, MAMBA, GroupRun, call, runs, scenario_named, window
from tests.engine.helpers import simulation_of, trace

SCENARIOS = [*GOLDEN_GROUPS[::3], *(f"groups-{seed}" for seed in range(40, 70))]


def told(outcome: Outcome, block: int) -> list[tuple[object, ...]]:
    """What happened to a block."""
    return [
        (one.what, one.why, one.request, one.group, one.ref_before, one.ref_after)
        for one in block_events(outcome.log)
        if one.block == block
    ]


# ---- calls


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_parts_of_every_call_add_up(name: str) -> None:
    scenario = scenario_named(name)
    for _, outcome in runs(scenario):
        for one in outcome.calls:
            adds_up(one, scenario.config)


def adds_up(one: CallTrace, config: EngineConfig) -> None:
    """The terms make the count, the count decides, and the blocks taken are those counted."""
    tests = [test for test in (one.gate, one.check) if test is not None and test.terms]
    for test in tests:
        assert len(test.terms) == len(config.groups)
        assert test.needed == sum(terms.total for terms in test.terms)
        waits = [terms.total == config.num_blocks + 1 for terms in test.terms]  # for a state of this very step
        assert all(
            wait or terms.total == terms.fresh + terms.idle_hits + terms.copies
            for wait, terms in zip(waits, test.terms, strict=True)
        )
    assert one.granted == all(test.passes for test in tests)
    assert (one.shortfall > 0) == (not one.granted)
    taken = len(one.popped) + sum(touched.place is not None for touched in one.touched)
    assert one.free_before + one.released_count - one.free_after == taken
    if not one.granted:
        assert (one.touched, one.popped, one.registered, one.partial) == ((), (), (), ())
    elif not (one.ext_comp and config.groups[0].kind == "mamba"):  # those take a state for the external tokens besides
        assert one.check is not None
        assert taken == one.check.needed
    assert all(given.blocks and given.group < len(config.groups) for given in one.released)


@pytest.mark.parametrize("name", SCENARIOS)
def test_lookups_tell_the_rounds_that_cut_them(name: str) -> None:
    for _, outcome in runs(scenario_named(name)):
        for lookup in trace(outcome).lookups:
            if lookup.limit is None:
                assert (lookup.searches, lookup.num_tokens) == ((), 0)
                continue
            lengths = [one.num_tokens for one in lookup.searches]
            first = lookup.searches[0]  # one that will drop a block looks further, up to the hashes
            assert first.dropped or first.limit == lookup.limit
            assert lookup.num_tokens == min(lengths)
            assert all(one.num_tokens <= one.limit for one in lookup.searches)
            assert [one.round for one in lookup.searches] == sorted(one.round for one in lookup.searches)
            assert lookup.shared_prefix_boundary in (0, max(lengths))


@pytest.mark.parametrize("name", SCENARIOS)
def test_copies_are_those_of_the_step(name: str) -> None:
    for _, outcome in runs(scenario_named(name)):
        assert (outcome.output is None) <= (trace(outcome).copies == ())
        if outcome.output is not None:
            pairs = sorted(outcome.output.kv_cache_block_copies)
            assert sorted((one.source, one.copy) for one in trace(outcome).copies) == pairs


@pytest.mark.parametrize("name", ["partial-0001", "mamba-0003", "hybrid-0002", "connector-0004", "groups-71"])
def test_without_a_sink_the_engine_does_the_same_and_entries_never_change_afterwards(name: str) -> None:
    scenario = scenario_named(name)
    traced, silent, again = simulation_of(scenario), simulation_of(scenario, traced=False), simulation_of(scenario)
    outcomes = []
    for action in scenario.actions:
        one, other = traced.apply(action), silent.apply(action)
        outcomes.append(one)
        assert other.log == ()
        assert current_state(silent) == current_state(traced)
        assert (other.events, other.prefix_cache, other.output) == (one.events, one.prefix_cache, one.output)
    assert [repr(one.log) for one in outcomes] == [repr(again.apply(action).log) for action in scenario.actions]


def test_an_entry_does_not_change_while_the_step_goes_on() -> None:
    """The blocks popped for a state that is copied are told, the copy itself too."""
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)])
    run.steps(2)
    pops = [entry for entry in run.step().log if entry[0] == "pop"]
    assert pops == [("pop", 1, [5], [])]


# ---- what can never fit


def test_a_running_window_could_go_on_however_long_it_is() -> None:
    run = GroupRun(9, window(6), scheduler_reserve_full_isl=False)
    run.add("a", [(100, 30)], max_tokens=200)
    run.steps(62)
    run.pool.get_new_blocks(run.free, 0)
    while (asked := call(run.step(), "a")).granted:
        assert asked.comp < 120
    assert asked.check is not None
    [terms] = asked.check.terms
    assert terms.need > 8 >= terms.need - terms.skipped
    assert not asked.can_never_fit(8)


def test_what_can_never_fit_never_does() -> None:
    """Where the whole sequence is asked for; otherwise a smaller hit may need less."""
    seen = 0
    for seed in range(30):
        scenario = scenario_named(f"groups-{seed}")
        never: dict[str, int] = {}
        for _, outcome in runs(scenario):
            for one in outcome.calls:
                if one.comp == 0 and one.full_sequence_must_fit:
                    assert not (one.granted and one.request in never)
                    if one.can_never_fit(scenario.config.num_blocks - 1):
                        never[one.request] = outcome.index
        seen += len(never)
    assert seen > 5


# ---- blocks


def test_a_block_that_fell_out_of_a_window_says_so() -> None:
    run = GroupRun(9, FULL, window(8))
    run.add("a", [(100, 12)])
    run.step()
    assert run.tables("a") == [[1, 2, 3], [4, 5, 6]]
    outcome = run.step()
    assert told(outcome, 4) == [("freed", "window", "a", 1, 1, 0)]
    assert [one.blocks for one in call(outcome, "a").released] == [(4,)]


def test_a_source_of_two_copies_is_let_go_and_freed() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)])
    run.steps(3)
    run.abort("a")
    for name in "bc":
        run.add(name, [(100, 27)])
    outcome = run.step()
    assert told(outcome, 5) == [
        ("touched", "hit", "b", 1, 0, 1),
        ("copied", "to 6", "b", 1, 1, 1),
        ("touched", "hit", "c", 1, 1, 2),
        ("copied", "to 8", "c", 1, 2, 2),
        ("let_go", "copied", None, 1, 2, 1),
        ("freed", "copied", None, 1, 1, 0),
    ]
    assert told(outcome, 4) == [
        ("popped", "new", "b", 0, 0, 1),
        ("held", "copied", "b", 0, 1, 2),
        ("hashed", "partial", "b", 0, 2, 2),
        ("let_go", "copied", None, 0, 2, 1),
    ]


def test_a_moved_state_is_held_by_its_copy_until_the_step_is_scheduled() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)])
    run.steps(2)
    outcome = run.step()
    assert told(outcome, 4) == [
        ("moved", "to 5", "a", 1, 1, 1),
        ("copied", "to 5", "a", 1, 1, 1),
        ("held", "copied", "a", 1, 1, 2),
        ("let_go", "copied", None, 1, 2, 1),
    ]
    assert told(outcome, 5) == [
        ("popped", "new", "a", 1, 0, 1),
        ("moved", "from 4", "a", 1, 1, 1),
        ("freed", "copied", None, 1, 1, 0),
    ]
    assert run.history.holders == {1: ("a",), 3: ("a",), 4: ("a",)}


def test_blocks_of_an_aborted_load_are_freed_when_it_is_received() -> None:
    run = GroupRun(13, connector=True)
    run.add("a", [(100, 20)], external={"tokens": 8, "async": True, "steps": 2})
    assert told(run.step(), 1) == [("popped", "new", "a", 0, 0, 1)]
    assert told(run.abort("a"), 1) == []
    assert run.history.holders == {1: ("a",), 2: ("a",)}
    assert told(run.step(), 1) == [("freed", "aborted", "a", 0, 1, 0)]
    assert run.history.holders == {}


def test_blocks_that_left_the_window_at_the_end_were_freed_by_it() -> None:
    run = GroupRun(13, window(6), connector=True)
    run.add("a", [(100, 20)], max_tokens=1)
    outcome = run.step()
    freed = [one for one in block_events(outcome.log) if one.what == "freed"]
    assert [(one.block, one.request, one.place) for one in freed] == [
        (3, "a", 7),
        (2, "a", 8),
        (1, "a", 9),
        (5, "a", 10),
        (4, "a", 11),
    ]


def test_a_prefix_that_makes_way_for_a_longer_one_is_lost_in_that_block() -> None:
    run = GroupRun(41, FULL, MAMBA, block_size=16, hash_block_size=4)
    run.add("a", [(100, 27)], max_tokens=30)
    run.steps(7)
    outcome = run.step()
    key = (run.hashes("a")[5], 0)
    assert [(one.what, one.why) for one in block_events(outcome.log) if one.block == 3] == [
        ("evicted", "longer prefix"),
        ("hashed", "full"),
        ("hashed", "partial"),
    ]
    loss = run.history.losses[key]
    assert (loss.action, loss.block, loss.by) == (outcome.index, 3, "a")
    assert (run.history.lineage[key].parent, run.history.lineage[key].num_tokens) == (run.hashes("a")[4], 24)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_cached_key_has_a_lineage_that_is_its_requests_chain(name: str) -> None:
    for simulation, _ in runs(scenario_named(name)):
        lineage, size = simulation.history.lineage, simulation.config.hash_size
        assert set(simulation.scheduler.kv_cache_manager.block_pool.cached) <= set(lineage)
        for request in simulation.scheduler.requests.values():
            for index, block_hash in enumerate(request.block_hashes):
                for group in range(len(simulation.config.groups)):
                    if known := lineage.get((block_hash, group)):
                        assert known.num_tokens == (index + 1) * size
                        assert known.parent in (None, *request.block_hashes[:index])


def test_preemptions_free_what_the_window_left_of_a_table() -> None:
    run = GroupRun(8, window(6))
    run.add("a", [(100, 16)], max_tokens=20)
    run.add("b", [(900, 10)], max_tokens=20)
    run.steps(3)
    assert (run.tables("a"), run.tables("b"), run.free) == ([[0, 0, 0, 4, 2]], [[0, 6, 7]], 3)
    run.pool.get_new_blocks(3, 0)
    outcome = run.step()
    assert trace(outcome).preemptions == (Preemption("b", "b", 0),)
    assert [one.block for one in block_events(outcome.log) if one.why == "preempted"] == [7, 6]
    assert run.tables("b") == [[]]


def last(name: str) -> Simulation:
    """A scenario's simulation after its last action."""
    return [simulation for simulation, _ in runs(scenario_named(name))][-1]


@pytest.mark.parametrize("name", ["partial-0002", "connector-0003", "groups-72"])
def test_equal_traces_give_equal_histories(name: str) -> None:
    one, other = last(name).history, last(name).history
    assert (one.holders, one.lineage, one.losses) == (other.holders, other.lineage, other.losses)
    assert one.hit_blocks == other.hit_blocks
