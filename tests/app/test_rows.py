"""Of many requests the first rows are told; all of them to whoever asks, for as long as he asks."""

from __future__ import annotations

import re

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.rendering.requests import FIRST_ROWS
from app.services.links import encode
from engine.actions import AddRequest, Step
from engine.config import EngineConfig
from engine.scenario import Scenario
from engine.tokens import Own
from tests.app.reading import HTMX, tags_of, text_of

MANY = FIRST_ROWS + 25


@pytest.fixture
def page() -> str:
    """65 requests run after the last step, and wait before the first one."""
    adds = [AddRequest(f"r{i}", (Own(4),), 9) for i in range(MANY)]
    config = EngineConfig(400, block_size=4, max_num_batched_tokens=4096)
    return f"/p/{encode(Scenario(1, '', config, (*adds, Step(), Step())), MANY + 2)}"


def rows(answer: Response) -> list[int]:
    """The numbers of the requests that have a row, in order."""
    return [int(number) for number in re.findall(r'<li class="row [^>]*data-request="(\d+)"', answer.text)]


def link(answer: Response, rows: str) -> dict[str, str | None]:
    """The link that asks for all rows, or for fewer."""
    return next(tag for name, tag in tags_of(answer) if name == "a" and tag.get("data-rows") == rows)


def test_the_first_rows_and_the_way_to_all(client: TestClient, page: str) -> None:
    for answer in (client.get(f"{page}/"), client.get(f"{page}/frame?at={MANY + 1}&from={MANY}", headers=HTMX)):
        assert rows(answer) == list(range(FIRST_ROWS))
        assert "and 25 more" in text_of(answer)
    more = link(client.get(f"{page}/"), "all")
    assert more["href"] == f"?branch=main&at={MANY + 2}&rows=all"
    assert str(more["hx-get"]).endswith(f"frame?branch=main&at={MANY + 2}&rows=all&from={MANY + 2}")


@pytest.mark.parametrize("at", [MANY, MANY + 2])
def test_all_rows_and_the_way_back(client: TestClient, page: str, at: int) -> None:
    for path in (f"{page}/?at={at}&rows=all", f"{page}/frame?at={at}&rows=all"):
        answer = client.get(path)
        assert rows(answer) == list(range(MANY))
        assert link(answer, "")["href"] == f"?branch=main&at={at}"
    acted = client.post(f"{page}/step?rows=all", data={"at": str(at)}, headers=HTMX)
    assert rows(acted) == list(range(MANY))


def test_few_requests_have_no_such_links(client: TestClient) -> None:
    for path in ("/story/one-call?at=6", "/story/one-call?at=6&rows=all", "/story/one-call?at=6&rows=x"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert not [tag for _, tag in tags_of(answer) if "data-rows" in tag]
