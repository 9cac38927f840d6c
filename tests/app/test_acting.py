"""Acting: who may, what is appended, what only moves, and that nothing is lost."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from starlette.testclient import TestClient

from app.settings import Settings
from app.store import Store
from tests.app.conftest import browser
from tests.app.reading import HTMX, end_of, figures_of, landed, new_session, text_of


def test_looking_stores_nothing(client: TestClient, settings: Settings) -> None:
    for path in (
        "/",
        "/story/one-call?at=15",
        "/story/one-call/frame?at=3&from=2",
        "/story/one-call/block/7?at=9",
        "/story/one-call/branches",
        "/healthz",
        "/nothing",
        "/s/unknown",
    ):
        client.get(path)
    assert Store(settings.data).count() == (0, 0)


def test_moving_over_recorded_actions_of_the_builtin_stores_nothing(client: TestClient, settings: Settings) -> None:
    answer = client.post("/story/one-call/step", data={"branch": "main", "at": "3"})
    assert (answer.status_code, answer.headers["location"]) == (303, "../../story/one-call?branch=main&at=4")
    assert "set-cookie" not in answer.headers
    assert Store(settings.data).count() == (0, 0)


def test_the_first_action_makes_a_session(client: TestClient, settings: Settings) -> None:
    answer = client.post("/story/one-call/step", data={"branch": "main", "at": "15"})
    assert answer.status_code == 303
    page = landed(answer)
    assert page.startswith("/s/")
    assert page.endswith("?branch=main&at=16")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Path={page.partition('?')[0]}" in cookie
    assert "Secure" not in cookie
    assert Store(settings.data).count() == (1, 16)
    assert figures_of(client.get(page))["at"] == 16


def test_htmx_gets_a_frame_and_the_new_address(client: TestClient) -> None:
    answer = client.post("/story/one-call/step", data={"branch": "main", "at": "15"}, headers=HTMX)
    assert answer.status_code == 200
    assert figures_of(answer)["from"] == 15
    assert answer.headers["hx-push-url"].startswith("../s/")
    page = answer.headers["hx-push-url"].partition("?")[0].removeprefix("..")
    again = client.post(f"{page}/step", data={"branch": "main", "at": "16"}, headers=HTMX)
    assert (again.status_code, again.headers["hx-push-url"]) == (200, "?branch=main&at=17")
    assert f'action="{page.removeprefix("/s/")}/run"' in again.text


def test_a_double_click_appends_once(client: TestClient) -> None:
    page = new_session(client)
    for _ in range(2):
        answer = client.post(f"{page}/add", data={"at": "16", "id": "A", "tokens": "20", "max_tokens": "2"})
        assert answer.headers["location"].endswith("?branch=main&at=17")
    assert end_of(client, page) == 17
    for _ in range(2):
        answer = client.post(f"{page}/step", data={"at": "17"})
        assert answer.headers["location"].endswith("?branch=main&at=18")
    assert end_of(client, page) == 18


def test_a_second_tab_that_is_behind_makes_a_branch(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/step", data={"at": "16"})
    behind = client.post(f"{page}/add", data={"at": "16", "id": "A", "tokens": "20", "max_tokens": "2"})
    assert behind.headers["location"].endswith("?branch=b2&at=17&left=main")
    assert end_of(client, page) == 17
    assert figures_of(client.get(f"{page}?branch=b2"))["requests"][-1] == "A"


def test_moments_that_are_not_there(client: TestClient) -> None:
    page = new_session(client)
    for path in (f"{page}?at=17", f"{page}?branch=other", f"{page}/frame?at=99", "/story/one-call?at=16"):
        answer = client.get(path)
        assert answer.status_code == 409
        assert "href=" in answer.text
    for data in ({"at": "17"}, {"at": "16", "branch": "other"}):
        assert client.post(f"{page}/step", data=data).status_code == 409
    assert client.get(f"{page}?at=x").status_code == 422
    assert client.get(f"{page}?at=-1").status_code == 422
    assert client.get("/s/unknown").status_code == 404
    assert client.get(f"{page}/block/101").status_code == 404


def test_a_moment_that_is_not_there_shows_the_way_to_one_that_is(client: TestClient) -> None:
    page = new_session(client)
    ways = {
        f"{page}?at=999": (page, "Go to the end of this session"),
        "/story/one-call?at=16": ("/story/one-call", "Open it at its beginning"),
        "/story/one-call/frame?at=16": ("/story/one-call", "Open it at its beginning"),
        "/embed/story/one-call?at=16": ("/embed/story/one-call", "Open it at its beginning"),
    }
    for path, way in ways.items():
        found = re.search(r'<a class="button" href="([^"]+)"[^>]*>([^<]+)</a>', client.get(path).text)
        assert found is not None
        assert (urljoin(path, found[1]), found[2]) == way


def test_only_the_owner_acts(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    with browser(settings) as stranger:
        assert figures_of(stranger.get(page))["at"] == 16
        for kind in ("step", "run", "add", "abort", "reset"):
            answer = stranger.post(f"{page}/{kind}", data={"at": "16"})
            assert answer.status_code == 403
            assert "Your browser sent none; you can look." in text_of(answer)
    assert end_of(client, page) == 16


def test_the_secret_as_a_bearer_token(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    (secret,) = [cookie.value for cookie in client.cookies.jar]
    with browser(settings) as program:
        right = {"Authorization": f"Bearer {secret}", "Accept": "application/json"}
        answer = program.post(f"{page}/step", json={"at": 16}, headers=right)
        assert answer.json() == {"session": page.removeprefix("/s/"), "branch": "main", "at": 17, "end": 17}
        assert program.post(f"{page}/step", json={}, headers={"Authorization": "Bearer wrong"}).status_code == 403


def test_a_restart_gives_the_same_page(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    client.post(
        f"{page}/add",
        data={"at": "16", "id": "A", "tokens": "20", "shared": "system", "shared_tokens": "64", "max_tokens": "2"},
    )
    client.post(f"{page}/run", data={"at": "17"})
    before = [client.get(f"{page}?at={at}").text for at in (3, 16, 17, 25)]
    card = client.get(f"{page}/block/67").text
    with browser(settings) as again:
        again.cookies = client.cookies
        assert [again.get(f"{page}?at={at}").text for at in (3, 16, 17, 25)] == before
        assert again.get(f"{page}/block/67").text == card
        assert again.post(f"{page}/step", data={"at": "25"}).status_code == 303


def test_run_goes_on_until_no_request_is_left(client: TestClient) -> None:
    answer = client.post("/story/one-call/run", data={"at": "0"})
    page = landed(answer)
    assert "-nothing_left" in page
    words = text_of(client.get(page))
    assert "No request is left." in words
    data = figures_of(client.get(page))
    assert (data["queue"]["free"], data["tables"]) == (100, [])
    again = client.post(page.partition("?")[0] + "/run", data={"at": str(data["at"])}, headers=HTMX)
    assert "No step was run. No request is left." in text_of(again)


def test_run_stops_when_a_request_can_never_fit(client: TestClient) -> None:
    page = new_session(client, kind="add", id="huge", tokens="2000", max_tokens="2")
    answer = client.post(f"{page}/run", data={"at": "16"}, headers=HTMX)
    words = text_of(answer)
    assert "huge can never fit: not even all 100 usable blocks would be enough." in words
    end = end_of(client, page)
    client.post(f"{page}/run", data={"at": str(end)})
    assert end_of(client, page) == end


def test_run_takes_a_thousand_steps_at_the_most(client: TestClient) -> None:
    page = new_session(client, kind="add", id="long", tokens="5", max_tokens="3000")
    client.post(f"{page}/run", data={"at": "16"})
    assert end_of(client, page) == 1016


def test_abort_now_and_while_a_step_runs(client: TestClient) -> None:
    page = new_session(client, kind="abort", id="second")
    assert "second was aborted." in text_of(client.get(f"{page}?at=16"))
    client.post(f"{page}/abort", data={"at": "16", "id": "R", "during": "step"})
    words = text_of(client.get(f"{page}?at=17"))
    assert "R was aborted." in words
    assert "Scheduled" in words
    unknown = client.post(f"{page}/abort", data={"at": "17", "id": "nobody"}, headers=HTMX)
    assert unknown.status_code == 422
    assert "No living request is called" in text_of(unknown)
    assert end_of(client, page) == 17


def test_reset_is_refused_while_blocks_are_held(client: TestClient) -> None:
    page = new_session(client, kind="reset")
    assert "The reset is refused: blocks are held." in text_of(client.get(page))
    client.post(f"{page}/reset", data={"at": "16", "reset_running_requests": "on"})
    data = figures_of(client.get(page))
    assert (data["blocks"]["cached"], data["hashes"]["total"], data["queue"]["free"]) == (0, 0, 100)
    assert "Every hash is forgotten." in text_of(client.get(page))


def test_unloaded_sessions_come_back(settings: Settings) -> None:
    small = Settings(data=settings.data, sessions_loaded=1)
    with browser(small) as client:
        pages = [new_session(client) for _ in range(3)]
        for page in pages * 2:
            at = end_of(client, page)
            assert client.post(f"{page}/step", data={"at": str(at)}).status_code == 303
        assert [end_of(client, page) for page in pages] == [18, 18, 18]
