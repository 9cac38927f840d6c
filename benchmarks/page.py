"""Time the page in a real Chromium: from the click to the painted page.

usage: .venv/bin/python benchmarks/page.py [--json] [--steps N] [--pages N] [--blocks N ...] [--requests N]

For each size of the pool: 8 requests (or as many as asked for) hold about half of it and decode, so that a step writes
as many tokens and takes a block now and then. Timed: N clicks on Step at the end (each appends a step on the server), N
over recorded steps, and the first page with an empty cache. Painted = the frame after the last figure was drawn has
been shown. Window 1440 x 900.
POOLSCOPE_CHROMIUM names another browser than Debian's Chromium.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if not __package__:
    sys.path[0] = str(ROOT)

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from app.routes.cookies import COOKIE
from app.store import Store, StoredSession

WHOLE, SHELL = "/usr/bin/chromium", "/usr/bin/chromium-headless-shell"
CHROMIUM = os.environ.get("POOLSCOPE_CHROMIUM") or (WHOLE if Path(WHOLE).exists() else SHELL)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SECRET = "the owner of what is measured"
REQUESTS = 8
SETTLE = 12
"""Steps before the first that is timed: the prefill, and code that runs for the first time."""
GOALS = {1_000: 100, 10_000: 150, 100_000: 250}

STEP = """async (selector) => {
  const root = document.documentElement;
  const shown = root.dataset.shown;
  const drawn = new Promise(done => {
    const watch = new MutationObserver(() => { if (root.dataset.shown !== shown) { watch.disconnect(); done(); } });
    watch.observe(root, {attributeFilter: ["data-shown"]});
  });
  performance.clearResourceTimings();
  const start = performance.now();
  document.querySelector(selector).click();
  await drawn;
  await new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  const took = performance.now() - start;
  await new Promise(done => setTimeout(done, 0));
  const frames = performance.getEntriesByType("resource").filter(one => /[/](step|frame)/.test(one.name));
  return {took, sent: frames.reduce((sum, one) => sum + one.encodedBodySize, 0),
          server: frames.reduce((sum, one) => sum + one.responseEnd - one.startTime, 0)};
}"""
FIRST = """async () => {
  const root = document.documentElement;
  if (!root.dataset.shown) await new Promise(done => new MutationObserver((_, watch) => { watch.disconnect(); done(); })
    .observe(root, {attributeFilter: ["data-shown"]}));
  await new Promise(done => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  return performance.now();
}"""


def stored(directory: Path, num_blocks: int, requests: int) -> None:
    """A session whose requests hold half of the pool after the first steps."""
    tokens = num_blocks // 2 // requests * 16
    config = {
        "num_blocks": num_blocks,
        "max_num_batched_tokens": max(8192, 2 * tokens),
        "max_num_seqs": max(128, requests),
        "max_model_len": 2_000_000,
    }
    add = {"do": "add_request", "max_tokens": 4_000}
    own = [max(tokens - 128, 1) + 5 * i % 40 for i in range(requests)]
    prompts = [[{"shared": "system", "tokens": 128}, {"tokens": tokens}] for tokens in own]
    actions = [json.dumps({**add, "id": f"request-{i}", "prompt": prompt}) for i, prompt in enumerate(prompts)]
    store = Store(directory)
    secret = hashlib.sha256(SECRET.encode()).digest()
    store.create(StoredSession("bench", secret, "Measured", json.dumps(config), tuple(actions)), "main")
    store.close()


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """The server in a process of its own: its address."""
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
    environment = {**os.environ, "POOLSCOPE_DATA": str(directory)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1].rstrip("/")
        finally:
            server.terminate()


def opened(browser: Browser, site: str) -> tuple[BrowserContext, Page]:
    """A page of the owner in a browser that has nothing in its cache."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": COOKIE, "value": SECRET, "url": f"{site}/s/bench"}])
    return context, context.new_page()


def measure(browser: Browser, num_blocks: int, requests: int, steps: int, pages: int) -> dict[str, Any]:
    """Every figure for one size of the pool."""
    with tempfile.TemporaryDirectory() as directory:
        stored(Path(directory), num_blocks, requests)
        with serving(Path(directory)) as site:
            context, page = opened(browser, site)
            page.goto(f"{site}/s/bench")
            page.evaluate(FIRST)
            for _ in range(SETTLE):
                page.evaluate(STEP, "#go-step")
            appended = [page.evaluate(STEP, "#go-step") for _ in range(steps)]
            end = requests + SETTLE + steps
            page.goto(f"{site}/s/bench?branch=main&at={end - steps}")
            page.evaluate(FIRST)
            recorded = [page.evaluate(STEP, "#go-step") for _ in range(steps)]
            context.close()
            first = []
            for _ in range(pages):
                context, page = opened(browser, site)
                page.goto(f"{site}/s/bench", wait_until="commit")
                first.append(page.evaluate(FIRST))
                context.close()
    return {
        "blocks": num_blocks,
        "step_ms": spread([one["took"] for one in appended]),
        "step_server_ms": spread([one["server"] for one in appended]),
        "step_bytes": spread([one["sent"] for one in appended]),
        "recorded_ms": spread([one["took"] for one in recorded]),
        "first_page_ms": spread(first),
        "goal_p95_ms": GOALS.get(num_blocks) if requests == REQUESTS else None,
    }


def spread(values: list[float]) -> dict[str, int]:
    """Median and 95th percentile, rounded."""
    p95 = statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
    return {"p50": round(statistics.median(values)), "p95": round(p95)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.page", description="Time the page in a real Chromium.")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(GOALS))
    parser.add_argument("--requests", type=int, default=REQUESTS)
    options = parser.parse_args(argv)
    load = os.getloadavg()[0]
    print(
        f"{options.steps} steps, {options.requests} requests; load of the machine at the start {load:.1f}; p50 / p95:"
    )
    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        for num_blocks in options.blocks:
            one = measure(browser, num_blocks, options.requests, options.steps, options.pages)
            found.append(one)
            words = {name: f"{one[name]['p50']} / {one[name]['p95']}" for name in one if isinstance(one[name], dict)}
            print(f"{num_blocks:>8,} blocks   a step {words['step_ms']} ms (goal p95 {one['goal_p95_ms']}), of it the")
            print(f"                  request {words['step_server_ms']} ms and {words['step_bytes']} bytes;")
            print(f"                  over a recorded one {words['recorded_ms']} ms,")
            print(f"                  first page {words['first_page_ms']} ms")
        browser.close()
    if options.json:
        print(json.dumps({"load": load, "steps": options.steps, "requests": options.requests, "pools": found}))


if __name__ == "__main__":
    main()
