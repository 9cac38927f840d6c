"""Permalinks opened: what they show, that nothing is stored, and what is wrong with those that don't open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services.links import decode, encode
from app.services.sources import Source
from app.settings import Settings
from app.store import FILE, Store
from engine.scenario import Limits, Scenario, parse_scenario
from tests.app.conftest import browser
from tests.app.reading import HTMX, figures_of, landed, link_in, tags_of, text_of
from tests.app.scenarios import STEP, add
from tests.app.test_links import FIXTURES, forged
from tests.app.test_security import HOSTILE

ASKS = {"Accept": "application/json"}


def scenario(*actions: dict[str, Any], title: str = "Mine", **config: object) -> Scenario:
    options = {"num_blocks": 9, "block_size": 4, "max_model_len": 400} | config
    return parse_scenario({"version": 1, "title": title, "config": options, "actions": [*actions]})


SMALL = scenario(add("a", 12), STEP, STEP)


def test_it_opens_at_its_moment_with_its_selection(client: TestClient) -> None:
    code = encode(SMALL, 2, "request:a")
    bare = client.get(f"/p/{code}")
    assert (bare.status_code, landed(bare)) == (307, f"/p/{code}/")
    page = client.get(f"/p/{code}/")
    assert figures_of(page)["at"] == 2
    assert next(attributes for tag, attributes in tags_of(page) if tag == "body")["data-select"] == "request:a"
    assert "Mine" in text_of(page)
    other = client.get(f"/p/{code}/?at=1")
    assert figures_of(other)["at"] == 1
    assert "data-select" not in other.text
    assert landed(client.get(f"/p/{code}?at=1&sel=block:3")) == f"/p/{code}/?at=1&sel=block:3"


def test_its_code_stands_in_no_link_of_its_page(client: TestClient) -> None:
    code = encode(scenario(*[add(f"r{i}", 30 + i) for i in range(30)], *[STEP] * 30), 60)
    page = client.get(f"/p/{code}/")
    assert code not in page.text
    assert code not in client.get(f"/p/{code}/frame?at=59", headers=HTMX).text


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_links_of_earlier_builds_open(client: TestClient, path: Path) -> None:
    code = path.read_text("ascii").strip()
    link = decode(code, Limits())
    page = client.get(f"/p/{code}/")
    assert (page.status_code, figures_of(page)["at"]) == (200, link.at)


def test_opening_stores_nothing_and_acting_makes_a_session_of_ones_own(client: TestClient, settings: Settings) -> None:
    file, wal = settings.data / FILE, settings.data / f"{FILE}-wal"
    code = encode(SMALL, 3)
    before = (file.read_bytes(), wal.read_bytes())
    for path in ("", "?at=1", "frame?at=2", "block/1", "share", "qr", "config", "branches", "probe", "draft?id=x"):
        answer = client.get(f"/p/{code}/{path}")
        assert answer.status_code == 200, path
        assert "set-cookie" not in answer.headers
    assert client.get(f"/embed/p/{code}/").status_code == 200
    moved = client.post(f"/p/{code}/step", data={"branch": "main", "at": "1"})
    assert landed(moved) == f"/p/{code}/?branch=main&at=2"
    assert (file.read_bytes(), wal.read_bytes()) == before
    acted = client.post(f"/p/{code}/add", data={"at": "3", "id": "b", "tokens": "4", "max_tokens": "1"})
    page = landed(acted)
    assert page.startswith("/s/")
    assert figures_of(client.get(page))["at"] == 4
    assert Store(settings.data).count() == (1, 4)
    assert figures_of(client.get(f"/p/{code}/"))["at"] == 3
    pushed = client.post(f"/p/{code}/step", data={"at": "3"}, headers=HTMX).headers["hx-push-url"]
    assert pushed.startswith("../../s/")


def test_a_refused_form_of_a_link_leads_back_to_it(client: TestClient) -> None:
    code = encode(SMALL, 3)
    answer = client.post(f"/p/{code}/add", data={"at": "3", "id": "b", "tokens": "no", "max_tokens": "1"})
    assert answer.status_code == 422
    assert link_in(answer, "go-first") == "./?branch=main&at=0"
    story = client.post("/story/watermark/add", data={"at": "3", "id": "b", "tokens": "no", "max_tokens": "1"})
    assert link_in(story, "go-first") == "../watermark?branch=main&at=0"


def bomb() -> str:
    return forged(b" " * 40_000_000)


WRONG = [
    ("", 404, "There is nothing here"),
    ("-" + "x" * 30, 400, "This link is broken"),
    ("1", 400, "This link is cut short"),
    (encode(SMALL, 2)[:-9], 400, "This link is cut short"),
    (encode(SMALL, 2)[:-5] + "AAAA" + encode(SMALL, 2)[-1], 400, "This link is"),
    ("2" + encode(SMALL, 2)[1:], 422, "This link is from the future"),
    (encode(scenario(num_blocks=200_001), 0), 413, "That is too large"),
    (
        forged(b'{"at": 0, "select": "", "scenario": {"version": 1, "config": {}, "actions": [{"do": "x"}]}}'),
        422,
        "isn't right",
    ),
]


@pytest.mark.parametrize(("code", "status", "title"), WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("where", ["/p", "/embed/p"])
def test_a_link_that_does_not_open_has_a_clear_page(
    client: TestClient, settings: Settings, where: str, code: str, status: int, title: str
) -> None:
    answer = client.get(f"{where}/{code}/")
    assert answer.status_code == status
    words = text_of(answer)
    assert title in words
    assert "Go to the start" in words
    assert "Traceback" not in words
    asked = client.get(f"{where}/{code}/frame", headers=ASKS)
    assert asked.status_code == status
    assert set(asked.json()["error"]) == {"code", "message", "where", "expected"}
    assert client.get(f"{where}/{code}/block/1").status_code == status
    assert Store(settings.data).count() == (0, 0)


def test_a_compression_bomb_is_refused(client: TestClient) -> None:
    code = bomb()
    assert len(code) < 100_000
    answer = client.get(f"/p/{code}/")
    assert (answer.status_code, "too large" in text_of(answer)) == (413, True)


def test_an_error_in_a_links_scenario_names_its_place(client: TestClient) -> None:
    payload = (
        b'{"at": 0, "select": "", "scenario": {"version": 1, "config": {"num_blocks": 9}, "actions": [{"do": "x"}]}}'
    )
    words = text_of(client.get(f"/p/{forged(payload)}/"))
    assert "actions[0].do" in words


def test_what_is_kept_of_links_goes_when_it_does_not_open(settings: Settings) -> None:
    with browser(settings) as client:
        for code in ("x", "2x", "1"):
            client.get(f"/p/{code}/")
        parts = client.app.app.app.app.app.app.state.parts  # type: ignore[attr-defined]
        assert parts.sessions.num_loaded == 0


def test_the_actions_of_a_link_end_before_one_that_is_impossible(client: TestClient, settings: Settings) -> None:
    code = encode(scenario(add("a", 12), STEP, add("a", 9), STEP), 4)
    page = client.get(f"/p/{code}/")
    assert figures_of(page)["at"] == 2
    words = text_of(page)
    assert "This ends before action 3." in words
    assert "after 2 of 2" in words
    assert client.get(f"/p/{code}/?at=4", headers=ASKS).status_code == 409
    acted = client.post(f"/p/{code}/step", data={"at": "2"})
    assert (acted.status_code, Store(settings.data).count()) == (303, (1, 3))


def test_a_prompt_that_grows_by_itself_ends_a_link(client: TestClient) -> None:
    grow = [add(f"r{i + 1}", {"continue": f"r{i}"}, {"continue": f"r{i}"}, max_tokens=1) for i in range(20)]
    code = encode(scenario(add("r0", 1000, max_tokens=1), *grow, max_model_len=10**7), 21)
    words = text_of(client.get(f"/p/{code}/"))
    assert "tokens in a prompt are more than this program takes" in words
    assert "This ends before action 11." in words


def test_a_replay_that_takes_too_long_shows_what_it_has(tmp_path: Path) -> None:
    actions = [add("a", 10, max_tokens=5000), *[STEP] * 4000]
    code = encode(scenario(*actions, num_blocks=3000, max_model_len=10**5), 4001)
    with browser(Settings(data=tmp_path, replay_seconds=0.001)) as client:
        page = client.get(f"/p/{code}/")
        at = figures_of(page)["at"]
        assert 0 < at < 4001
        assert f"Replaying up to action 4001 takes longer than one request may; this is after {at}." in text_of(page)
        again = figures_of(client.get(f"/p/{code}/"))["at"]
        assert again > at, "each look goes on from where the last one stopped"
        acted = client.post(f"/p/{code}/step", data={"at": "4001"}, headers=ASKS)
        assert (acted.status_code, acted.json()["error"]["code"]) == (503, "unavailable")


def test_a_replay_that_takes_too_much_memory_ends(client: TestClient) -> None:
    actions = [add(f"r{i}", 400_000, max_tokens=1) for i in range(8)]
    code = encode(scenario(*actions, block_size=1, max_model_len=10**6), 8)
    words = text_of(client.get(f"/p/{code}/"))
    told = "This ends before action 4. With this prompt the living requests take about 288 MB of memory."
    assert f"{told} Expected: at most 256 MB" in words
    assert "after 3 of 3" in words


@pytest.mark.parametrize("name", ["https:evil.example", "javascript:alert(1)", "a%3Fb%0d%0aX-Y:z", "..", "%2e%2e"])
def test_a_redirect_stays_on_this_server(client: TestClient, name: str) -> None:
    for path in (f"/p/{name}", f"/s/{name}/", f"/l/{name}/"):
        answer = client.get(path)
        if answer.status_code == 307:
            assert answer.headers["location"].startswith(("./", "../"))
            assert "\n" not in answer.headers["location"]
            assert "?" not in answer.headers["location"]


def test_hostile_words_are_text_wherever_a_link_is_shown(client: TestClient) -> None:
    code = encode(scenario(add(HOSTILE, 12), STEP, title=HOSTILE), 2, f"request:{HOSTILE}")
    key = client.post(f"/p/{code}/shorten", data={"at": "2", "sel": f"request:{HOSTILE}"}, headers=ASKS).json()["key"]
    paths = [f"/p/{code}/", f"/p/{code}/frame", f"/p/{code}/share?sel=request:{HOSTILE}", f"/p/{code}/qr"]
    for path in [
        *paths,
        f"/embed/p/{code}/",
        f"/l/{key}",
        f"/embed/l/{key}",
        f"/p/{code}/config",
        f"/p/{code}/branches",
    ]:
        for headers in ({}, HTMX):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 200, path
            assert "<img src=x" not in answer.text, path
            assert not [tag for tag, attributes in tags_of(answer) if "onerror" in attributes]


def test_sources_know_where_they_are() -> None:
    assert Source("s", "x").page == "s/x"
    assert (Source("p", "c").page, Source("p", "c").base, Source("p", "c").from_below) == ("p/c/", "", "./")
    assert (Source("story", "x", embedded=True).page, Source("story", "x").base) == ("embed/story/x", "x/")
    assert (Source("new").page, Source("new").base, Source("new").from_below) == ("new", "new/", "../new")
    assert Source("p", "c", embedded=True).key == Source("p", "c").key != Source("l", "c").key
