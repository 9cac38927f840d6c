"""The file that works without a server: its frames, its range, its limits, and that nothing in it can break out."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from dataclasses import replace
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from app.inlining import inlined
from app.rendering import recording
from app.services.errors import FullError
from app.services.exporting import Exports
from app.services.links import encode
from app.services.sessions import Sessions
from app.settings import Settings
from app.store import Store
from engine.scenario import read_scenario
from tests.app.conftest import browser
from tests.app.reading import HTMX, LESSON, figures_of, new_session, tags_of, text_of
from tests.app.recorded import HELD, held_in
from tests.app.scenarios import PREEMPTION, STEP, add, stored

HOSTILE = "</script><script>alert(1)</script><!-- \"'&\u2028\u202e"


def frames(client: TestClient, page: str, first: int, last: int, branch: str = "main") -> list[str]:
    """What the server sends live: the frame of the first moment, and each step on."""
    path = f"{page.rstrip('/')}/frame?branch={branch}&at="
    steps = [f"{path}{at}&from={at - 1}" for at in range(first + 1, last + 1)]
    return [client.get(url, headers=HTMX).text for url in (f"{path}{first}", *steps)]


def test_a_recording_holds_the_frames_that_are_sent_live(client: TestClient) -> None:
    answer = client.get(f"{LESSON}/export.html")
    assert answer.status_code == 200
    held = held_in(answer.text)
    assert held["first"] == 0
    assert held["frames"] == frames(client, LESSON, 0, 15)
    assert figures_of(answer)["at"] == 0
    assert figures_of(answer) == figures_of(client.get(f"{LESSON}?at=0"))


def test_a_range_of_a_branch(client: TestClient) -> None:
    page = new_session(client, at=6, kind="add", id="mine", tokens="40", max_tokens="3")
    answer = client.get(f"{page}/export.html?branch=b2&from=3&to=7")
    held = held_in(answer.text)
    assert (held["first"], len(held["frames"])) == (3, 5)
    assert held["frames"] == frames(client, page, 3, 7, "b2")
    assert figures_of(answer)["at"] == 3
    assert 'data-first="3" data-last="7"' in HELD.search(answer.text)[0]  # type: ignore[index]
    assert "recording, moments 3 to 7 of 7" in text_of(answer)
    assert tags_of(answer)[0] == ("html", {"lang": "en"})
    title = re.search(r"<title>(.*?)</title>", answer.text)
    assert title is not None
    assert title[1] == "Recording of One call, traced, moments 3 to 7 · Poolscope"


def test_what_a_link_could_not_run_is_told_in_its_recording_too(client: TestClient) -> None:
    written = {
        "version": 1,
        "config": {"num_blocks": 9},
        "actions": [add("a", 12), STEP, {"do": "add_request", "id": "a", "prompt": [{"tokens": 5}], "max_tokens": 2}],
    }
    page = f"/p/{encode(read_scenario(json.dumps(written)), 1)}/"
    held = held_in(client.get(f"{page}export.html").text)
    assert held["frames"] == frames(client, page, 0, 2)
    assert "This ends before action 3." in held["frames"][2]


def test_calls_that_a_frame_only_names_stand_beside(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [*(add(name, 4, max_tokens=5) for name in "abcdef"), STEP, STEP], num_blocks=40)
    held = held_in(client.get(f"{page}/export.html").text)
    assert held["frames"] == frames(client, page, 0, 8)
    assert set(held["calls"]) == {"7", "8"}
    told = set(re.findall(r'id="call-(\d+)"', held["frames"][7]))
    assert len(told) == 1
    assert told | set(held["calls"]["7"]) == set("012345")
    live = client.get(f"{page}/call?at=7&call=1", headers=HTMX).text
    article = live[live.index("<article") :].strip()
    assert held["calls"]["7"]["1"].strip() == article


def test_nothing_is_asked_of_a_network_and_only_named_scripts_run(client: TestClient) -> None:
    page = client.get(f"{LESSON}/export.html").text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src data:" in policy[1]
    scripts = re.findall(r"<script( [^>]*)?>(.*?)</script>", page, re.S)
    running = [text for kind, text in scripts if "application/json" not in kind and "text/plain" not in kind]
    assert len(running) == 5  # the theme, htmx, Plotly, the import map, the start
    for script in running:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"sha256-{digest}" in policy[1]
    for kind, attributes in tags_of(client.get(f"{LESSON}/export.html")):
        for name in ("src", "href", "action", "hx-post"):
            value = attributes.get(name) or ""
            assert not re.match(r"(?:[a-z]+:)?//|/|\.", value), (kind, value)
            assert not (kind in ("script", "link", "img") and value and not value.startswith("data:")), (kind, value)


def test_no_control_that_acts_is_on_its_page(client: TestClient, settings: Settings) -> None:
    page = stored(settings, PREEMPTION, num_blocks=8)
    for address in (LESSON, page):
        answer = client.get(f"{address}/export.html")
        tags = tags_of(answer)
        assert [attributes.get("method") for tag, attributes in tags if tag == "form"] == ["dialog"]
        assert not [tag for tag in tags if "hx-post" in tag[1]]
        ids = {attributes.get("id") for _, attributes in tags}
        assert not ids & {"composer", "abort", "go-run", "go-share", "probe-tab", "to-config", "go-branches"}
        assert {"go-step", "play", "scrub", "theme", "help"} <= ids
        assert not [attributes for _, attributes in tags if "why" in (attributes.get("class") or "").split()]


def test_every_module_is_in_it_under_a_name(client: TestClient) -> None:
    modules = json.loads(inlined().modules)["imports"]
    texts = {name: base64.b64decode(url.partition(",")[2]).decode() for name, url in modules.items()}
    assert {"poolscope/main.js", "poolscope/recording/server.js", "poolscope/figures/picture.js"} <= set(texts)
    asked = {name for text in texts.values() for name in re.findall(r'\b(?:from |import |import\()"([^"]+)"', text)}
    assert asked <= set(texts)
    assert all(name.startswith("poolscope/") for name in asked)


def test_hostile_ids_and_titles_are_text(client: TestClient, settings: Settings) -> None:
    written = {
        "version": 1,
        "title": HOSTILE,
        "config": {"num_blocks": 30, "block_size": 4},
        "actions": [add(HOSTILE, 12), add("b", 4), STEP, STEP],
    }
    page = f"/p/{encode(read_scenario(json.dumps(written)), 4)}/"
    answer = client.get(f"{page}export.html")
    plain = client.get(f"{LESSON}/export.html")
    assert [tag for tag, _ in tags_of(answer) if tag == "script"] == [
        tag for tag, _ in tags_of(plain) if tag == "script"
    ]
    assert answer.text.count("<!--") == 0
    assert "alert(1)" not in "".join(re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.S)[:1])
    assert "</script><script>alert(1)</script>" in text_of(answer)
    held = held_in(answer.text)
    assert held["cards"]["names"] == [HOSTILE, "b"]
    assert held["frames"] == frames(client, page, 0, 4)
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="script-script-alert-1-script-recording.html"; filename*=UTF-8')
    assert re.fullmatch(r"[\x20-\x7e]+", disposition)


def test_it_is_the_same_file_every_time(client: TestClient) -> None:
    assert client.get(f"{LESSON}/export.html").content == client.get(f"{LESSON}/export.html").content


def test_more_than_500_actions_are_asked_for_by_range(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 4), *[STEP] * 510], num_blocks=12)
    answer = client.get(f"{page}/export.html")
    assert answer.status_code == 413
    assert "holds at most 500 actions, and these are 511" in text_of(answer)
    fields = {attributes["name"]: attributes for tag, attributes in tags_of(answer) if tag == "input"}
    assert (fields["from"]["value"], fields["to"]["value"]) == ("0", "500")
    assert fields["to"]["aria-invalid"] == "true"
    told = client.get(f"{page}/export.html", headers={"Accept": "application/json"})
    assert told.status_code == 413
    assert told.json()["error"]["where"] == "to"
    assert told.json()["error"]["expected"] == "at most 500"
    held = held_in(client.get(f"{page}/export.html?from=500&to=511").text)
    assert held["frames"] == frames(client, page, 500, 511)
    assert sum(len(life) for life in held["cards"]["lives"].values()) > 0
    listed = client.get(f"{page}/downloads")
    assert "It holds at most 500 actions." in text_of(listed)


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("from=4&to=3", 422, "It would end before it begins."),
        ("to=99", 409, "There is no moment 99: this branch has 15 actions."),
        ("from=x", 422, '"from" is not a whole number.'),
        ("from=-1", 422, '"from" is not a whole number.'),
    ],
)
def test_a_range_that_is_none_is_told_beside_its_fields(
    client: TestClient, query: str, status: int, message: str
) -> None:
    answer = client.get(f"{LESSON}/export.html?{query}")
    assert answer.status_code == status
    assert message in text_of(answer)
    name, value = query.split("&")[0].split("=")
    fields = {attributes.get("name"): attributes.get("value") for tag, attributes in tags_of(answer) if tag == "input"}
    assert fields[name] == value
    assert client.get(f"{LESSON}/export.html?{query}", headers={"Accept": "application/json"}).status_code == status


def test_a_file_that_grows_too_large_says_where_it_is_full(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_INFLATED", 120_000)
    answer = client.get(f"{LESSON}/export.html")
    assert answer.status_code == 413
    full = re.search(r"it is full at action (\d+)", text_of(answer))
    assert full is not None
    assert 0 < int(full[1]) < 15
    assert client.get(f"{LESSON}/export.html?to=1").status_code == 200


def test_unknown_branches_and_sources(client: TestClient) -> None:
    assert client.get(f"{LESSON}/export.html?branch=b9").status_code == 409
    assert client.get("/s/nobody/export.html").status_code == 404
    assert client.get("/embed/story/one-call/export.html").status_code == 404


def test_a_way_back_only_where_others_get_to(settings: Settings) -> None:
    with browser(settings) as client:
        assert not [tag for tag in tags_of(client.get(f"{LESSON}/export.html")) if tag[1].get("id") == "open-in"]
    with browser(replace(settings, public_url="https://pool.example/x")) as client:
        answer = client.get(f"{LESSON}/export.html?from=2")
        links = [attributes for _, attributes in tags_of(answer) if attributes.get("id") == "open-in"]
        assert [link["href"] for link in links] == [f"https://pool.example/x{LESSON}?branch=main&at=2"]


def test_a_storys_stops_come_along(client: TestClient) -> None:
    page = text_of(client.get("/story/preemption/export.html"))
    for stop in re.findall(r'<li data-at="\d+"[^>]*>(.*?)</li>', client.get("/story/preemption").text):
        assert " ".join(stop.split())[:40] in page


def test_file_names_of_other_scripts(client: TestClient, settings: Settings) -> None:
    written = {"version": 1, "title": "数据 / क्षि", "config": {"num_blocks": 9}, "actions": []}
    page = f"/p/{encode(read_scenario(json.dumps(written)), 0)}/"
    answer = client.get(f"{page}export.html")
    disposition = answer.headers["content-disposition"]
    assert disposition == (
        f"attachment; filename=\"recording.html\"; filename*=UTF-8''{quote('数据-क्षि-recording.html', safe='')}"
    )


def test_only_a_few_wait_for_their_turn(settings: Settings) -> None:
    async def many() -> list[str]:
        exports, told = Exports(Sessions(settings, Store(settings.data))), list[str]()

        async def one(name: str) -> None:
            try:
                async with exports.turn():
                    told.append(f"{name} begins")
                    await asyncio.sleep(0)
            except FullError:
                told.append(f"{name} is refused")

        await asyncio.gather(*(one(str(i)) for i in range(12)))
        exports.sessions.close()
        return told

    told = asyncio.run(many())
    assert [line for line in told if "refused" in line] == ["10 is refused", "11 is refused"]
    assert [line for line in told if "begins" in line] == [f"{i} begins" for i in range(10)]


def test_a_session_goes_on_while_it_is_recorded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    page = new_session(client)
    end, take = 16, recording.Recording.slice

    def acting(one: recording.Recording) -> None:
        if one.cursor.at == 0:
            client.post(f"{page}/step", data={"branch": "main", "at": str(end)})
        take(one)

    monkeypatch.setattr(recording.Recording, "slice", acting)
    held = held_in(client.get(f"{page}/export.html").text)
    assert len(held["frames"]) == end + 1
    assert "after 16 of 16" in held["frames"][-1]
    assert figures_of(client.get(page))["at"] == end + 1
