"""The scenario and its records as files, the names of files, and the list of them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.gallery import every_story
from app.services.file_names import attachment, file_name
from app.services.links import encode
from app.settings import Settings
from app.tokenizer import tokenize
from engine.record import dumps, records
from engine.scenario import read_scenario
from engine.simulation import Simulation
from tests.app.conftest import browser
from tests.app.reading import HTMX, LESSON, new_session, tags_of, text_of
from tests.app.scenarios import PREEMPTION, stored


def test_a_storys_scenario_is_what_was_written(client: TestClient) -> None:
    answer = client.get(f"{LESSON}/scenario.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"One-call-traced-scenario.json\"; filename*=UTF-8''One-call-traced-scenario.json"
    )
    written = every_story()["one-call"].scenario.to_json()
    assert answer.json() == written
    assert list(answer.json()) == list(written)
    lines = [line.strip().rstrip(",") for line in answer.text.splitlines()]
    assert all(json.dumps(action) in lines for action in answer.json()["actions"])  # one a line


def test_a_sessions_scenario_is_its_branch(client: TestClient) -> None:
    page = new_session(client, at=6, kind="add", id="mine", tokens="40", max_tokens="3")
    whole, branch = (client.get(f"{page}/scenario.json?branch={name}").json() for name in ("main", "b2"))
    assert len(whole["actions"]) == 15
    assert branch["actions"][:6] == whole["actions"][:6]
    assert [action["id"] for action in branch["actions"][6:]] == ["mine"]
    assert read_scenario(json.dumps(branch)).title == "One call, traced"
    assert client.get(f"{page}/scenario.json?branch=b9").status_code == 409


def test_whoever_may_look_may_download(client: TestClient, settings: Settings) -> None:
    page = stored(settings, PREEMPTION, num_blocks=8)
    assert client.get(f"{page}/scenario.json").json()["actions"] == PREEMPTION


def test_a_downloaded_scenario_is_the_same_when_it_is_opened_again(client: TestClient) -> None:
    for slug in every_story():
        text = client.get(f"/story/{slug}/scenario.json").content
        code = encode(read_scenario(text), 0)
        assert client.get(f"/p/{code}/scenario.json").content == text, slug


def test_the_list_of_files_stands_in_the_share_dialog_and_on_a_page(client: TestClient) -> None:
    dialog = client.get(f"{LESSON}/share?branch=main&at=6", headers=HTMX)
    page = client.get(f"{LESSON}/downloads?branch=main&at=6")
    for answer, base in ((dialog, "one-call/"), (page, "")):
        links = {tag[1].get("href") for tag in tags_of(answer) if tag[0] == "a"}
        assert {f"{base}scenario.json?branch=main", f"{base}records.jsonl?branch=main"} <= links
        assert f"{base}export.html" in {tag[1].get("action") for tag in tags_of(answer)}
        assert "all 15 actions of this branch" in text_of(answer)
    saves = [attributes["aria-label"] for tag, attributes in tags_of(dialog) if "data-save" in attributes]
    assert len(saves) == 14
    assert saves[:2] == ["Block pool as PNG", "Block pool as SVG"]
    assert not [tag for tag in tags_of(page) if "data-save" in tag[1]]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("One call, traced", "One-call-traced-scenario.json"),
        ("../../etc/passwd", "etc-passwd-scenario.json"),
        ("a\r\nSet-Cookie: x=1", "a-Set-Cookie-x-1-scenario.json"),
        ("", "poolscope-scenario.json"),
        ("…", "poolscope-scenario.json"),
        ("CON", "CON-scenario.json"),
        ("\u202egpj.exe", "gpj-exe-scenario.json"),
        ("数据块 🦊", "数据块-scenario.json"),
        ("x" * 500, f"{'x' * 60}-scenario.json"),
    ],
)
def test_a_file_name_is_made_of_letters_and_digits(title: str, name: str) -> None:
    assert file_name(title, "scenario.json") == name
    header = attachment(name)
    assert header.isascii()
    assert header.isprintable()
    assert header.startswith('attachment; filename="')


def lines_of(answer: Response) -> list[dict[str, Any]]:
    assert answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.mark.parametrize("slug", ["one-call", "preemption", "window-holes", "partial-hit", "reset-refused"])
def test_records_are_those_of_a_replay(client: TestClient, slug: str) -> None:
    answer = client.get(f"/story/{slug}/records.jsonl")
    assert answer.status_code == 200
    scenario = every_story()[slug].scenario
    simulation = Simulation(scenario.config, has_connector=scenario.has_connector, tokenize=tokenize)
    expected = [dumps(record) for record in records(simulation, scenario.actions)]
    assert answer.headers["content-type"] == "application/jsonl"
    assert answer.headers["content-encoding"]
    assert answer.text.splitlines() == expected
    middle = len(expected) // 2
    part = client.get(f"/story/{slug}/records.jsonl?from={middle}&to={middle + 2}")
    assert part.text.splitlines() == expected[middle : middle + 2]
    assert f'-records-{middle}-to-{middle + 2}.jsonl"' in part.headers["content-disposition"]


def test_records_of_a_branch(client: TestClient) -> None:
    page = new_session(client, at=6, kind="add", id="mine", tokens="40", max_tokens="3")
    told = lines_of(client.get(f"{page}/records.jsonl?branch=b2"))
    assert [record["action"] for record in told] == list(range(7))
    assert told[6]["do"] == "add_request"
    assert client.get(f"{page}/records.jsonl?branch=b2&from=8").status_code == 409
    assert client.get(f"{page}/records.jsonl?branch=b2&from=3&to=2").status_code == 422
    assert client.get(f"{page}/records.jsonl?branch=b2&from=7").content == b""


def test_records_that_take_too_long_say_where_they_end(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    ticking = SimpleNamespace(thread_time=lambda: next(clock) / 1000)
    monkeypatch.setattr("app.services.recording.time", ticking)
    with browser(replace(settings, replay_seconds=0.02)) as client:
        client.get(f"{LESSON}/frame?at=15")  # replayed before
        *told, error = lines_of(client.get(f"{LESSON}/records.jsonl"))
    assert 0 < len(told) < 15
    assert (error["error"]["code"], error["error"]["where"]) == ("too_long", f"actions[{len(told)}]")
