"""Time the engine beside the real scheduler, on the workload of `tests/oracle/bench.py`.

usage: .venv/bin/python benchmarks/engine.py [--oracle DIR] [--json] [--rounds N] [--requests N]

`schedule()` and `update_from_output()` only. off = no sink, KV events and statistics off, as the real one is timed;
on = everything. Then growth: a decode step over pools of 1,000 to 1,000,000 blocks, and the building of a large pool.
DIR is where `tests/oracle/install` put the real scheduler; without it that column says "not run".
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if not __package__:  # run as a script: this file must not stand for the package `engine`
    sys.path[0] = str(ROOT)

from engine.block_hash import HASH_FUNCTIONS, BlockHasher, init_none_hash
from engine.config import EngineConfig
from engine.request import Request
from engine.sched.scheduler import Scheduler
from engine.trace import Entry, no_trace

ORACLE_BENCH = ROOT / "tests" / "oracle" / "bench.py"
WORKLOAD = {"num_blocks": 8193, "max_num_seqs": 64, "max_num_batched_tokens": 4096, "max_model_len": 8192}
POOLS = (1_000, 10_000, 100_000, 1_000_000)


def time_workload(num_requests: int, *, on: bool) -> float:
    """Microseconds for one scheduled request in one step."""
    config = EngineConfig.from_json(WORKLOAD)
    log: list[Entry] = []
    scheduler = Scheduler(config, log_stats=on, events=on, emit=log.append if on else no_trace)
    hasher = _hasher(config)
    for i in range(num_requests):
        prompt = [*range(1000, 1256), *range(100_000 + 2000 * i, 100_600 + 2000 * i)]
        scheduler.add_request(Request(f"r{i}", prompt, 400, hasher, arrival_time=float(i)))
    spent, scheduled = 0.0, 0
    while scheduler.requests:
        seconds, count = _step(scheduler, log)
        spent, scheduled = spent + seconds, scheduled + count
    return 1e6 * spent / scheduled


def time_decode(rounds: int = 20, steps: int = 40) -> dict[str, float]:
    """Microseconds for one decode step of 8 requests, everything on, by pool size; medians.

    The pools take turns, so that they meet the same noise.
    """
    log: list[Entry] = []
    schedulers = {blocks: _decoding(blocks, log) for blocks in POOLS}
    spent: dict[int, list[float]] = {blocks: [] for blocks in POOLS}
    for _ in range(rounds):
        for blocks, scheduler in schedulers.items():
            spent[blocks] += [1e6 * _step(scheduler, log)[0] for _ in range(steps)]
    return {str(blocks): round(statistics.median(times), 1) for blocks, times in spent.items()}


def _decoding(num_blocks: int, log: list[Entry]) -> Scheduler:
    """A scheduler with 8 requests that have their prompts computed."""
    config = EngineConfig.from_json({"num_blocks": num_blocks, "max_num_seqs": 8})
    scheduler = Scheduler(config, emit=log.append)
    hasher = _hasher(config)
    for i in range(8):
        scheduler.add_request(Request(f"r{i}", range(1000 * i, 1000 * i + 100), 10_000, hasher, arrival_time=float(i)))
    _step(scheduler, log)
    return scheduler


def build_pool(num_blocks: int) -> dict[str, float]:
    """Seconds and peak MB to build a pool, in a process of its own."""
    code = (
        "import resource, sys, time; from engine.block_pool import BlockPool; t = time.perf_counter(); "
        f"pool = BlockPool({num_blocks}, enable_caching=True); t = time.perf_counter() - t; "
        "print(t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    seconds, megabytes = map(float, run.stdout.split())
    return {"seconds": seconds, "peak_mb": megabytes}


def time_real(oracle: Path, num_requests: int) -> float:
    """Microseconds for one scheduled request in one step of the real scheduler."""
    run = subprocess.run(
        [oracle / "bin" / "python", ORACLE_BENCH, str(num_requests)], check=True, capture_output=True, text=True
    )
    found = re.search(r"([\d.]+) us a request-step", run.stdout)
    assert found, run.stdout
    return float(found[1])


def _hasher(config: EngineConfig) -> BlockHasher:
    hash_fn = HASH_FUNCTIONS[config.prefix_caching_hash_algo]
    return BlockHasher(hash_fn, init_none_hash(hash_fn), config.hash_size)


def _step(scheduler: Scheduler, log: list[Entry]) -> tuple[float, int]:
    """One step: the seconds that the scheduler spent, and how many requests it scheduled."""
    start = time.perf_counter()
    output = scheduler.schedule()
    spent = time.perf_counter() - start
    sampled = {}
    for name in output.num_scheduled_tokens:
        request = scheduler.requests[name]
        if request.num_computed_tokens >= request.num_tokens:
            sampled[name] = [1_000_000 + request.num_output_tokens]
    start = time.perf_counter()
    scheduler.update_from_output(output, sampled)
    scheduler.kv_cache_manager.take_events()
    log.clear()
    return spent + time.perf_counter() - start, len(output.num_scheduled_tokens)


def measure(oracle: Path | None, rounds: int, num_requests: int) -> dict[str, object]:
    """Every figure; the three engines take turns, so that they meet the same noise."""
    off, on, real = [], [], []
    for _ in range(rounds):
        off.append(time_workload(num_requests, on=False))
        on.append(time_workload(num_requests, on=True))
        if oracle:
            real.append(time_real(oracle, num_requests))
    figures: dict[str, object] = {
        "requests": num_requests,
        "rounds": rounds,
        "off_us": round(statistics.median(off), 2),
        "on_us": round(statistics.median(on), 2),
        "real_us": round(statistics.median(real), 2) if real else None,
        "off_over_real": round(statistics.median(a / b for a, b in zip(off, real, strict=True)), 3) if real else None,
        "on_over_real": round(statistics.median(a / b for a, b in zip(on, real, strict=True)), 3) if real else None,
        "decode_step_us": time_decode(),
        "build_1000000_blocks": {key: round(value, 2) for key, value in build_pool(1_000_000).items()},
    }
    return figures


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.engine", description="Time the engine.")
    parser.add_argument("--oracle", type=Path, metavar="DIR", help="where tests/oracle/install put the real scheduler")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=256)
    options = parser.parse_args(argv)
    figures = measure(options.oracle, options.rounds, options.requests)
    real = "not run" if figures["real_us"] is None else f"{figures['real_us']} us"
    print(f"a scheduled request in a step, median of {options.rounds} rounds of {options.requests} requests:")
    print(f"  engine, everything off   {figures['off_us']} us   ({figures['off_over_real'] or '-'} of the real one)")
    print(f"  engine, everything on    {figures['on_us']} us   ({figures['on_over_real'] or '-'} of the real one)")
    print(f"  the real scheduler       {real}")
    print("a decode step of 8 requests, everything on, by pool size:")
    for blocks, microseconds in dict(figures["decode_step_us"]).items():  # type: ignore[call-overload]
        print(f"  {int(blocks):>9,} blocks   {microseconds} us")
    print(f"a pool of 1,000,000 blocks: {figures['build_1000000_blocks']}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
