"""Embeds: the same view in a frame on somebody's page, for looking only."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.services.links import encode
from tests.app.reading import HTMX, figures_of, link_in, new_session, tags_of, text_of
from tests.app.test_permalinks import SMALL

CODE = encode(SMALL, 2)
PLACES = ["story/watermark", f"p/{CODE}/", "new"]


@pytest.mark.parametrize("place", PLACES)
def test_it_shows_the_same_moment_without_the_means_to_act(client: TestClient, place: str) -> None:
    whole, embed = client.get(f"/{place}?at=0"), client.get(f"/embed/{place}?at=0")
    assert figures_of(embed) == figures_of(whole)
    ids = {attributes.get("id") for _, attributes in tags_of(embed)}
    assert not ids & {"composer", "abort", "go-share", "to-config", "theme", "tour-own"}
    assert "Open in Poolscope" in text_of(embed)
    depth = "../" * (place.count("/") + 1)
    assert link_in(embed, "open-in") == f"{depth}{place}?branch=main&at=0"


def test_frames_are_the_same_bytes_for_everybody(client: TestClient) -> None:
    for place in ("story/watermark", f"p/{CODE}"):
        asked = [client.get(f"{root}{place}/frame?at=2", headers=HTMX).text for root in ("/", "/embed/")]
        assert asked[0] == asked[1]


def test_only_embeds_may_stand_in_a_frame(client: TestClient) -> None:
    for place in (*PLACES, "l/unknown", "s/unknown", "p/broken/", "story/watermark/frame?at=3"):
        for root, allowed in (("/", "'none'"), ("/embed/", "*")):
            policy = client.get(f"{root}{place}").headers["content-security-policy"]
            assert f"frame-ancestors {allowed}" in policy
            assert ("frame-ancestors" in policy, policy.count(";")) == (True, 6)
    assert "frame-ancestors 'none'" in client.get("/embeds/").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in client.get("/x/embed/story/watermark").headers["content-security-policy"]


def test_nothing_can_be_done_in_one(client: TestClient) -> None:
    page = new_session(client)  # of which this reader is the owner
    for place in (page.removeprefix("/"), "story/watermark", f"p/{CODE}", "new"):
        for what in ("step", "run", "add", "abort", "reset", "config", "vary", "shorten", "fork", "rename"):
            assert client.post(f"/embed/{place}/{what}", data={"at": "0"}).status_code in (404, 405)
        for what in ("config", "share", "branches", "draft"):
            assert client.get(f"/embed/{place}/{what}").status_code == 404
    assert 'id="composer"' not in client.get(f"/embed{page}").text
    assert 'id="composer"' in client.get(page).text


def test_an_embed_of_a_session_follows_a_run(client: TestClient) -> None:
    page = new_session(client)
    assert client.get(f"/embed{page}/run").text == client.get(f"{page}/run").text
    assert client.get("/embed/story/watermark/run").status_code == 404


def test_no_cookie_is_given_or_needed(client: TestClient) -> None:
    page = new_session(client)
    client.cookies.clear()
    for path in (
        f"/embed{page}",
        f"/embed{page}/frame?at=3",
        f"/embed{page}/block/3",
        f"/embed{page}/why?about=usage&at=3",
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers


def test_an_error_in_a_frame_leads_out_of_it(client: TestClient) -> None:
    answer = client.get("/embed/story/nothing")
    assert answer.status_code == 404
    link = next(attributes for tag, attributes in tags_of(answer) if tag == "a")
    assert (link["href"], link["target"], link["rel"]) == ("../../", "_blank", "noopener")
