"""What the tests of part two share: runs of several groups or with a connector, and random scenarios of every kind."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from engine.call_trace import CallTrace
from engine.config import EngineConfig
from engine.errors import InputError
from engine.scenario import Scenario, parse_scenario
from engine.simulation import Outcome, Simulation
from engine.step_trace import Lookup
from tests.engine.helpers import Json, Run, config, random_json, simulation_of, trace

GROUP_FAMILIES = ("window", "chunked", "hybrid", "mamba", "partial", "connector")

Group = dict[str, Any]
"""A group as a config's JSON has it."""

FULL: Group = {"kind": "full_attention"}
MAMBA: Group = {"kind": "mamba"}


def window(tokens: int, **more: object) -> Group:
    """A sliding-window group."""
    return {"kind": "sliding_window", "sliding_window": tokens, **more}


def chunked(tokens: int, **more: object) -> Group:
    """A chunked-local group."""
    return {"kind": "chunked_local_attention", "attention_chunk_size": tokens, **more}


class GroupRun(Run):
    """A simulation of several groups or kinds under test."""

    def __init__(self, num_blocks: int, *groups: Group, connector: bool = False, **options: Json) -> None:
        if groups:
            options["groups"] = list(groups)
        self.sim = Simulation(config(num_blocks, **options), has_connector=connector)
        self.own = 0

    def tables(self, name: str) -> list[list[int]]:
        """A request's table in each group."""
        return [list(table) for table in self.manager.get_blocks(name)]

    def keys(self, group: int = 0) -> list[int]:
        """The blocks of a group that carry a key, ascending."""
        return sorted({block for key in self.pool.cached if key[1] == group for block in self.pool.cached.blocks(key)})

    def status(self, name: str) -> str:
        return self.request(name).status.value

    @property
    def holding(self) -> list[str]:
        """Requests with a load under way, or that has come."""
        return [request.request_id for request in self.scheduler.loads.holding]


def lookup(outcome: Outcome, name: str) -> Lookup:
    """The last lookup of a request in a step."""
    return {one.request: one for one in trace(outcome).lookups}[name]


def call(outcome: Outcome, name: str) -> CallTrace:
    """The last call for a request in a step."""
    return {one.request: one for one in outcome.calls}[name]


def hit(outcome: Outcome, name: str) -> tuple[int, list[list[int]]]:
    """Tokens and blocks that a request hit in its lookup."""
    found = lookup(outcome, name)
    return found.num_tokens, [list(blocks) for blocks in found.blocks]


def copies(outcome: Outcome) -> list[tuple[int, int]]:
    """(source, destination) of a step."""
    assert outcome.output is not None
    return outcome.output.kv_cache_block_copies


def zeroed(outcome: Outcome) -> list[int] | None:
    """The zero list of a step."""
    assert outcome.output is not None
    return outcome.output.new_block_ids_to_zero


# ---- golden and random scenarios


GOLDEN_GROUPS = [f"{family}-{seed:04d}" for family in GROUP_FAMILIES for seed in range(12)]


def random_group(r: random.Random, size: int) -> Group:
    """A group of any kind; `size`: the block size of the config."""
    kind = r.choice(["full_attention", "full_attention", "sliding_window", "chunked_local_attention", "mamba", "mamba"])
    group: Group = {"kind": kind, "block_size": size * r.choice([1, 1, 2, 4])}
    if kind == "sliding_window":
        group["sliding_window"] = r.choice([1, 2, 4, 7, 8, 12, 24, 33])
    elif kind == "chunked_local_attention":
        group["attention_chunk_size"] = r.choice([group["block_size"] * r.choice([1, 2, 4]), 5, 20])
    elif kind == "mamba":
        group["num_speculative_blocks"] = r.choice([0, 0, 1, 2])
    if r.random() < 0.15:
        group["eagle"] = True
    return group


def random_config(r: random.Random) -> dict[str, Any]:
    """A config with any groups and options; the engine may reject it, or nothing may be defined for it."""
    size = r.choice([2, 4, 4, 8])
    groups = [random_group(r, size) for _ in range(r.choice([1, 2, 2, 3, 4]))]
    mode = r.choice(["align", "align", "align", "all", "none"])
    for group in groups:
        if group["kind"] == "mamba":
            group["mamba_cache_mode"] = mode
    sizes = [group["block_size"] for group in groups]
    common, unit = math.lcm(*sizes), math.gcd(*sizes)
    written: dict[str, Any] = {
        "num_blocks": r.choice([13, 21, 33, 61]),
        "block_size": size,
        "max_model_len": r.choice([96, 160, 256]),
        "max_num_batched_tokens": r.choice([16, 24, 40, 64]),
        "max_num_seqs": r.choice([2, 3, 4, 8]),
        "groups": groups,
        "policy": r.choice(["fcfs", "fcfs", "priority"]),
        "enable_prefix_caching": r.random() < 0.9,
        "scheduler_reserve_full_isl": r.random() < 0.7,
        "use_eagle": r.random() < 0.2,
        "long_prefill_token_threshold": r.choice([0, 0, 8]),
        "watermark": r.choice([0.0, 0.0, 0.1]),
        "needs_kv_cache_zeroing": r.random() < 0.2,
    }
    if r.random() < 0.4:
        written["num_speculative_tokens"] = written["num_lookahead_tokens"] = r.choice([1, 2, 3])
    if r.random() < 0.3:
        written["prefix_cache_retention_interval"] = common * r.choice([0, 1, 2, 4])
    if r.random() < 0.5:
        written["hash_block_size"] = r.choice([n for n in range(1, unit + 1) if unit % n == 0])
    return written


def random_request(r: random.Random, name: str, written: dict[str, Any], old: Sequence[Any]) -> dict[str, Any]:
    """An `add_request` action: a prompt like one before, or one of three beginnings and something of its own."""
    longest = min(written["max_model_len"] - 2, written["num_blocks"] * min(g["block_size"] for g in written["groups"]))
    total = min(longest, r.choice([r.randint(1, 12), r.randint(10, 50), r.randint(30, 120)]))
    shared = r.randint(0, total)
    own = 50_000 + 1_000 * int(name[1:])
    prompt = [[1_000 * r.randint(1, 3), shared], [own, total - shared]]
    if old and r.random() < 0.3:
        prompt = r.choice(old)
    action: dict[str, Any] = {
        "do": "add_request",
        "id": name,
        "prompt": [part for part in prompt if part[1]],
        "max_tokens": r.choice([1, 2, 5, r.randint(3, 30)]),
        "priority": r.randint(0, 3),
        "accept": [r.randint(0, 3) for _ in range(3)],
    }
    if r.random() < 0.1:
        action["cache_salt"] = "tenant-a"
    if r.random() < 0.1:
        action["skip_reading_prefix_cache"] = True
    if len(written["groups"]) == 1 and r.random() < 0.6:
        action["external"] = {"tokens": r.randint(1, total), "async": r.random() < 0.6, "steps": r.randint(0, 3)}
    return action


def random_actions(r: random.Random, written: dict[str, Any], steps: int) -> Iterator[dict[str, Any]]:
    """Requests, steps, aborts between and while steps run, resets."""
    names: list[str] = []
    prompts: list[Any] = []
    for turn in range(steps):
        dice = r.random()
        if turn < 2 or dice < 0.2:
            names.append(f"r{len(names) + 1}")
            action = random_request(r, names[-1], written, prompts)
            prompts.append(action["prompt"])
            yield action
        elif dice < 0.23:
            yield {"do": "abort", "id": r.choice(names)}
        elif dice < 0.27:
            # With a connector a reset of running requests is mostly undefined (0.3).
            running = len(written["groups"]) > 1 and r.random() < 0.5
            yield {"do": "reset_prefix_cache", **({"reset_running_requests": True} if running else {})}
        elif dice < 0.33:
            yield {"do": "step", "abort": [r.choice(names)]}
        else:
            yield {"do": "step"}


def random_group_json(seed: int, steps: int = 60) -> dict[str, Any]:
    """A random scenario with any groups that the engine takes."""
    r = random.Random(f"groups:{seed}")
    while True:
        written = random_config(r)
        try:
            EngineConfig.from_json(written)
        except InputError:
            continue
        return {
            "version": 1,
            "title": f"groups {seed}",
            "config": written,
            "actions": list(random_actions(r, written, steps)),
        }


def scenario_named(name: str) -> Scenario:
    """`family-seed` of the oracle's generator, or `groups-seed` of the one above."""
    family, seed = name.rsplit("-", 1)
    return parse_scenario(random_group_json(int(seed)) if family == "groups" else random_json(family, int(seed)))


def runs(scenario: Scenario) -> Iterator[tuple[Simulation, Outcome]]:
    """A scenario, action by action."""
    simulation = simulation_of(scenario)
    for action in scenario.actions:
        yield simulation, simulation.apply(action)
