"""Two branches side by side: where they part, in a sentence; what differs, marked."""

from __future__ import annotations

import json
import re

import pytest
from starlette.testclient import TestClient

from app.services.comparing import thinned
from tests.app.reading import new_session, tags_of, text_of

ADD = {"id": "A", "tokens": "20", "max_tokens": "2"}


def parting(client: TestClient, path: str) -> str:
    found = re.search(r'<span id="parting">(.*?)</span>', client.get(path).text)
    assert found
    return found[1]


def test_another_action(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"at": "5", **ADD})
    told = parting(client, f"{page}/compare?a=main&b=b2&at=9")
    assert told == "They part after 5 actions: main goes on with step 3, b2 with add_request A."
    assert "it ends here" in text_of(client.get(f"{page}/compare?a=main&b=b2&at=9"))
    assert "differs" not in [dict(attrs).get("class") for _, attrs in tags_of(client.get(f"{page}/compare?b=b2&at=5"))]


def test_the_same(client: TestClient) -> None:
    page = new_session(client)
    assert parting(client, f"{page}/compare") == "They do not differ: every action does the same in both."
    client.post(f"{page}/vary", data={"knob": "max_num_seqs", "value": "99"})
    assert parting(client, f"{page}/compare?b=b2") == "They do not differ: every action does the same in both."
    client.post(f"{page}/step", data={"at": "16"})
    assert parting(client, f"{page}/compare?b=b2").endswith("b2 ends after 16, main goes on.") or "goes on" in parting(
        client, f"{page}/compare?b=b2"
    )


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("watermark", "0.5", "R is refused in watermark 0.5, and not in the other."),
        ("block_size", "32", "main takes 9 blocks (1–9) from the free queue, block size 32 5 blocks (1–5)."),
        ("max_num_batched_tokens", "256", "schedules"),
    ],
)
def test_another_config(client: TestClient, knob: str, value: str, words: str) -> None:
    page = new_session(client)
    client.post(f"{page}/vary", data={"knob": knob, "value": value})
    assert words in parting(client, f"{page}/compare?a=main&b=b2&at=3")


def test_both_series_are_in_one_plot(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/vary", data={"knob": "watermark", "value": "0.5"})
    text = client.get(f"{page}/compare?a=main&b=b2&at=3").text
    found = re.search(r'id="series">(.*?)</script>', text)
    assert found
    data = json.loads(found[1])
    assert data["at"] == 3
    assert [side["name"] for side in data["sides"]] == ["main", "watermark 0.5"]
    assert all(len(side["usage"]["y"]) == 17 for side in data["sides"])


def test_what_is_not_there(client: TestClient) -> None:
    page = new_session(client)
    for path in (f"{page}/compare?b=b9", f"{page}/compare?a=b9", f"{page}/compare?at=99"):
        assert client.get(path).status_code == 409
    assert client.get("/s/unknown/compare").status_code == 404
    assert client.get(f"{page}/compare?at=x").status_code == 422


def test_a_long_series_keeps_its_extremes() -> None:
    values = [0.0] * 5_000
    values[1234], values[4321] = 1.0, -1.0
    series = thinned(values)
    assert len(series.at) <= 810
    assert (max(series.values), min(series.values)) == (1.0, -1.0)
    assert (series.at[0], series.at[-1]) == (0, 4_999)
