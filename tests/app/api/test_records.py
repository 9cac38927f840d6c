"""Records as JSON lines: of branches and of scenarios; bounded, and honest about where they stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from app.cli import main
from app.gallery import FOLDER
from app.services.errors import FullError
from app.services.recording import Replays
from app.services.sessions import Sessions
from app.settings import Settings
from app.store import Store
from tests.app.api.conftest import STEP, Api, Json, add, error_of, program, scenario


@pytest.mark.parametrize("story", ["one-call", "preemption", "partial-hit", "next-turn"])
def test_a_replay_has_the_bytes_of_the_command_line(client: TestClient, tmp_path: Path, story: str) -> None:
    written = json.loads((FOLDER / f"{story}.json").read_text("utf-8"))
    body = json.dumps(written.get("scenario", written)).encode()
    (tmp_path / "scenario.json").write_bytes(body)
    assert main(["replay", str(tmp_path / "scenario.json"), "--records", str(tmp_path / "records")]) == 0
    answer = client.post("/api/replay", content=body)
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.content == (tmp_path / "records").read_bytes()


def test_a_replay_stores_nothing(client: TestClient, settings: Settings) -> None:
    assert client.post("/api/replay", json=scenario(add("ada"), STEP)).status_code == 200
    assert Store(settings.data).count() == (0, 0)


def test_no_action_no_record(client: TestClient) -> None:
    answer = client.post("/api/replay", json=scenario())
    assert (answer.status_code, answer.content) == (200, b"")


def test_an_impossible_action_ends_the_records(client: TestClient) -> None:
    answer = client.post("/api/replay", json=scenario(add("ada"), STEP, add("ada"), STEP))
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line.get("action") for line in lines] == [0, 1, None]
    expected = "an id that no living request has"
    message = "request 'ada' is still alive"
    assert lines[2] == {
        "error": {"code": "live_id", "message": message, "where": "actions[2].id", "expected": expected}
    }


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (scenario({**add("ada"), "prompt": {"continue": "bob"}}), (422, "unknown_id", "actions[0].prompt")),
        ({"version": 2}, (422, "wrong_version", "version")),
        ({"version": 1, "config": {}, "actions": []}, (422, "missing_key", "config")),
        ({**scenario(), "colour": "red"}, (422, "unknown_key", "colour")),
        (scenario(num_blocks=200_001), (413, "over_limit", "config.num_blocks")),
        (scenario(*[STEP] * 20_001), (413, "over_limit", "actions")),
        (scenario(add("ada", 10**6), max_model_len=10**7), (413, "over_limit", "actions[0].prompt")),
    ],
)
def test_what_is_wrong_before_the_first_record_has_its_own_status(
    client: TestClient, written: Json, error: tuple[int, str, str]
) -> None:
    for path in ("/api/replay", "/api/sessions"):
        assert error_of(client.post(path, json=written)) == error


def test_a_prompt_that_grows_by_continuing_is_bounded(settings: Settings) -> None:
    """Its length shows only while it runs; doubling it again and again must not build what no limit allows."""
    few = replace(settings, limits=replace(settings.limits, prompt_tokens=100))
    bomb = [add("a", 16), *({**add(name), "prompt": [{"continue": before}] * 2} for before, name in pairwise("abcd"))]
    with program(few) as client:
        lines = client.post("/api/replay", json=scenario(*bomb, max_model_len=10**9)).text.splitlines()
        assert [json.loads(line).get("action") for line in lines] == [0, 1, None]
        assert json.loads(lines[-1])["error"]["where"] == "actions[2].prompt"
        made = client.post("/api/sessions", json=scenario(*bomb, max_model_len=10**9))
        assert error_of(made) == (413, "over_limit", "actions[2].prompt")
        assert error_of(Api(client, max_model_len=10**9).act(*bomb)) == (413, "over_limit", "actions[2].prompt")
    assert Store(settings.data).count()[1] == 0


@pytest.mark.parametrize("body", [b"", b"no", b'{"version": 1', b"\xff\xfe", b'{"a": Infinity}'])
def test_malformed_json(client: TestClient, body: bytes) -> None:
    for path in ("/api/replay", "/api/sessions"):
        assert error_of(client.post(path, content=body))[:2] == (400, "malformed_json")


def test_a_body_over_the_limit(settings: Settings) -> None:
    with program(replace(settings, max_body=500)) as client:
        for path in ("/api/replay", "/api/sessions"):
            assert error_of(client.post(path, content=b" " * 501))[:2] == (413, "body_too_large")


def test_time_ends_the_records(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    ticking = SimpleNamespace(thread_time=lambda: next(clock) / 1000)
    monkeypatch.setattr("app.services.recording.time", ticking)
    with program(replace(settings, replay_seconds=0.05)) as client:
        lines = client.post("/api/replay", json=scenario(add("ada"), *[STEP] * 50)).text.splitlines()
        assert 0 < len(lines) < 51
        error = json.loads(lines[-1])["error"]
        assert (error["code"], error["where"]) == ("too_long", f"actions[{len(lines) - 1}]")
        answer = client.post("/api/sessions", json=scenario(add("ada"), STEP))
        assert answer.status_code == 201
    with program(replace(settings, replay_seconds=0.0001)) as client:
        assert error_of(client.post("/api/replay", json=scenario(add("ada"))))[:2] == (413, "too_long")


def test_from_is_inclusive_and_to_exclusive(client: TestClient) -> None:
    actions = [add("ada"), STEP, add("bob"), STEP, STEP]
    api = Api(client, *actions)
    records = client.post("/api/replay", json=scenario(*actions)).text.splitlines()
    for first in range(6):
        for end in range(first, 6):
            assert api.get(f"/records?from={first}&to={end}").text.splitlines() == records[first:end]
    assert api.get("/records").text.splitlines() == records
    assert api.get("/records?from=3").text.splitlines() == records[3:]
    assert api.get("/records?to=2").text.splitlines() == records[:2]


def test_the_records_of_a_branch(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP, STEP)
    assert api.act(add("bob"), STEP, at=1).json()["branch"] == "b2"
    records = client.post("/api/replay", json=scenario(add("ada"), add("bob"), STEP)).text
    assert api.get("/records?branch=b2").text == records


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("from=3", (409, "stale", "from")),
        ("to=3", (409, "stale", "to")),
        ("branch=b2", (409, "stale", "branch")),
        ("from=2&to=1", (422, "invalid", "to")),
        ("from=-1", (422, "invalid", "from")),
        ("from=", (422, "invalid", "from")),
        ("from=1&from=1", (422, "invalid", "from")),
        ("from=1.0", (422, "invalid", "from")),
        ("frm=1", (422, "invalid", "query")),
    ],
)
def test_wrong_ranges(client: TestClient, query: str, error: tuple[int, str, str]) -> None:
    assert error_of(Api(client, add("ada"), STEP).get(f"/records?{query}")) == error


def test_only_so_many_replays_at_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who hang up make room again."""
    body = json.dumps(scenario(add("ada"), *[STEP] * 40)).encode()

    async def many() -> list[int]:
        sessions = Sessions(settings, Store(settings.data))
        replays, told = Replays(sessions, most=2), list[int]()
        some: list[AsyncIterator[bytes]] = [replays.of_scenario(body) for _ in range(3)]
        assert await anext(some[0])
        assert await anext(some[1])
        with pytest.raises(FullError):
            await anext(some[2])
        told.append(replays.under_way)
        some.clear()
        while replays.under_way:
            await asyncio.sleep(0)
        again = [len(lines) async for lines in replays.of_scenario(body)]
        sessions.close()
        return [*told, replays.under_way, len(again) > 0]

    monkeypatch.setattr("app.services.recording.SLICE_BYTES", 1)
    assert asyncio.run(many()) == [2, 0, True]


def test_being_full_is_told_with_when_to_come_back(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replays, "_lines", _full)
    answer = client.post("/api/replay", json=scenario())
    assert error_of(answer)[:2] == (503, "full")
    assert answer.headers["retry-after"] == "5"


async def _full(_self: Replays, _begin: object) -> AsyncIterator[bytes]:
    raise FullError("Too many replays are under way.")
    yield b""
