"""The server is killed (-9), between actions and in the middle of them: nothing that was answered is lost."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from app.store import Store

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """Poolscope in a process of its own."""

    def __init__(self, data: Path) -> None:
        env = {**os.environ, "POOLSCOPE_DATA": str(data), "POOLSCOPE_MAX_STEPS": "20000"}
        command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found
        self.address = found[0].rstrip("/")
        self.secret = ""

    def ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        request = urllib.request.Request(self.address + path, data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            if cookie := answer.headers.get("Set-Cookie"):
                self.secret = cookie.partition("=")[2].partition(";")[0]
            told: dict[str, Any] = json.loads(answer.read())
            return told

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_was_answered_is_lost(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    answered = {"main": 15}
    page = ""
    secret = ""
    for _ in range(3):
        server = Server(tmp_path)
        server.secret = secret
        for name, end in answered.items() if page else ():
            assert server.ask(f"{page}/run?branch={name}")["end"] >= end
        deadline = threading.Timer(rng.uniform(0.05, 0.6), server.kill)
        deadline.start()
        try:
            while True:
                page = act(server, rng, page, answered)
                secret = server.secret
        except (OSError, ValueError, http.client.HTTPException):  # killed
            deadline.join()
    server = Server(tmp_path)
    for name, end in answered.items():
        assert server.ask(f"{page}/run?branch={name}")["end"] >= end
    server.kill()


def act(server: Server, rng: random.Random, page: str, answered: dict[str, int]) -> str:
    if not page:
        told = server.ask("/story/one-call/step", {"at": 15})
    else:
        branch = rng.choice(list(answered))
        at = rng.choice((answered[branch], rng.randint(0, answered[branch])))
        add = {"id": f"q{rng.randint(0, 10**6)}", "prompt": {"tokens": 20}, "max_tokens": 9}
        kind, body = rng.choice((("step", {}), ("add", add), ("run", {"until": "count", "steps": 3})))
        told = server.ask(f"{page}/{kind}", {"branch": branch, "at": at, **body})
    answered[told["branch"]] = max(told["end"], answered.get(told["branch"], 0))
    return f"/s/{told['session']}"


def test_killed_in_the_middle_of_a_run_the_steps_that_were_told_are_there(tmp_path: Path) -> None:
    server = Server(tmp_path)
    session = server.ask("/story/one-call/add", {"at": 15, "id": "long", "prompt": {"tokens": 5}, "max_tokens": 4000})[
        "session"
    ]
    page, at = f"/s/{session}", 16
    server.ask(f"{page}/vary", {"at": 16, "max_model_len": 100_000, "num_blocks": 5_000})
    for number in range(40):
        add = {"branch": "b2", "at": at, "id": f"l{number}", "prompt": {"tokens": 9}, "max_tokens": 4000}
        at = server.ask(f"{page}/add", add)["at"]

    def run() -> None:
        with pytest.raises((urllib.error.URLError, http.client.HTTPException, ConnectionError)):  # killed
            server.ask(f"{page}/run", {"branch": "b2"})

    began = threading.Thread(target=run)
    began.start()
    told = at
    while told < at + 200:  # each look waits for a slice of the run
        told = server.ask(f"{page}/run?branch=b2")["end"]
    server.kill()
    began.join()
    kept = len(Store(tmp_path).actions(session, "b2"))
    assert kept >= told
    again = Server(tmp_path)
    again.secret = server.secret
    assert again.ask(f"{page}/run?branch=b2")["end"] == kept
    assert again.ask(f"{page}/step", {"branch": "b2", "at": kept})["end"] == kept + 1
    again.kill()
