"""Time seeking: how long the engine's state at any K of a long session takes, server side.

usage: .venv/bin/python benchmarks/seek.py [--json] [--steps N] [--seeks N]

A session of 10,000 steps with 8 requests running, over pools of 1,000 and of 100,000 blocks. Each seek goes to a random
K, as when somebody pulls the scrubber. The branch is loaded before, as after its first page.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if not __package__:  # run as a script
    sys.path[0] = str(ROOT)

from app.services.session import Branch
from engine.actions import Action, AddRequest, Step
from engine.config import EngineConfig
from engine.tokens import Own, Shared

RUNNING = 8


def scenario(num_blocks: int, tokens: int, steps: int) -> tuple[EngineConfig, list[Action]]:
    """`RUNNING` requests at a time of about `tokens` tokens; where one ends the next one comes."""
    config = EngineConfig.from_json({"num_blocks": num_blocks, "max_num_seqs": RUNNING, "max_model_len": 131_072})
    actions: list[Action] = []
    life, made = steps // 4, 0
    for step in range(steps):
        while made < RUNNING or (made - RUNNING + 1) * life // RUNNING <= step:
            prompt = (Shared("system", tokens // 3), Own(tokens - tokens // 3))
            actions.append(AddRequest(f"r{made}", prompt, life if made >= RUNNING else (made + 1) * life // RUNNING))
            made += 1
        actions.append(Step())
    return config, actions


def measure(num_blocks: int, tokens: int, steps: int, seeks: int) -> dict[str, float]:
    """Milliseconds of a seek, and what it takes to load the branch."""
    config, actions = scenario(num_blocks, tokens, steps)
    branch = Branch(config, actions)
    start = time.perf_counter()
    branch.advance(branch.head, branch.end, 1e9)
    loaded = time.perf_counter() - start
    rng, spent, replayed = random.Random(7), [], []
    for _ in range(seeks):
        at = rng.randrange(branch.end)
        start = time.perf_counter()
        cursor = branch.at_hand(at) or branch.cursor_for(at)
        replayed.append(at - cursor.at)
        branch.advance(cursor, at, 1e9)
        spent.append(1000 * (time.perf_counter() - start))
    spent.sort()
    return {
        "blocks": num_blocks,
        "actions": branch.end,
        "running": len(branch.head.simulation.scheduler.running),
        "load_s": round(loaded, 2),
        "checkpoints": branch.num_checkpoints,
        "weight_mb": round(branch.weight / 1e6, 1),
        "replayed_median": statistics.median(replayed),
        "median_ms": round(statistics.median(spent), 1),
        "p95_ms": round(spent[int(0.95 * len(spent))], 1),
        "max_ms": round(spent[-1], 1),
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.seek", description="Time seeking.")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeks", type=int, default=200)
    options = parser.parse_args(argv)
    figures = {
        "1000": measure(1_000, 600, options.steps, options.seeks),
        "100000": measure(100_000, 60_000, options.steps, options.seeks),
    }
    for one in figures.values():
        print(
            f"{one['blocks']:>8,.0f} blocks, {one['actions']:,.0f} actions: a seek takes {one['median_ms']} ms"
            f" (median), {one['p95_ms']} ms (p95), {one['max_ms']} ms at the most; {one['checkpoints']} checkpoints,"
            f" {one['weight_mb']} MB; loaded in {one['load_s']} s"
        )
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
