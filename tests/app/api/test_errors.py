"""The one shape of every error under `/api`, whatever the client says that it accepts."""

from __future__ import annotations

import sqlite3

import pytest
from starlette.testclient import TestClient

from app.services.sessions import Sessions
from app.settings import Settings
from app.store import Store, StoreError
from tests.app.api.conftest import STEP, Api, add, error_of, program, scenario

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/sessions/a/b/c", "/api/replay/x", "/api/<b>"])
def test_there_is_nothing_here(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=BROWSER)
    assert error_of(answer)[:2] == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/sessions/x", "GET, HEAD, DELETE"),
        ("GET", "/api/sessions", "POST"),
        ("GET", "/api/replay", "POST"),
        ("PATCH", "/api/sessions/x/actions", "POST"),
        ("POST", "/api/sessions/x/records", "GET, HEAD"),
        ("DELETE", "/openapi.json", "GET, HEAD"),
    ],
)
def test_it_isnt_done_this_way(client: TestClient, method: str, path: str, allowed: str) -> None:
    answer = client.request(method, path, headers=BROWSER)
    assert error_of(answer)[:2] == (405, "method_not_allowed")
    assert answer.json()["error"]["expected"] == answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "name", ["nobody", "%00", "..%2f..", "a" * 5_000, "%F0%9F%92%A5", "%ff", "'; DROP TABLE sessions"]
)
def test_an_unknown_session(client: TestClient, name: str) -> None:
    for path in ("", "/records", "/permalink"):
        assert error_of(client.get(f"/api/sessions/{name}{path}", headers=BROWSER))[0] == 404


@pytest.mark.parametrize("query", ["at=x", "at=-1", "at=1e3", "at=0000000000", "at=%D9%A3", "colour=red", "at=1&at=1"])
def test_wrong_parameters(client: TestClient, query: str) -> None:
    api = Api(client, add("ada"))
    for path in ("", "/permalink"):
        assert error_of(api.get(f"{path}?{query}"))[0] == 422
    for path in ("/api/sessions", "/api/replay", f"{api.path}/actions", f"{api.path}/probe"):
        assert error_of(client.post(f"{path}?{query}", json={}, headers=api.headers)) == (422, "invalid", "query")


def test_a_full_disk_changes_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(settings) as client:
        api = Api(client, add("ada"), STEP)

        def full(*_: object) -> None:
            raise StoreError("disk full") from sqlite3.OperationalError()

        with monkeypatch.context() as patched:
            patched.setattr(Store, "_write", full)
            answers = [
                api.act(STEP),
                api.act(add("bob"), STEP, at=1),
                client.post("/api/sessions", json=scenario()),
                client.delete(api.path, headers=api.headers),
            ]
        assert [error_of(answer)[:2] for answer in answers] == [(503, "unavailable")] * 4
        assert {answer.headers["retry-after"] for answer in answers} == {"5"}
        assert api.end == 2
        assert api.act(add("bob"), STEP, at=1).json()["branch"] == "b2"


def test_a_mistake_of_ours_has_the_shape_too(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("secret details")

    with program(settings) as client:
        api = Api(client, add("ada"))
        client._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
        monkeypatch.setattr(Sessions, "seek", broken)
        answer = api.get()
        assert error_of(answer)[:2] == (500, "internal")
        assert "secret details" not in answer.text
