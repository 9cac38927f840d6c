"""The trace: stages, terms and decisions of each call, and what a step told (5, 6)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.block_hash import BlockHash
from engine.call_trace import CallTrace, FitTest, GivenBack, Popped, Touched, read_calls
from engine.kv_cache_block import Key
from engine.record import current_state
from engine.scenario import Scenario, parse_scenario
from engine.simulation import Outcome
from engine.step_trace import (
    Admission,
    Chunk,
    DraftsScheduled,
    Finish,
    Halt,
    Preemption,
    Sampled,
    block_events,
)
from engine.trace import STAGES
from tests.engine.helpers import (
    ONE_GROUP_FAMILIES,
    Run,
    random_scenario,
    random_scenarios,
    scheduled,
    simulation_of,
    trace,
    undone_victim,
)

ONE_CALL = Path(__file__).parent.parent / "golden" / "one-call.json.gz"


# ---- "One call, traced"


class Built:
    """The built-in scenario, run action by action."""

    def __init__(self) -> None:
        scenario = json.loads(gzip.decompress(ONE_CALL.read_bytes()))["scenario"]
        self.scenario: Scenario = parse_scenario(scenario)
        self.run = Run.of(simulation_of(self.scenario))

    def until(self, count: int) -> Outcome:
        """Execute up to action `count` - 1; the outcome of that one."""
        for action in self.scenario.actions[self.run.sim.num_actions : count]:
            outcome = self.run.sim.apply(action)
        return outcome

    def call(self, count: int, request: str = "R") -> CallTrace:
        """The call for a request in action `count` - 1."""
        return {call.request: call for call in self.until(count).calls}[request]

    @property
    def now(self) -> tuple[int, int]:
        """(free, blocks in R's table)."""
        return self.run.free, len(self.run.table("R"))


def terms(test: FitTest) -> tuple[int, ...]:
    """Need, held, skipped, hits, fresh, idle hits and total of the only group."""
    [one] = test.terms
    return one.need, one.held, one.skipped, one.hits, one.fresh, one.idle_hits, one.total


def test_before_the_call_40_blocks_are_free_and_8_of_the_prefix_cached_6_of_them_idle() -> None:
    built = Built()
    built.until(5)
    prefix = built.run.hashes("R")[:8]
    cached = [built.run.listed(block_hash)[0] for block_hash in prefix]
    assert built.run.free == 40
    assert [block in built.run.queue for block in cached] == [False] * 2 + [True] * 6
    assert built.run.manager.watermark_blocks == 5


def test_admission_takes_13_though_7_blocks_are_new() -> None:
    built = Built()
    call = built.call(6)
    assert (call.new_comp, call.new, call.free_before, call.free_after) == (128, 100, 40, 27)
    assert call.new_blocks is not None
    assert len(call.new_blocks[0]) == 7
    assert built.now == (27, 15)
    assert call.reached == STAGES
    assert call.gate is not None
    assert call.check is not None
    assert (call.gate.tokens, terms(call.gate)) == (300, (19, 0, 0, 8, 11, 6, 17))
    assert (call.gate.needed, call.gate.headroom, call.gate.free, call.gate.spare) == (17, 5, 40, 18)
    assert (call.check.tokens, terms(call.check)) == (228, (15, 0, 0, 8, 7, 6, 13))
    assert (call.check.needed, call.check.headroom, call.check.spare, call.check.passes) == (13, 5, 22, True)
    assert (len(call.touched), sum(one.place is not None for one in call.touched)) == (8, 6)
    assert [(one.first, one.end, len(one.blocks)) for one in call.registered] == [(8, 14, 6)]


def test_the_second_chunk_takes_4_and_running_requests_know_no_gate() -> None:
    built = Built()
    call = built.call(7)
    assert (call.new, call.free_before, call.free_after) == (72, 27, 23)
    assert built.now == (23, 19)
    assert call.reached == ("release", "count", "check", "touch", "pop", "hash", "return")
    assert call.gate is None
    assert call.check is not None
    assert (terms(call.check), call.check.headroom) == ((19, 15, 0, 0, 4, 0, 4), 0)


def test_tokens_301_to_304_take_none_305_takes_one_306_none() -> None:
    built = Built()
    seen = []
    for count in range(8, 14):
        call = built.call(count)
        seen.append((call.comp + call.new, call.new_blocks and len(call.new_blocks[0]), *built.now))
    assert seen == [
        (301, 0, 23, 19),
        (302, 0, 23, 19),
        (303, 0, 23, 19),
        (304, 0, 23, 19),
        (305, 1, 22, 20),
        (306, 0, 22, 20),
    ]


def test_a_call_with_lookahead_16_on_a_fork_takes_one_and_leaves_the_original_alone() -> None:
    built = Built()
    built.until(13)
    before = built.run.state
    twin = built.run.fork()
    blocks = twin.manager.allocate_slots(twin.request("R"), 1, 0, None, 16)
    assert blocks == ([built.run.queue[0]],)
    assert (twin.free, len(twin.table("R"))) == (21, 21)
    assert built.run.state == before
    assert built.now == (22, 20)


def test_the_second_request_needs_38_and_5_more_than_22_and_gets_none() -> None:
    call = Built().call(15, "second")
    assert (call.granted, call.refused_by, call.reached) == (False, "gate", ("gate", "return"))
    assert call.gate is not None
    assert (call.gate.needed, call.gate.headroom, call.gate.free) == (38, 5, 22)
    assert (call.shortfall, call.can_never_fit(100)) == (21, False)
    assert call.check is not None
    assert (call.check.needed, call.check.passes) == (7, True)
    assert (call.touched, call.popped, call.registered, call.released) == ((), (), (), ())


# ---- the stages of a call


def test_stages_of_a_refused_check() -> None:
    run = Run(4, num_lookahead_tokens=4)
    run.add("a", 12)
    [call] = run.step().calls
    assert call.reached == ("gate", "release", "count", "check", "return")
    assert (call.refused_by, call.new_blocks, call.free_after) == ("check", None, 3)


def test_touched_popped_and_registered_name_blocks_places_and_lost_hashes() -> None:
    run = Run(9)
    run.add("old", [(100, 21)], max_tokens=1)
    run.add("held", [(900, 5)])
    old: list[Key] = [(block_hash, 0) for block_hash in run.hashes("old")]
    run.step()
    assert run.queue == [6, 5, 4, 3, 2, 1]
    run.add("new", [(900, 4), (100, 1), (300, 12)])
    call = run.step().calls[1]
    assert call.request == "new"
    assert call.touched == (Touched(0, 7, 1, None),)
    assert call.popped == (
        Popped(0, 6, 0, ()),
        Popped(0, 5, 1, (old[4],)),
        Popped(0, 4, 2, (old[3],)),
        Popped(0, 3, 3, (old[2],)),
    )
    hashes = run.hashes("new")
    [one] = call.registered
    assert (one.group, one.first, one.end, one.blocks) == (0, 1, 4, (6, 5, 4))
    assert (one.hashes, one.parent) == (tuple(hashes[1:4]), hashes[0])


def test_touching_an_idle_block_tells_the_place_it_left() -> None:
    run = Run(9)
    run.add("old", [(100, 12)], max_tokens=1)
    run.step()
    assert run.queue == [4, 5, 6, 7, 8, 3, 2, 1]
    run.add("new", [(100, 13)])
    assert run.step().calls[0].touched == (Touched(0, 1, 0, 7), Touched(0, 2, 0, 6), Touched(0, 3, 0, 5))


def test_a_request_that_is_gone_is_told_with_its_blocks() -> None:
    run = Run(9)
    run.add("a", [(100, 10)])
    run.step()
    [_, entry] = run.abort("a").log
    given = GivenBack.of(entry)
    assert given == GivenBack(0, (3, 2, 1), (3,), (2, 1), (), 5)
    assert [given.place(block) for block in (3, 2, 1, 4)] == [0, 6, 7, None]
    assert run.queue == [3, 4, 5, 6, 7, 8, 2, 1]


# ---- lookups


def looked_up(outcome: Outcome) -> tuple[object, ...]:
    """Limit, hit blocks and length of the only lookup; then limit, drop, blocks found and hash missed of its search."""
    [lookup] = trace(outcome).lookups
    [search] = lookup.searches
    assert search.limit == lookup.limit
    return lookup.limit, lookup.blocks[0], lookup.num_tokens, search.dropped, search.found, search.missing


def test_a_lookup_tells_the_first_hash_that_was_missing() -> None:
    run = Run(20)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 13)])
    third = run.hashes("b")[2]
    assert looked_up(run.step()) == (12, (1, 2), 8, False, 2, third)


def test_a_lookup_that_the_last_token_rule_ends_misses_nothing() -> None:
    run = Run(20)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 8)])
    assert looked_up(run.step()) == (7, (1,), 4, False, 1, None)


def test_a_lookup_tells_the_eagle_drop() -> None:
    run = Run(20, use_eagle=True)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 9)])
    assert looked_up(run.step()) == (8, (1,), 4, True, 2, None)


@pytest.mark.parametrize("caching", [True, False])
def test_a_lookup_that_is_not_enabled_has_no_limit(caching: bool) -> None:
    run = Run(20, enable_prefix_caching=caching)
    run.add("a", 8, skip_reading_prefix_cache=caching)
    [lookup] = trace(run.step()).lookups
    assert (lookup.request, lookup.limit, lookup.blocks, lookup.num_tokens) == ("a", None, ((),), 0)
    assert lookup.searches == ()


# ---- chunks


def cut(outcome: Outcome) -> dict[str, tuple[int, str | None]]:
    """Tokens of each request and what cut them."""
    return {chunk.request: (chunk.tokens, chunk.cut_by) for chunk in trace(outcome).chunks}


def test_a_chunk_tells_all_that_bounds_it() -> None:
    run = Run(33, max_num_batched_tokens=16, long_prefill_token_threshold=8, max_model_len=100)
    run.add("a", 30)
    run.add("b", 5)
    first, second = trace(run.step()).chunks
    assert first == Chunk("waiting", "a", 0, 30, 8, 16, 100, 8, 8, 0)
    assert second == Chunk("waiting", "b", 0, 5, 8, 8, 100, 5, 5, 0)
    assert trace(run.step()).chunks[0] == Chunk("running", "a", 8, 22, 8, 16, 91, 8, 8, 0)


def test_what_cuts_a_chunk() -> None:
    run = Run(33, max_num_batched_tokens=16, long_prefill_token_threshold=8)
    run.add("a", 30)
    assert cut(run.step()) == {"a": (16, "budget")}
    run.add("b", 30)
    assert cut(run.step()) == {"a": (8, "threshold"), "b": (8, "threshold")}
    run.abort("b")
    assert cut(run.step()) == {"a": (6, None)}


def test_the_end_of_the_context_cuts_drafts() -> None:
    run = Run(20, num_speculative_tokens=3, max_model_len=12)
    run.add("a", 8, accept=[0])
    run.step()
    assert cut(run.step()) == {"a": (3, "room")}


def test_padding_is_told_with_the_chunk() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 9)
    run.step()
    run.add("b", 1)
    assert trace(run.step()).chunks[-1] == Chunk("waiting", "b", 0, 1, 0, 2044, 8192, 4, 4, 3)


def test_a_step_tells_budget_and_threshold() -> None:
    run = Run(20, max_num_batched_tokens=16, long_prefill_token_threshold=8)
    assert (trace(run.step()).budget, trace(run.step()).threshold) == (16, 0)
    run.add("a", 3)
    run.add("b", 3)
    assert trace(run.step()).threshold == 8
    assert trace(run.abort("a")).budget is None


# ---- halts


def running_budget() -> Run:
    run = Run(30, max_num_batched_tokens=10)
    run.add("a", 4)
    run.add("b", 20)
    run.step()
    run.request("a").spec_token_ids = [9] * 9
    return run


def waiting_budget() -> Run:
    run = Run(30, max_num_batched_tokens=10)
    run.add("a", 20)
    run.add("b", 3)
    return run


def self_preempted() -> Run:
    run = Run(7, max_num_batched_tokens=24, scheduler_reserve_full_isl=False)
    run.add("a", 25)
    run.step()
    return run


def seqs() -> Run:
    run = Run(30, max_num_seqs=1)
    run.add("a", 3)
    run.add("b", 3)
    return run


def padding() -> Run:
    run = Run(20, num_speculative_tokens=3, max_num_batched_tokens=6)
    run.add("a", 2)
    run.step()
    run.add("b", 1)
    return run


def whole_prefill() -> Run:
    run = Run(33, enable_chunked_prefill=False, max_num_batched_tokens=64, max_model_len=64)
    run.add("a", 40)
    run.add("b", 30)
    return run


def no_blocks() -> Run:
    run = Run(5)
    run.add("a", 9)
    run.add("b", 5)
    return run


def nothing_left() -> Run:
    run = Run(9)
    run.add("a", 5)
    return run


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (running_budget, [Halt("running", "budget", "b")]),
        (waiting_budget, [Halt("waiting", "budget", "b")]),
        (self_preempted, [Halt("running", "self_preempted", "a"), Halt("waiting", "preempted", None)]),
        (undone_victim, [Halt("waiting", "preempted", None)]),
        (seqs, [Halt("waiting", "max_num_seqs", "b")]),
        (padding, [Halt("waiting", "padding", "b")]),
        (whole_prefill, [Halt("waiting", "whole_prefill", "b")]),
        (no_blocks, [Halt("waiting", "no_blocks", "b")]),
        (nothing_left, []),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_pass_that_ends_early_tells_why(make: Callable[[], Run], wanted: list[Halt]) -> None:
    assert list(trace(make().step()).halts) == wanted


# ---- admissions, preemptions, drafts, finishes


def test_admissions_tell_where_they_start_and_whether_they_come_back() -> None:
    run = Run(20)
    run.add("a", [(100, 9)])
    run.add("b", [(100, 9)])
    assert trace(run.step()).admissions == (Admission("a", 0, 9, False), Admission("b", 8, 1, False))
    run.reset(running=True)
    assert trace(run.step()).admissions == (Admission("a", 0, 10, True), Admission("b", 8, 2, True))


def test_preemptions_tell_by_whom_and_what_was_undone() -> None:
    assert trace(undone_victim().step()).preemptions == (Preemption("v", "a", 8),)
    assert trace(self_preempted().step()).preemptions == (Preemption("a", "a", 0),)
    run = seqs()
    run.step()
    assert trace(run.reset(running=True)).preemptions == (Preemption("a", None, 0),)


def test_drafts_are_scheduled_lost_and_accepted() -> None:
    run = Run(20, num_speculative_tokens=3, max_num_batched_tokens=6)
    for name in "ab":
        run.add(name, 2, accept=[2])
    run.step()
    told = trace(run.step())
    assert told.drafts == (DraftsScheduled("a", 3, 0), DraftsScheduled("b", 1, 2))
    assert told.sampled == (Sampled("a", 3, 2, 3, 5), Sampled("b", 1, 1, 2, 4))


def test_ids_behind_a_stop_are_not_kept() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 4, output=[(500, 40)], stop_token_ids=[502], accept=[3])
    run.step()
    told = trace(run.step())
    assert told.sampled == (Sampled("a", 3, 3, 2, 8),)
    assert told.finishes == (Finish("a", "FINISHED_STOPPED"),)


def test_finishes_tell_the_reason_in_the_step_where_they_happen() -> None:
    run = Run(20)
    run.add("stops", 3, output=[(500, 40)], stop_token_ids=[500])
    run.add("full", 3, max_tokens=1)
    run.add("goes on", 3)
    run.add("hangs up", 3)
    assert trace(run.step("hangs up")).finishes == (
        Finish("hangs up", "FINISHED_ABORTED"),
        Finish("stops", "FINISHED_STOPPED"),
        Finish("full", "FINISHED_LENGTH_CAPPED"),
    )
    assert trace(run.abort("goes on")).finishes == (Finish("goes on", "FINISHED_ABORTED"),)


def test_a_request_aborted_while_the_step_runs_is_scheduled_but_samples_nothing() -> None:
    run = Run(20)
    run.add("a", 3)
    outcome = run.step("a")
    assert (scheduled(outcome), trace(outcome).sampled) == ({"a": 3}, ())
    assert [call.request for call in outcome.calls] == ["a"]


# ---- blocks


def told(outcome: Outcome, *what: str) -> list[tuple[object, ...]]:
    return [
        (one.block, one.what, one.why, one.request, one.ref_before, one.ref_after, one.place)
        for one in block_events(outcome.log)
        if not what or one.what in what
    ]


def test_a_block_tells_what_happened_why_and_by_whom() -> None:
    run = Run(6)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    run.add("b", [(100, 8)], max_tokens=1)
    assert told(run.step()) == [
        (1, "touched", "hit", "b", 0, 1, 4),
        (3, "popped", "new", "b", 0, 1, 0),
        (3, "hashed", "full", "b", 1, 1, None),
        (3, "freed", "finished", "b", 1, 0, 3),
        (1, "freed", "finished", "b", 1, 0, 4),
    ]
    assert run.queue == [4, 5, 2, 3, 1]


def test_a_block_with_other_holders_is_let_go() -> None:
    run = Run(6)
    run.add("a", [(100, 8)])
    run.add("b", [(100, 8)])
    run.step()
    assert told(run.abort("a")) == [
        (2, "freed", "aborted", "a", 1, 0, 2),
        (1, "let_go", "aborted", "a", 2, 1, None),
    ]


def test_an_evicted_block_tells_the_hash_it_lost() -> None:
    run = Run(3)
    run.add("a", [(100, 8)], max_tokens=1)
    first: BlockHash = run.hashes("a")[0]
    run.step()
    run.add("b", 5)
    evicted = [one for one in block_events(run.step().log) if one.what == "evicted"]
    assert [(one.block, one.request, one.place) for one in evicted] == [(2, "b", 0), (1, "b", 1)]
    assert evicted[1].keys == ((first, 0),)


@pytest.mark.parametrize(
    ("why", "act"),
    [
        ("preempted", lambda run: run.step()),
        ("reset", lambda run: run.reset(running=True)),
        ("aborted", lambda run: run.abort("a")),
        ("finished", lambda run: run.step()),
        ("stopped", lambda run: run.step()),
    ],
    ids=["preempted", "reset", "aborted", "finished", "stopped"],
)
def test_why_a_block_was_freed(why: str, act: Callable[[Run], Outcome]) -> None:
    run = self_preempted() if why == "preempted" else Run(9)
    if why != "preempted":
        stops = [501] if why == "stopped" else []
        run.add("a", 3, max_tokens=2 if why == "finished" else 9, output=[(500, 20)], stop_token_ids=stops)
        run.step()
    assert {(one[2], one[3]) for one in told(act(run), "freed")} == {(why, "a")}


# ---- the sinks


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(100, 102)))
def test_without_a_sink_the_engine_does_the_same(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    traced, silent = simulation_of(scenario), simulation_of(scenario, traced=False)
    for action in scenario.actions:
        one, other = traced.apply(action), silent.apply(action)
        assert other.log == ()
        assert current_state(silent) == current_state(traced)
        assert (other.events, other.prefix_cache, other.output) == (one.events, one.prefix_cache, one.output)
        assert (other.sampled, other.reset) == (one.sampled, one.reset)


@pytest.mark.parametrize("family", ONE_GROUP_FAMILIES)
def test_entries_of_a_log_never_change_afterwards(family: str) -> None:
    scenario = random_scenario(family, 103)
    simulation = simulation_of(scenario)
    outcomes = [simulation.apply(action) for action in scenario.actions]
    again = simulation_of(scenario)
    for outcome, action in zip(outcomes, scenario.actions, strict=True):
        assert repr(outcome.log) == repr(again.apply(action).log)


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(104, 106)))
def test_the_parts_of_every_call_add_up(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    simulation = simulation_of(scenario)
    for action in scenario.actions:
        log = simulation.apply(action).log
        for call in read_calls(log):
            adds_up(call)


def adds_up(call: CallTrace) -> None:
    """The terms are those of 5.5, the decision follows from them, and the blocks taken are the blocks counted."""
    tests = [test for test in (call.gate, call.check) if test is not None and test.terms]
    for test in tests:
        assert test.needed == sum(terms.total for terms in test.terms)
        assert test.passes == (test.needed + test.headroom <= test.free - test.reserved)
        for terms in test.terms:
            assert terms.total == terms.fresh + terms.idle_hits
    assert call.granted == all(test.passes for test in tests)
    assert (call.shortfall > 0) == (not call.granted)
    taken = len(call.popped) + sum(one.place is not None for one in call.touched)
    assert call.free_before + call.released_count - call.free_after == taken
    if call.granted:
        assert call.check is not None
        assert taken == call.check.needed
        assert [one.block for one in call.popped] == [block for group in call.new_blocks or () for block in group]
    else:
        assert (call.touched, call.popped, call.registered) == ((), (), ())
