"""How much memory requests may take together: the same bound for whatever replays what somebody sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services.limits import HASH_BYTES, TOKEN_BYTES
from app.services.session import Branch
from app.settings import SERVER_LIMITS, Settings
from engine.scenario import Limits, parse_scenario
from tests.app.conftest import browser

TOKENS = 32_000
EACH = TOKEN_BYTES * TOKENS + HASH_BYTES * TOKENS // 16
"""About how many bytes a request takes."""
MESSAGE = "with this prompt the living requests take about 6 MB of memory"
EXPECTED = "at most 5 MB: a shorter prompt, or fewer requests at the same time"
ERROR = {"code": "over_limit", "message": MESSAGE, "expected": EXPECTED}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Three requests fit, not four."""
    return Settings(data=tmp_path / "data", limits=replace(SERVER_LIMITS, memory=5_000_000))


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with browser(settings) as client:
        yield client


def add(name: str, prompt: object = None, **more: object) -> dict[str, Any]:
    return {"do": "add_request", "id": name, "prompt": prompt or {"tokens": TOKENS}, "max_tokens": 1, **more}


def scenario(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "config": {"num_blocks": 100, "max_model_len": 100_000}, "actions": list(actions)}


FOUR = scenario(*(add(name) for name in "ABCD"))


def test_the_server_bounds_memory_and_the_command_line_does_not() -> None:
    assert SERVER_LIMITS.memory == 256_000_000
    assert Limits().memory == 2**63 - 1
    assert 3 * EACH < 5_000_000 < 4 * EACH


def test_a_replay_ends_before_the_request_that_is_too_much(client: TestClient) -> None:
    lines = [json.loads(line) for line in client.post("/api/replay", json=FOUR).text.splitlines()]
    assert [line.get("action") for line in lines] == [0, 1, 2, None]
    assert lines[3] == {"error": {**ERROR, "where": "actions[3].prompt"}}


def test_requests_that_left_leave_room(client: TestClient) -> None:
    actions = [action for name in "ABCDEF" for action in (add(name), {"do": "abort", "id": name})]
    lines = client.post("/api/replay", json=scenario(*actions)).text.splitlines()
    assert [json.loads(line).get("action") for line in lines] == [*range(12)]


def test_what_a_request_continues_counts(client: TestClient) -> None:
    doubled = [{"continue": "A"}, {"continue": "A"}]
    lines = client.post("/api/replay", json=scenario(add("A"), add("B"), add("C", doubled))).text.splitlines()
    assert json.loads(lines[2]) == {"error": {**ERROR, "where": "actions[2].prompt"}}


@pytest.mark.parametrize("path", ["/api/sessions", "/edit"])
def test_no_session_is_made_of_it(client: TestClient, path: str) -> None:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    answer = client.post(path, content=json.dumps(FOUR), headers=headers)
    assert (answer.status_code, answer.json()) == (413, {"error": {**ERROR, "where": "actions[3].prompt"}})


def test_the_editor_says_so_beside_the_action(client: TestClient) -> None:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    (problem,) = client.post("/check", content=json.dumps(FOUR), headers=headers).json()["problems"]
    assert (problem["message"], problem["where"]) == (MESSAGE, "actions[3].prompt")


def test_acting_is_bounded_too_and_goes_on_below_it(client: TestClient) -> None:
    made = client.post("/api/sessions", json=scenario(*(add(name) for name in "ABC"))).json()
    path, headers = f"/api/sessions/{made['id']}/actions", {"Authorization": f"Bearer {made['secret']}"}
    refused = client.post(path, json={"actions": add("D")}, headers=headers)
    assert (refused.status_code, refused.json()) == (413, {"error": {**ERROR, "where": "actions.prompt"}})
    for action in ({"do": "step"}, {"do": "abort", "id": "A"}, add("D")):
        assert client.post(path, json={"actions": [action]}, headers=headers).status_code == 200


def test_many_small_requests_are_weighed_together_now_and_then(client: TestClient) -> None:
    small = [add(f"r{index}", {"tokens": 2_000}) for index in range(80)]
    lines = client.post("/api/replay", json=scenario(*small)).text.splitlines()
    assert json.loads(lines[-1])["error"]["where"] == "actions[64].prompt"


def test_a_link_counts_its_pool_too(settings: Settings) -> None:
    written = scenario(add("A"), add("B"), {"do": "step"})
    written["config"]["num_blocks"] = 50_000
    read = parse_scenario(written)
    branch = Branch(read.config, read.actions, limits=settings.limits)
    branch.advance(branch.head, 2, 60)
    assert branch.end == 2
    assert str(branch.problem) == (
        "actions[2]: replaying these actions takes more memory than a link may; "
        "expected at most 5 MB: fewer or smaller requests"
    )
