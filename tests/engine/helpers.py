"""Short ways to say a scenario in a test, and to read what came of it. Unless a test says otherwise: block size 4."""

from __future__ import annotations

import json
import runpy
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias

from engine.actions import Abort, AddRequest, ResetPrefixCache, Step
from engine.block_hash import BlockHash, short_hash
from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.history import History
from engine.kv_cache_manager import KVCacheManager
from engine.record import current_state, event_as_list
from engine.request import Request
from engine.scenario import Scenario, parse_action, parse_scenario
from engine.sched.scheduler import Scheduler
from engine.simulation import Outcome, Simulation
from engine.step_trace import StepTrace, read_step

ORACLE = Path(__file__).parent.parent / "oracle"
ONE_GROUP_FAMILIES = ("core", "nocache", "priority", "noisl", "wholeprefill", "ngram", "eagle", "keys", "midstep")

Json: TypeAlias = Any
"""A value of a config or an action, as JSON has it."""

Prompt = int | Sequence[tuple[int, int]]
"""A number of tokens that nobody else has, or spans (first id, count)."""


def config(num_blocks: int, **options: Json) -> EngineConfig:
    """A checked config, by default with at most 8 running; options are the keys of a scenario's."""
    seqs = min(8, options.get("max_num_batched_tokens", 8))
    return EngineConfig.from_json({"num_blocks": num_blocks, "block_size": 4, "max_num_seqs": seqs, **options})


class Run:
    """A simulation under test."""

    def __init__(
        self, num_blocks: int, *, none_hash: bytes | None = None, traced: bool = True, **options: Json
    ) -> None:
        self.sim = Simulation(config(num_blocks, **options), none_hash=none_hash, traced=traced)
        self.own = 0

    @classmethod
    def of(cls, sim: Simulation) -> Self:
        """A run around a simulation."""
        run = object.__new__(cls)
        run.sim, run.own = sim, 500
        return run

    def fork(self) -> Self:
        """The same run over a fork of the simulation."""
        run = self.of(self.sim.fork())
        run.own = self.own
        return run

    # ---- doing

    def add(self, name: str, prompt: Prompt, max_tokens: int = 16, **options: Json) -> Outcome:
        """A request arrives; options are the keys of the action."""
        if isinstance(prompt, int):
            self.own += 1
            prompt = [(10_000 * self.own, prompt)]
        written = {"do": "add_request", "id": name, "prompt": prompt, "max_tokens": max_tokens, **options}
        action = parse_action(json.loads(json.dumps(written)), "action")
        assert isinstance(action, AddRequest)
        return self.sim.apply(action)

    def step(self, *abort: str) -> Outcome:
        """One step; the requests in `abort` are aborted while it runs."""
        return self.sim.apply(Step(abort))

    def steps(self, count: int) -> Outcome:
        """So many steps; the outcome of the last."""
        for _ in range(count - 1):
            self.step()
        return self.step()

    def abort(self, name: str) -> Outcome:
        return self.sim.apply(Abort(name))

    def reset(self, running: bool = False) -> Outcome:
        return self.sim.apply(ResetPrefixCache(running))

    # ---- reading

    @property
    def scheduler(self) -> Scheduler:
        return self.sim.scheduler

    @property
    def manager(self) -> KVCacheManager:
        return self.scheduler.kv_cache_manager

    @property
    def pool(self) -> BlockPool:
        return self.manager.block_pool

    @property
    def history(self) -> History:
        return self.sim.history

    @property
    def queue(self) -> list[int]:
        return self.pool.free_queue.get_all_free_blocks()

    @property
    def free(self) -> int:
        return self.pool.num_free_blocks

    @property
    def running(self) -> list[str]:
        return [request.request_id for request in self.scheduler.running]

    @property
    def waiting(self) -> list[str]:
        return [request.request_id for request in self.scheduler.waiting]

    @property
    def state(self) -> dict[str, object]:
        return current_state(self.sim)

    def request(self, name: str) -> Request:
        return self.scheduler.requests[name]

    def comp(self, name: str) -> int:
        return self.request(name).num_computed_tokens

    def table(self, name: str) -> list[int]:
        return list(self.manager.get_blocks(name)[0])

    def hashes(self, name: str) -> list[BlockHash]:
        return self.request(name).block_hashes

    def listed(self, block_hash: BlockHash) -> list[int]:
        """The blocks under a hash, the oldest first."""
        return self.pool.cached.blocks((block_hash, 0))

    def hashed(self, block: int) -> bool:
        """Whether a block carries a hash."""
        return self.pool.block_hash[block] is not None


def scheduled(outcome: Outcome) -> dict[str, int]:
    """Tokens of a step, in scheduling order."""
    assert outcome.output is not None
    return outcome.output.num_scheduled_tokens


def drafts(outcome: Outcome) -> dict[str, int]:
    """Drafts scheduled in a step."""
    assert outcome.output is not None
    return {name: len(ids) for name, ids in outcome.output.scheduled_spec_decode_tokens.items()}


def preempted(outcome: Outcome) -> list[str]:
    assert outcome.output is not None
    return sorted(outcome.output.preempted_req_ids)


def finished(outcome: Outcome) -> list[str]:
    assert outcome.output is not None
    return sorted(outcome.output.finished_req_ids)


def trace(outcome: Outcome) -> StepTrace:
    return read_step(outcome.log)


def hits(outcome: Outcome) -> dict[str, tuple[int, ...]]:
    """The hit blocks of each admission that was asked for in a step; the last call of a request counts."""
    return {call.request: call.hit_blocks[0] for call in outcome.calls if call.comp == 0}


def events(outcome: Outcome) -> list[list[object]]:
    """KV events as records write them."""
    return [event_as_list(event) for event in outcome.events]


def removed(outcome: Outcome) -> list[str]:
    """Hashes of the `removed` events, in records' form."""
    return [
        str(hashes[0]) for kind, *rest in events(outcome) if kind == "removed" and isinstance(hashes := rest[0], list)
    ]


def short(hashes: Sequence[BlockHash]) -> list[str]:
    return [short_hash(block_hash) for block_hash in hashes]


def undone_victim(**options: Json) -> Run:
    """X3 (6.11): v has [1,2,3,4] and 16 tokens, a has [5,6]; in the next step v gets [7,8] and is preempted for a."""
    run = Run(
        9,
        policy="priority",
        max_num_batched_tokens=16,
        long_prefill_token_threshold=8,
        scheduler_reserve_full_isl=False,
        **options,
    )
    run.add("v", [(1000, 25)], priority=5)
    run.add("passing", 1, max_tokens=1, priority=9)  # a second request, so that the threshold is on
    run.step()
    run.add("a", [(2000, 8)])
    run.step()
    return run


# ---- random scenarios


@cache
def _fuzz() -> dict[str, Any]:
    return runpy.run_path(str(ORACLE / "fuzz.py"))


def random_scenario(family: str, seed: int) -> Scenario:
    """A scenario of the oracle's generator; seeds 0 to 11 are the golden ones."""
    return parse_scenario(random_json(family, seed))


def simulation_of(scenario: Scenario, *, none_hash: bytes | None = None, traced: bool = True) -> Simulation:
    """The engine before a scenario's first action."""
    return Simulation(scenario.config, none_hash=none_hash, has_connector=scenario.has_connector, traced=traced)


def random_json(family: str, seed: int) -> dict[str, Any]:
    """The same as parsed JSON."""
    written: dict[str, Any] = json.loads(json.dumps(_fuzz()["scenario"](family, seed)))
    return written


def random_scenarios(seeds: range) -> list[tuple[str, int]]:
    """(family, seed) for every one-group family."""
    return [(family, seed) for family in ONE_GROUP_FAMILIES for seed in seeds]
