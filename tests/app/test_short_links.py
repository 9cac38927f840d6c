"""Short links: made by a POST from this page, one for each permalink, and no more than there may be."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from httpx2 import ASGITransport, AsyncClient
from starlette.testclient import TestClient

from app.main import create_app
from app.services.errors import BadValueError, UnavailableError
from app.services.links import encode
from app.services.short_links import MAX_CODE, known_key, shorten
from app.settings import Settings
from app.store import FILE, StaleError, Store, StoreError
from tests.app.conftest import ORIGIN, browser
from tests.app.reading import HTMX, figures_of, landed, new_session, text_of
from tests.app.test_permalinks import SMALL

ASKS = {"Accept": "application/json"}
STORY = "/story/watermark"


def made(client: TestClient, at: int = 7, sel: str = "request:cy", page: str = STORY) -> dict[str, str]:
    answer = client.post(f"{page}/shorten", data={"at": str(at), "sel": sel}, headers=ASKS)
    assert answer.status_code == 201, answer.text
    told: dict[str, str] = answer.json()
    return told


def test_it_shows_what_was_shortened(client: TestClient, settings: Settings) -> None:
    told = made(client)
    assert re.fullmatch(r"[a-z2-9]{8}", told["key"])
    assert told["url"] == f"http://testserver/l/{told['key']}"
    page = client.get(f"/l/{told['key']}")
    assert figures_of(page)["at"] == 7
    assert 'data-select="request:cy"' in page.text
    assert "The watermark" in text_of(page)
    assert figures_of(client.get(f"/l/{told['key']}?at=3"))["at"] == 3
    assert figures_of(client.get(f"/l/{told['key']}/frame?at=4"))["at"] == 4
    assert figures_of(client.get(f"/embed/l/{told['key']}"))["at"] == 7
    assert Store(settings.data).count() == (0, 0)


def test_the_same_moment_has_one_link_and_another_moment_another(client: TestClient, settings: Settings) -> None:
    first = made(client)
    assert made(client) == first
    assert made(client, 8)["key"] != first["key"]
    assert made(client, 7, "block:3")["key"] != first["key"]
    assert Store(settings.data).count_links() == 3


def test_it_survives_a_restart_and_the_end_of_its_session(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    key = made(client, 16, "", page)["key"]
    with browser(settings) as again:
        assert figures_of(again.get(f"/l/{key}"))["at"] == 16
        acted = again.post(f"/l/{key}/step", data={"at": "16"})
        assert landed(acted).startswith("/s/")
        assert figures_of(again.get(f"/l/{key}"))["at"] == 16


def test_a_form_and_htmx_get_the_links_with_the_new_one(client: TestClient) -> None:
    answer = client.post(f"{STORY}/shorten", data={"branch": "main", "at": "7", "sel": "block:4"})
    assert (answer.status_code, landed(answer)) == (303, f"{STORY}/share?branch=main&at=7&sel=block%3A4")
    key = made(client, 7, "block:4")["key"]
    assert f"http://testserver/l/{key}" in client.get(landed(answer)).text
    fragment = client.post(f"{STORY}/shorten", data={"branch": "main", "at": "7", "sel": "block:4"}, headers=HTMX)
    assert f"http://testserver/l/{key}" in fragment.text
    assert "<html" not in fragment.text


def test_whoever_may_only_look_can_share(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    with browser(settings) as stranger:
        assert made(stranger, 16, "", page)["key"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
def test_another_site_cannot_make_one(client: TestClient, settings: Settings, origin: str | None) -> None:
    headers = {"Origin": origin} if origin else {"Sec-Fetch-Site": "cross-site"}
    assert client.post(f"{STORY}/shorten", data={"at": "7"}, headers=headers).status_code == 403
    assert client.get(f"{STORY}/shorten?at=7").status_code == 405
    assert client.post(f"/embed{STORY}/shorten", data={"at": "7"}).status_code == 404
    assert Store(settings.data).count_links() == 0


def test_an_unknown_one_has_a_kind_page(client: TestClient) -> None:
    for path in ("/l/abcdefgh", "/embed/l/abcdefgh", "/l/abcdefgh/share", "/l/<b>"):
        answer = client.get(path)
        words = text_of(answer)
        assert answer.status_code == 404
        assert "This link leads nowhere" in words
        assert "Nobody has made a short link of this name, or it was mistyped." in words
        assert "<b>" not in answer.text
    told = client.get("/l/abcdefgh", headers=ASKS).json()["error"]
    assert told["code"] == "unknown_link"


def test_a_moment_that_is_not_there_has_no_link(client: TestClient, settings: Settings) -> None:
    for fields, status in (({"at": "11"}, 409), ({"at": "x"}, 422), ({"branch": "b9"}, 409), ({"sel": "x" * 301}, 422)):
        assert client.post(f"{STORY}/shorten", data={"at": "1", **fields}, headers=ASKS).status_code == status
    assert Store(settings.data).count_links() == 0


def test_there_are_no_more_than_there_may_be(tmp_path: Path) -> None:
    with browser(Settings(data=tmp_path, links=2)) as client:
        keys = [made(client, at)["key"] for at in (1, 2)]
        answer = client.post(f"{STORY}/shorten", data={"at": "3"}, headers=ASKS)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "full")
        assert made(client, 2, "request:cy")["key"] == keys[1]
        page = client.post(f"{STORY}/shorten", data={"at": "3"}, headers=HTMX)
        assert page.status_code == 503
        assert "The permalink works without it." in text_of(page)
        assert "share-permalink" in page.text


def test_a_code_that_is_too_long_is_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(BadValueError, match="too many to be kept"):
        shorten(store, "1" * (MAX_CODE + 1), 10)
    assert store.count_links() == 0


def test_two_that_shorten_the_same_at_once_get_one_link(settings: Settings) -> None:
    async def ask() -> list[str]:
        transport = ASGITransport(create_app(settings))
        async with AsyncClient(transport=transport, base_url=ORIGIN, headers={"Origin": ORIGIN, **ASKS}) as client:
            answers = await asyncio.gather(*[client.post(f"{STORY}/shorten", data={"at": "7"}) for _ in range(8)])
        return [answer.json()["key"] for answer in answers]

    assert len(set(asyncio.run(ask()))) == 1
    assert Store(settings.data).count_links() == 1


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    code = encode(SMALL, 1)

    def full(*_: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(store, "add_link", full)
    with pytest.raises(UnavailableError, match="could not be stored"):
        shorten(store, code, 10)
    assert known_key(store, code) is None


def test_the_store_keeps_a_code_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add_link("a", b"1", "code")
    for key, sha in (("a", b"2"), ("b", b"1")):
        with pytest.raises(StaleError):
            store.add_link(key, sha, "code")
    assert (store.link("a"), store.link("b"), store.count_links()) == ("code", None, 1)
    assert (tmp_path / FILE).exists()
