"""The share page: absolute links to this moment, a snippet that is safe to paste, a code for a wall."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.services.links import decode, encode
from app.services.qr import qr_code
from app.services.scenarios import scenario_of
from app.services.session import Branch, Session
from app.settings import Settings
from engine.actions import AddRequest, Step
from engine.config import EngineConfig
from engine.record import current_state
from engine.scenario import Limits, parse_scenario
from engine.tokens import Own
from tests.app.conftest import browser
from tests.app.reading import HTMX, new_session, tags_of, text_of
from tests.app.scenarios import STEP, add
from tests.app.test_permalinks import scenario

STORY = "/story/watermark"


def value(page: Response, name: str) -> str:
    """What stands in a field of the share page."""
    return str(next(attributes["value"] for _, attributes in tags_of(page) if attributes.get("id") == name))


def snippet(page: Response) -> str:
    found = re.search(r'<textarea id="share-embed"[^>]*>(.*?)</textarea>', page.text, re.DOTALL)
    assert found
    return html.unescape(found[1])


def test_the_permalink_holds_the_branch_the_moment_and_the_selection(client: TestClient) -> None:
    session = new_session(client)
    page = client.get(f"{session}/share?branch=main&at=9&sel=block:3")
    link = value(page, "share-permalink")
    assert link.startswith("http://testserver/p/")
    held = decode(link.split("/")[-2], Limits())
    assert (held.at, held.select, len(held.scenario.actions), held.scenario.title) == (
        9,
        "block:3",
        16,
        "One call, traced",
    )
    assert value(page, "share-session") == f"http://testserver{session}?branch=main&at=9&sel=block:3"
    assert "One call, traced, after 9 of 16, with block 3 selected" in text_of(page)
    assert client.get(link.removeprefix("http://testserver")).status_code == 200, "no redirect repeats a long link"
    assert client.get(link.removeprefix("http://testserver").rstrip("/")).status_code == 307, "for what people type"
    told = client.get(f"/api{session.replace('/s/', '/sessions/')}/permalink?at=9&select=block:3").json()
    assert told["url"] == link, "one moment has one link"


def test_a_story_is_shared_as_it_was_written(client: TestClient) -> None:
    page = client.get(f"{STORY}/share?at=7")
    assert "share-session" not in page.text
    held = decode(value(page, "share-permalink").split("/")[-2], Limits())
    assert '"tokens": 120' in str(held.scenario.to_json()).replace("'", '"')


def test_the_snippet_embeds_the_same_moment(client: TestClient) -> None:
    page = client.get(f"{STORY}/share?at=7&sel=request:cy")
    code = value(page, "share-permalink").split("/")[-2]
    assert snippet(page) == (
        f'<iframe src="http://testserver/embed/p/{code}/" title="The watermark · Poolscope" '
        'width="100%" height="640" style="border:0" loading="lazy"></iframe>'
    )


def test_a_hostile_title_breaks_out_of_no_snippet(client: TestClient) -> None:
    title = '"></iframe></textarea><img src=x onerror=alert(1)>'
    code = encode(scenario(add("a", 4), title=title), 1)
    page = client.get(f"/p/{code}/share")
    assert "<img src=x" not in page.text
    inner = snippet(page)
    assert "<img src=x onerror=alert(1)>" not in inner
    assert inner.count("<") == 2
    assert html.escape(title, quote=True).replace("&quot;", "&#34;") in inner


def test_both_shapes_say_the_same(client: TestClient) -> None:
    whole, fragment = client.get(f"{STORY}/share?at=7"), client.get(f"{STORY}/share?at=7", headers=HTMX)
    assert "<html" in whole.text
    assert "<html" not in fragment.text
    for name in ("share-permalink",):
        assert value(whole, name) == value(fragment, name)
    assert snippet(whole) == snippet(fragment)
    forms = [attributes["action"] for tag, attributes in tags_of(fragment) if "hx-post" in attributes]
    assert forms == ["watermark/shorten"]
    forms = [attributes["action"] for tag, attributes in tags_of(whole) if "hx-post" in attributes]
    assert forms == ["shorten"]


def test_the_code_on_the_wall_is_that_of_the_link(client: TestClient) -> None:
    page = client.get(f"{STORY}/share?at=7")
    path = qr_code(value(page, "share-permalink")).path
    assert path
    assert f'd="{path}"' in page.text
    assert f'd="{path}"' in client.get(f"{STORY}/qr?at=7").text
    key = client.post(f"{STORY}/shorten", data={"at": "7"}, headers={"Accept": "application/json"}).json()["key"]
    short = qr_code(f"http://testserver/l/{key}").path
    for where in ("share", "qr"):
        assert f'd="{short}"' in client.get(f"{STORY}/{where}?at=7").text


def test_a_link_that_is_too_long_for_a_code_says_so(client: TestClient) -> None:
    actions = [add(f"request-{i}-{i * 7919 % 1000}", 10 + i * 31 % 97, cache_salt=f"{i * i}") for i in range(400)]
    code = encode(scenario(*actions, STEP), 401)
    page = client.get(f"/p/{code}/share")
    words = text_of(page)
    assert "a code that phones can read holds 1200" in words
    assert "characters it is longer than some programs take" in words
    assert "Make a short link to get one." in words


def test_a_scenario_that_is_too_large_for_a_link_says_so(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.routes.share.MAX_CODE", 50)
    page = client.get(f"{STORY}/share?at=7")
    assert "too large for a link" in text_of(page)
    assert "share-permalink" not in page.text
    assert client.post(f"{STORY}/shorten", data={"at": "7"}).status_code == 422
    assert client.get(f"{STORY}/qr?at=7").status_code == 422


@pytest.mark.parametrize(
    ("url", "warned"), [(None, False), ("https://pool.example/x", False), ("http://localhost:9", True)]
)
def test_links_start_with_the_public_url(tmp_path: Path, url: str | None, warned: bool) -> None:
    with browser(replace(Settings(data=tmp_path), public_url=url)) as client:
        page = client.get(f"{STORY}/share?at=7")
        assert value(page, "share-permalink").startswith(f"{url or 'http://testserver'}/p/")
        assert snippet(page).startswith(f'<iframe src="{url or "http://testserver"}/embed/p/')
        assert ("open on this computer only" in text_of(page)) == warned
        assert ("opens on this computer only" in text_of(client.get(f"{STORY}/qr?at=7"))) == warned


def test_a_request_at_a_loopback_address_is_warned(client: TestClient) -> None:
    for host, warned in (("127.0.0.1:8000", True), ("localhost", True), ("[::1]:80", True), ("pool.example", False)):
        page = client.get(f"{STORY}/share?at=7", headers={"Host": host})
        assert ("open on this computer only" in text_of(page)) == warned, host
        assert value(page, "share-permalink").startswith(f"http://{host}/p/")


def test_the_header_of_the_workspace_leads_there(client: TestClient) -> None:
    links = {attributes.get("id"): attributes.get("href") for _, attributes in tags_of(client.get(f"{STORY}?at=7"))}
    assert links["go-share"] == "watermark/share?branch=main&at=7"


def test_a_branch_that_inherited_a_connector_replays_with_it_from_its_link() -> None:
    """Under a connector blocks go back in another order: 6.3 of engine-behaviour."""
    config = EngineConfig.from_json(
        {"num_blocks": 9, "block_size": 4, "groups": [{"kind": "sliding_window", "sliding_window": 6}]}
    )
    branch = Branch(config, has_connector=True)
    branch.append(AddRequest("a", (Own(20),), 1))
    branch.append(Step())
    session = Session("x", "t", b"", branch)
    handed_on = decode(encode(scenario_of(session), 2), Limits()).scenario
    assert parse_scenario(handed_on.to_json()).has_connector
    again, without = Branch(config, handed_on.actions), Branch(config, branch.actions)
    for one in (again, without):
        one.advance(one.head, 2, 60)
    assert current_state(again.head.simulation) == current_state(branch.head.simulation)
    assert current_state(without.head.simulation) != current_state(branch.head.simulation)
