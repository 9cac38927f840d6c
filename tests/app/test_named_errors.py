"""What is said of odd questions: names stay as they are written, numbers are too large and not none, HEAD is taken."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.services.errors import TooLongError
from app.services.links import encode
from app.services.recording import Recorder
from engine.scenario import parse_scenario
from engine.simulation import Simulation
from tests.app.api.conftest import STEP, Api, add, scenario
from tests.app.reading import new_session, text_of

ASKS = {"Accept": "application/json"}
LARGE = "9" * 20


def error(client: TestClient, path: str) -> tuple[int, str, str]:
    answer = client.get(path, headers=ASKS)
    told = answer.json()["error"]
    return answer.status_code, told["message"], told["expected"]


def test_a_number_that_is_too_large_is_a_whole_number(client: TestClient) -> None:
    page = new_session(client)
    api = page.replace("/s/", "/api/sessions/")
    for path in (f"{page}?at=", f"{page}/frame?at=", f"{page}/block/", f"{api}?at=", f"{api}/records?from="):
        name = path.rstrip("=/").rpartition("?" if "?" in path else "/")[2]
        assert error(client, f"{path}{LARGE}") == (422, f'"{name}" is too large.', "at most 999999999")
        assert error(client, f"{path}x") == (422, f'"{name}" is not a whole number.', "a whole number, 0 or more")
    assert error(client, f"{page}?at=000000000000003")[1] == '"at" has too many digits.'


def test_a_name_does_not_begin_a_sentence_with_a_capital(client: TestClient) -> None:
    page = new_session(client)
    assert '"at" is not a whole number.' in text_of(client.get(f"{page}?at=x"))
    client.post(f"{page}/add", data={"at": "3", "id": "new", "tokens": "4", "max_tokens": "1"})
    client.post(f"{page}/delete", data={"branch": "b2"})
    assert "The branch b2 was deleted." in text_of(client.get(f"{page}?branch=b2"))


@pytest.mark.parametrize("code", ["x", "AAAA", "2", "zzzzzzzzzzzzzzz", "2" + "A" * 30 + ".", "9hello there"])
def test_a_mistyped_code_is_not_from_the_future(client: TestClient, code: str) -> None:
    for path in (f"/p/{code}/", f"/embed/p/{code}/"):
        words = text_of(client.get(path))
        assert "This link is broken" in words
        assert "newer Poolscope" not in words


def test_a_well_formed_code_of_a_later_version_is_from_the_future(client: TestClient) -> None:
    assert "This link is from the future" in text_of(client.get(f"/p/2{encode(parse_scenario(scenario()), 0)[1:]}/"))


@pytest.mark.parametrize(
    "name", ["\u200b", "\u202e", "\ufeff", "\u3164", "\u2800", "\u00ad", "\u115f\u1160\uffa0", "\u2003"]
)
def test_what_nobody_sees_is_no_id_and_no_name(client: TestClient, name: str) -> None:
    written = scenario(add(name), STEP)
    for path in ("/api/sessions", "/edit"):
        answer = client.post(path, json=written, headers=ASKS)
        told = answer.json()["error"]
        assert (answer.status_code, told["where"]) == (422, "actions[0].id")
        assert told["expected"] == "something visible, no control characters"
    (problem,) = client.post("/check", json=written, headers=ASKS).json()["problems"]
    assert problem["message"] == "A page can't show this id."
    page = new_session(client)
    assert client.post(f"{page}/add", data={"id": name, "tokens": "4", "max_tokens": "1"}).status_code == 422
    assert client.post(f"{page}/rename", data={"branch": "main", "name": name}, headers=ASKS).status_code == 422


@pytest.mark.parametrize("name", ["\u200ba", "☃", "·", "é", "न", "3"])
def test_what_is_seen_may_be_an_id(client: TestClient, name: str) -> None:
    assert client.post("/api/sessions", json=scenario(add(name), STEP)).status_code == 201


@pytest.mark.parametrize("title", ["", " ", "\u200b\u2060"])
def test_what_has_no_title_is_called_so_everywhere(client: TestClient, title: str) -> None:
    api = Api(client, add("ada"), STEP, STEP)
    made = client.post("/api/sessions", json={**scenario(add("ada"), STEP, STEP), "title": title}).json()
    api.path = f"/api/sessions/{made['id']}"
    headers = {"Authorization": f"Bearer {made['secret']}"}
    client.post(f"{api.path}/actions", json={"actions": add("bob"), "at": 1}, headers=headers)
    page = f"/s/{made['id']}"
    for path in ("", "/compare?a=main&b=b2", "/config", "/edit", "/share", "/qr", "/branches"):
        assert "Untitled" in text_of(client.get(f"{page}{path}")), path
    assert "<title>main beside b2 · Untitled · Poolscope</title>" in client.get(f"{page}/compare?a=main&b=b2").text


def test_a_title_turns_no_other_word_in_any_title_of_a_page(client: TestClient) -> None:
    title = "\u202eright to left"
    made = client.post("/api/sessions", json={**scenario(add("ada"), STEP, STEP), "title": title}).json()
    page, headers = f"/s/{made['id']}", {"Authorization": f"Bearer {made['secret']}"}
    client.post(f"/api/sessions/{made['id']}/actions", json={"actions": add("bob"), "at": 1}, headers=headers)
    paths = ("", "/compare?a=main&b=b2", "/config", "/edit", "/share", "/qr", "/branches", "/export.html", "/downloads")
    for path in (*paths, "/call?at=2", "/probe?at=2"):
        head = client.get(f"{page}{path}").text.partition("<title>")[2].partition("</title>")[0]
        assert f"\u2068{title}\u2069" in head, path


def test_head_is_taken_wherever_get_is(client: TestClient) -> None:
    page = new_session(client)
    api, code = page.replace("/s/", "/api/sessions/"), encode(parse_scenario(scenario(add("ada"), STEP)), 1)
    below = ("", "/frame", "/block/3", "/config", "/edit", "/branches", "/share", "/scenario.json", "/records.jsonl")
    more = (
        "/",
        "/edit",
        "/openapi.json",
        "/docs",
        "/healthz",
        api,
        f"{api}/records",
        f"{api}/permalink",
        f"/p/{code}/",
    )
    for path in (*(f"{page}{one}" for one in (*below, "/export.html")), *more):
        head, body = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        assert head.headers["content-type"] == body.headers["content-type"]
    assert client.head(f"{page}/nothing").status_code == 404
    refused = client.head(f"{page}/rename")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert client.post(api).headers["allow"] == "GET, HEAD, DELETE"


def test_records_that_took_too_long_say_where_to_go_on() -> None:
    read = parse_scenario(scenario(add("ada"), *[STEP] * 4))
    for written, goes_on, expected in (
        (2, True, "to go on with ?from=2"),
        (0, True, "fewer or smaller actions"),
        (2, False, "fewer or smaller actions"),
    ):
        simulation = Simulation(read.config)
        for action in read.actions[:written]:
            simulation.apply(action)
        recorder = Recorder(simulation, read.actions, -1, goes_on=goes_on, written=written)
        assert recorder.slice() == []
        assert isinstance(recorder.error, TooLongError)
        assert (recorder.error.where, recorder.error.expected) == (f"actions[{written}]", expected)


def test_a_browser_that_keeps_no_cookie_is_told_so(client: TestClient) -> None:
    page = new_session(client)
    client.cookies.clear()
    answer = client.post(f"{page}/step", data={})
    assert answer.status_code == 403
    words = text_of(answer)
    assert "Only the owner can act: whoever has the cookie that came with this session." in words
    assert "Your browser sent none; you can look." in words
    client.cookies.set("poolscope_owner", "wrong")
    assert "Only the owner can act; you can look." in text_of(client.post(f"{page}/step", data={}))
