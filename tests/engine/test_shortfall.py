"""A refused call says how many more free blocks would have been enough: exactly so many, and not one fewer."""

from __future__ import annotations

import pytest

from engine.block_pool import BlockPool
from engine.call_trace import CallTrace, read_calls
from engine.config import EngineConfig
from engine.kv_cache_block import FreeKVCacheBlockQueue
from engine.kv_cache_manager import KVCacheManager
from engine.request import Request
from engine.sched.scheduler import Scheduler
from engine.trace import Entry, no_trace
from tests.engine.helpers import Run, random_scenario, random_scenarios, simulation_of


class Probe:
    """A sink that stops at every refused call, while the scheduler is still inside it, and tries it again elsewhere."""

    def __init__(self, settings: EngineConfig) -> None:
        self.config = settings
        self.scheduler = Scheduler(settings, emit=self)
        self.call: list[Entry] = []
        self.refused: list[CallTrace] = []

    def __call__(self, entry: Entry) -> None:
        self.call = [entry] if entry[0] == "call" else [*self.call, entry]
        if entry[0] == "return" and entry[1] is None:
            [call] = read_calls(self.call)
            self.refused.append(call)
            assert not self.with_more(call, 0)
            assert not self.with_more(call, call.shortfall - 1)
            assert self.with_more(call, call.shortfall)
            assert self.alone(call) != call.can_never_fit(self.config.num_blocks - 1)

    def with_more(self, call: CallTrace, extra: int) -> bool:
        """Whether the same call is granted with so many more free blocks, all else being equal."""
        twin = self.scheduler.fork(no_trace, None)
        enlarge(twin.kv_cache_manager.block_pool, extra)
        return again(twin.kv_cache_manager, twin.requests[call.request], call)

    def alone(self, call: CallTrace) -> bool:
        """Whether the request gets its blocks in an otherwise empty pool, all its tokens at once."""
        request = self.scheduler.requests[call.request].fork()
        request.num_computed_tokens = 0
        granted = KVCacheManager(self.config).allocate_slots(
            request,
            call.comp + call.new_comp + call.new,
            num_lookahead_tokens=call.lookahead,
            full_sequence_must_fit=call.full_sequence_must_fit,
            has_scheduled_reqs=False,
        )
        return granted is not None


def again(manager: KVCacheManager, request: Request, call: CallTrace) -> bool:
    """The same call once more; whether it is granted."""
    hit = tuple(list(group) for group in call.hit_blocks) or None
    granted = manager.allocate_slots(
        request,
        call.new,
        call.new_comp,
        hit,
        call.lookahead,
        full_sequence_must_fit=call.full_sequence_must_fit,
        reserved_blocks=call.reserved_blocks,
        has_scheduled_reqs=call.watermark_blocks > 0,
    )
    return granted is not None


def enlarge(pool: BlockPool, extra: int) -> None:
    """Append so many free blocks to the pool; the watermark stays what it is."""
    free, size = pool.free_queue.get_all_free_blocks(), pool.num_blocks + extra
    pool.free_queue = FreeKVCacheBlockQueue(size)
    pool.free_queue.popleft_n(size)
    pool.free_queue.append_n([*free, *range(pool.num_blocks, size)])
    pool.ref_cnt += [0] * extra
    pool.block_hash += [None] * extra
    pool.block_hash_num_tokens += [0] * extra
    pool.num_blocks = size


@pytest.mark.parametrize(("family", "seed"), random_scenarios(range(140, 148)))
def test_the_shortfall_is_exactly_what_was_missing(family: str, seed: int) -> None:
    scenario = random_scenario(family, seed)
    simulation, probe = simulation_of(scenario), Probe(scenario.config)
    simulation.scheduler = probe.scheduler
    for action in scenario.actions:
        simulation.apply(action)


def test_the_random_scenarios_refuse_by_gate_and_check_running_and_waiting() -> None:
    kinds = set()
    for family, seed in random_scenarios(range(140, 148)):
        scenario = random_scenario(family, seed)
        simulation = simulation_of(scenario)
        for action in scenario.actions:
            for call in simulation.apply(action).calls:
                if not call.granted:
                    kinds.add((call.refused_by, call.comp > 0, call.can_never_fit(scenario.config.num_blocks - 1)))
    assert kinds == {
        ("gate", False, False),
        ("gate", False, True),
        ("check", False, False),
        ("check", False, True),
        ("check", True, False),
        ("check", True, True),
    }


def test_where_the_gate_refuses_the_larger_of_gate_and_check_is_told() -> None:
    run = Run(5, num_lookahead_tokens=12)
    run.add("a", 18)
    [call] = run.step().calls
    assert call.gate is not None
    assert call.check is not None
    assert (call.refused_by, call.gate.needed, call.check.needed, call.shortfall) == ("gate", 5, 8, 4)


def test_headroom_is_part_of_the_shortfall() -> None:
    run = Run(9, watermark=0.25)
    run.add("a", 12)
    run.add("b", 16)
    call = run.step().calls[-1]
    assert (call.free_before, call.watermark_blocks, call.shortfall) == (5, 2, 1)


def test_a_request_that_is_too_large_for_the_pool_can_never_fit() -> None:
    run = Run(7)
    run.add("a", 25)
    [call] = run.step().calls
    assert (call.shortfall, call.can_never_fit(6), call.can_never_fit(7)) == (1, True, False)


def test_a_request_that_only_its_lookahead_makes_too_large_can_never_fit_whoever_refuses_it() -> None:
    run = Run(7, num_lookahead_tokens=4)
    run.add("a", 4, max_tokens=2)
    run.add("b", 24)
    call = run.step().calls[-1]
    assert (call.request, call.refused_by, call.can_never_fit(6)) == ("b", "gate", True)
    call = run.steps(2).calls[-1]
    assert (call.request, call.refused_by, call.can_never_fit(6)) == ("b", "check", True)


def test_a_granted_call_lacks_nothing() -> None:
    run = Run(9)
    run.add("a", 5)
    [call] = run.step().calls
    assert (call.shortfall, call.can_never_fit(8)) == (0, False)
