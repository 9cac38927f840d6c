"""Headers, origins, limits, escaping: what holds for every address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from tests.app.conftest import ORIGIN, browser
from tests.app.reading import HTMX, end_of, figures_of, new_session, tags_of, text_of

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'<!--\u2028"
CSP = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/healthz",
        "/nothing",
        "/story/one-call/frame?at=2",
        "/story/one-call/block/3",
        "/s/unknown",
        "/story/one-call?at=x",
        "/story/one-call/step",
    ],
)
def test_every_answer_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == CSP
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_nothing_comes_from_another_host_and_nothing_is_inline(client: TestClient) -> None:
    for path in ("/story/one-call?at=6", "/story/one-call/block/3?at=6", "/nothing"):
        for tag, attributes in tags_of(client.get(path)):
            for name, value in attributes.items():
                assert not name.startswith("on"), (tag, name)
                if name in ("src", "href", "action", "hx-get", "hx-post"):
                    assert not re.match(r"[a-z]+:|//|/", value or ""), (tag, value)
            if tag == "script":
                assert attributes.get("src") or attributes.get("type") == "application/json"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://testserver.evil.example"}, 403),
        ({"Origin": "http://[bad"}, 403),
        ({"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"}, 403),
        ({"Referer": "http://evil.example/s/x"}, 403),
        ({"Referer": f"{ORIGIN}/s/x"}, 303),
        ({"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}, 303),
        ({}, 403),
    ],
)
def test_acting_with_a_cookie_needs_this_origin(client: TestClient, headers: dict[str, str], status: int) -> None:
    page = new_session(client)
    del client.headers["Origin"]
    answer = client.post(f"{page}/step", data={"at": "16"}, headers=headers)
    assert answer.status_code == status
    assert end_of(client, page) == (17 if status == 303 else 16)


def test_without_cookie_and_origin_a_program_may_post(client: TestClient) -> None:
    del client.headers["Origin"]
    assert client.post("/story/one-call/step", data={"at": "3"}).status_code == 303


def test_the_cookie_goes_to_one_session_only(client: TestClient) -> None:
    first, second = new_session(client), new_session(client)
    assert client.post(f"{first}/step", data={"at": "16"}).status_code == 303
    assert client.post(f"{second}/step", data={"at": "16"}).status_code == 303
    assert {cookie.path for cookie in client.cookies.jar} == {first, second}


def test_a_large_body_is_refused_before_it_is_read(client: TestClient) -> None:
    answer = client.post("/story/one-call/add", content=b"x" * 10_000_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "body_too_large"
    assert answer.json()["error"]["expected"] == "at most 2000000 bytes"


def test_a_large_chunked_body_is_refused(client: TestClient) -> None:
    sent = []

    def chunks() -> Iterator[bytes]:
        for place in range(200):
            sent.append(place)
            yield b"a=" + b"x" * 100_000 + b"&"

    for kind in ("application/x-www-form-urlencoded", "application/json"):
        answer = client.post(
            "/story/one-call/add", content=chunks(), headers={"Content-Type": kind, "Accept": "application/json"}
        )
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "body_too_large"


def test_too_many_fields_are_refused(client: TestClient) -> None:
    answer = client.post(
        "/story/one-call/add", data={f"f{place}": "x" for place in range(2000)}, headers={"Accept": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")


def test_hostile_ids_are_escaped_everywhere(client: TestClient) -> None:
    page = new_session(client, kind="add", id=HOSTILE, tokens="20", max_tokens="3", cache_salt=HOSTILE, lora=HOSTILE)
    client.post(f"{page}/abort", data={"at": "16", "id": "second"})
    client.post(f"{page}/run", data={"at": "17"})
    end = end_of(client, page)
    for at in range(15, end + 1):
        for path in (f"{page}?at={at}", f"{page}/frame?at={at}&from={at - 1}"):
            answer = client.get(path)
            assert "<img src=x" not in answer.text
            assert "onerror=alert(1)&gt;" in answer.text or HOSTILE[:13] not in answer.text
            assert ("img", {"src": "x", "onerror": "alert(1)"}) not in tags_of(answer)
            figures_of(answer)
    for block in range(101):
        assert "<img src=x" not in client.get(f"{page}/block/{block}").text
    assert HOSTILE.split()[0] in text_of(client.get(f"{page}?at=16"))


def test_hostile_values_come_back_escaped(client: TestClient) -> None:
    for headers in ({}, HTMX):
        fields = dict.fromkeys(("id", "tokens", "max_tokens", "shared", "priority", "accept", "branch"), HOSTILE)
        answer = client.post("/story/one-call/add", data={"at": "15", **fields}, headers=headers)
        assert answer.status_code in (409, 422)
        assert "<img src=x" not in answer.text
    for path in (
        f"/s/{HOSTILE}",
        f"/story/one-call?at={HOSTILE}",
        f"/story/one-call?branch={HOSTILE}",
        f"/story/one-call/block/{HOSTILE}",
        f"/story/one-call?ran={HOSTILE}",
    ):
        assert "<img src=x" not in client.get(path).text


def test_static_files_are_kept_for_ever_under_their_version(client: TestClient) -> None:
    urls = [attributes["href"] for tag, attributes in tags_of(client.get("/story/one-call")) if tag == "link"]
    url = next(url for url in urls if url and url.endswith("tokens.css"))
    answer = client.get(f"/{url}")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert client.get(f"/{url}", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert client.get("/static/old/tokens.css").headers["cache-control"] == "no-cache"
    for path in (
        "/static/x/../../main.py",
        "/static/x/%2e%2e/%2e%2e/main.py",
        "/static/tokens.css",
        "/static/x/.hidden",
        "/static/",
    ):
        assert client.get(path).status_code == 404


def test_answers_are_compressed(client: TestClient) -> None:
    for name in ("zstd", "br", "gzip"):
        assert client.get("/story/one-call?at=6", headers={"Accept-Encoding": name}).headers["content-encoding"] == name


def test_secure_cookie_behind_https(settings: Settings) -> None:
    with browser(Settings(data=settings.data, public_url="https://pool.example")) as client:
        answer = client.post("/story/one-call/step", data={"at": "15"}, headers={"Origin": "https://pool.example"})
        assert "Secure" in answer.headers["set-cookie"]


def test_errors_have_one_shape(client: TestClient) -> None:
    asks = {"Accept": "application/json"}
    page = new_session(client)
    cases = [
        (client.get("/nothing", headers=asks), 404, "not_found"),
        (client.put("/story/one-call/step", headers=asks), 405, "method_not_allowed"),
        (client.post("/story/one-call", headers=asks), 405, "method_not_allowed"),
        (client.get("/s/unknown", headers=asks), 404, "unknown_session"),
        (client.get("/story/one-call?at=99", headers=asks), 409, "stale"),
        (client.get("/story/one-call?at=x", headers=asks), 422, "invalid"),
        (client.post(f"{page}/add", data={"at": "3"}, headers=asks), 422, "invalid"),
        (client.post(f"{page}/reset", data={"at": "30"}, headers=asks), 409, "stale"),
        (client.post("/s/unknown/step", headers=asks), 404, "unknown_session"),
    ]
    for answer, status, code in cases:
        assert answer.status_code == status
        assert set(answer.json()) == {"error"}
        assert set(answer.json()["error"]) == {"code", "message", "where", "expected"}
        assert answer.json()["error"]["code"] == code
    assert "Allow" in client.put("/story/one-call/step").headers


def test_a_mistake_of_ours_shows_no_stack_trace(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(settings)
    monkeypatch.setattr("app.routes.pages.frame", lambda *_, **__: json.loads("{"))
    quiet = TestClient(client.app, raise_server_exceptions=False)
    for headers in ({}, {"Accept": "application/json"}):
        answer = quiet.get("/story/one-call", headers=headers)
        assert answer.status_code == 500
        assert "Traceback" not in answer.text
        assert "json" not in text_of(answer).lower()
        assert answer.headers["content-security-policy"] == CSP
