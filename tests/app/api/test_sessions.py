"""Making, looking at, linking to and deleting sessions; who may do what."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.routes.api.document import document
from app.services.links import decode
from app.settings import Settings
from app.store import Store
from engine.scenario import Limits, parse_scenario
from tests.app.api.conftest import STEP, Api, add, error_of, program, scenario
from tests.app.conftest import browser
from tests.app.reading import figures_of


def test_a_session_is_made_from_a_scenario(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP, STEP)
    assert list(api.made) == ["id", "secret", "branch", "at", "links"]
    assert (api.made["branch"], api.made["at"]) == ("main", 3)
    root = f"http://testserver/api/sessions/{api.made['id']}"
    assert api.made["links"] == {
        "page": f"http://testserver/s/{api.made['id']}?branch=main&at=3",
        "session": root,
        "records": f"{root}/records",
        "permalink": f"{root}/permalink",
    }
    assert figures_of(client.get(api.made["links"]["page"]))["at"] == 3


def test_links_start_with_the_public_url(settings: Settings) -> None:
    with program(replace(settings, public_url="https://pool.example/kv")) as client:
        made = client.post("/api/sessions", json=scenario())
    assert made.json()["links"]["page"].startswith("https://pool.example/kv/s/")
    assert made.headers["location"] == made.json()["links"]["session"]
    assert made.headers["cache-control"] == "no-store"


def test_a_scenario_that_stops_makes_no_session(client: TestClient, settings: Settings) -> None:
    answer = client.post("/api/sessions", json=scenario(add("ada"), STEP, add("ada")))
    assert error_of(answer) == (422, "live_id", "actions[2].id")
    assert Store(settings.data).count() == (0, 0)


@pytest.mark.parametrize("kinds", [1, 2])
def test_a_shortfall_may_be_larger_than_any_number_that_a_config_holds(client: TestClient, kinds: int) -> None:
    groups = [{"kind": "full_attention"}, {"kind": "sliding_window", "sliding_window": 16}][:kinds]
    most = {"num_lookahead_tokens": 2**53, "max_model_len": 2**53}
    api = Api(client, add("ada"), STEP, **most, groups=groups, block_size=1)
    (call,) = json.loads(api.get("/records?from=1").text)["allocate_slots"]
    assert (call["new_blocks"], call["free_before"]) == (None, 11)
    assert "can never fit in a pool of 11" in client.get(f"/s/{api.made['id']}").text


def test_looking_gives_the_state_of_any_moment_and_all_actions(client: TestClient) -> None:
    actions = [add("ada"), STEP, STEP]
    api = Api(client, *actions)
    records = client.post("/api/replay", json=scenario(*actions)).text.splitlines()
    for at in (1, 2, 3):
        seen = api.get(f"?at={at}").json()
        assert list(seen) == ["branch", "at", "actions", "state"]
        assert (seen["branch"], seen["at"], seen["actions"]) == ("main", at, actions)
        assert seen["state"] == json.loads(records[at - 1])["state"]
    assert api.get("?at=0").json()["state"]["free_queue"] == [*range(1, 12)]
    assert api.get().json() == api.get("?branch=main&at=3").json()


def test_a_session_outlives_the_server(client: TestClient, settings: Settings) -> None:
    api = Api(client, add("ada"), STEP)
    seen = api.get("?at=2").json()
    with program(settings) as again:
        assert again.get(f"{api.path}?at=2").json() == seen
        api.client = again
        assert api.act(STEP).json()["at"] == 3


def test_a_permalink_holds_the_branch(client: TestClient) -> None:
    actions = [add("ada"), STEP, STEP]
    api = Api(client, *actions)
    told = api.get("/permalink?at=2&select=block:3").json()
    assert list(told) == ["branch", "at", "select", "code", "url", "loopback"]
    assert told["url"] == f"http://testserver/p/{told['code']}/"
    assert client.get(told["url"]).status_code == 200, "no redirect repeats a long link"
    assert told["loopback"] is False
    link = decode(told["code"], Limits())
    assert (link.at, link.select) == (2, "block:3")
    assert link.scenario == parse_scenario(scenario(*actions))
    assert error_of(api.get("/permalink?at=4")) == (409, "stale", "at")
    assert error_of(api.get(f"/permalink?select={'x' * 301}")) == (422, "out_of_range", "link.select")


def test_a_permalink_says_when_it_works_on_this_machine_only(settings: Settings) -> None:
    with program(settings) as client:
        client.base_url = "http://127.0.0.1:8000"
        told = Api(client).get("/permalink").json()
    assert (told["loopback"], told["url"][:25]) == (True, "http://127.0.0.1:8000/p/1")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "no_secret"),
        ({"Authorization": "Basic YTpi"}, 401, "no_secret"),
        ({"Authorization": "Bearer"}, 403, "not_owner"),
        ({"Authorization": "Bearer wrong"}, 403, "not_owner"),
        ({"Authorization": "Bearer \xe9\xff"}, 403, "not_owner"),
    ],
)
def test_only_the_owner_acts_and_deletes(client: TestClient, headers: dict[str, str], status: int, code: str) -> None:
    api = Api(client, add("ada"))
    raw = {name.encode("ascii"): value.encode("latin-1") for name, value in headers.items()}
    act = client.post(f"{api.path}/actions", json={"actions": STEP}, headers=raw)
    delete = client.delete(api.path, headers=raw)
    for answer in (act, delete):
        assert error_of(answer)[:2] == (status, code)
        assert answer.headers.get("www-authenticate") == ("Bearer" if status == 401 else None)
    assert api.end == 1


def test_the_secret_of_another_session_is_worth_nothing(client: TestClient) -> None:
    one, other = Api(client, add("ada")), Api(client, add("ada"))
    answer = client.post(f"{one.path}/actions", json={"actions": STEP}, headers=other.headers)
    assert error_of(answer)[:2] == (403, "not_owner")


def test_the_secret_is_told_once_and_is_no_part_of_looking(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP)
    for what in ("", "/records", "/permalink"):
        assert api.made["secret"] not in api.get(what).text
    assert api.made["secret"] not in client.get(f"/s/{api.made['id']}").text


def test_a_deleted_session_is_gone(client: TestClient, settings: Settings) -> None:
    api, other = Api(client, add("ada"), STEP), Api(client, add("bob"))
    gone = client.delete(api.path, headers=api.headers)
    assert (gone.status_code, gone.content) == (204, b"")
    assert error_of(api.get()) == (404, "unknown_session", "session")
    assert error_of(api.act(STEP)) == (404, "unknown_session", "session")
    assert error_of(client.delete(api.path, headers=api.headers))[0] == 404
    assert client.get(f"/s/{api.made['id']}").status_code == 404
    assert other.end == 1
    with program(settings) as again:
        assert again.get(api.path).status_code == 404
        assert again.get(other.path).json()["actions"] == [add("bob")]


def test_a_session_whose_branch_main_is_deleted_can_be_acted_on_and_deleted(
    client: TestClient, settings: Settings
) -> None:
    api = Api(client, add("ada"), STEP)
    assert api.act(STEP, at=1).json()["branch"] == "main"
    made = api.act(add("bob"), at=1).json()
    assert made["branch"] == "b2"
    with browser(settings) as page:
        removed = page.post(f"/s/{api.made['id']}/delete", data={"branch": "main"}, headers=api.headers)
        assert removed.status_code == 303
    with program(settings) as again:
        api.client = again
        assert api.get().json()["branch"] == "b2"  # the first one that is left
        assert api.act(STEP, branch="b2").json()["at"] == 3
        assert again.delete(api.path, headers=api.headers).status_code == 204


def test_a_session_with_a_run_under_way_can_be_deleted(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.runs.PATIENCE", 0.0)
    api = Api(client, add("ada", 40, max_tokens=4_000), num_blocks=400, max_model_len=8_000)
    page = f"/s/{api.made['id']}"
    headers = {**api.headers, "HX-Request": "true"}
    assert "running" in client.post(f"{page}/run", json={"at": 1, "until": "idle"}, headers=headers).text.lower()
    assert client.delete(api.path, headers=api.headers).status_code == 204
    assert error_of(api.get())[0] == 404
    assert client.get(page).status_code == 404


def test_another_sites_page_makes_no_session(client: TestClient) -> None:
    headers = {"Origin": "http://evil.example"}
    for path in ("/api/sessions", "/api/replay"):
        assert error_of(client.post(path, json=scenario(), headers=headers))[:2] == (403, "cross_origin")


def test_without_a_branch_the_first_that_is_left_is_meant(client: TestClient) -> None:
    """As the published description of `branch` says, which has no default: main may be gone."""
    branches = [one for one in _described(document(), "branch") if "const" not in one]
    assert len(branches) >= 4
    for told in branches:
        assert "default" not in told
    api = Api(client, add("ada"), STEP, STEP)
    assert api.get("/permalink").json()["branch"] == "main"
    assert api.act(add("bob"), at=1).json()["branch"] == "b2"
    assert api.act(add("cy"), at=1).json()["branch"] == "b3"
    client.post(api.path.replace("/api/sessions", "/s") + "/delete", json={"branch": "main"}, headers=api.headers)
    told = api.act(STEP)
    assert (told.status_code, told.json()["branch"], told.json()["at"]) == (200, "b2", 3)
    assert api.get().json()["branch"] == api.get("/permalink").json()["branch"] == "b2"
    assert len(api.get("/records").text.splitlines()) == 3
    assert api.act(STEP, branch="main").status_code == 409


def _described(value: Any, name: str) -> list[Any]:  # noqa: ANN401 - JSON
    """The schemas of every property and parameter of a name."""
    if isinstance(value, list):
        return [one for item in value for one in _described(item, name)]
    if not isinstance(value, dict):
        return []
    own = [value["properties"][name]] if name in value.get("properties", {}) else []
    own += [value["schema"]] if value.get("name") == name and "schema" in value else []
    return own + [one for item in value.values() for one in _described(item, name)]
