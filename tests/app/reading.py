"""Reads what a page or a frame says, as a browser would."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin

from httpx2 import Response
from starlette.testclient import TestClient

HTMX = {"HX-Request": "true"}
LESSON = "/story/one-call"


class _Text(HTMLParser):
    """The text of a document, scripts left out."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skip += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.parts.append(data)


def text_of(response: Response) -> str:
    """What a reader sees, white space made single."""
    parser = _Text()
    parser.feed(response.text)
    return " ".join(" ".join(parser.parts).split()).replace(" ,", ",").replace(" .", ".")


def tags_of(response: Response) -> list[tuple[str, dict[str, str | None]]]:
    """Every start tag with its attributes."""
    parser = _Text()
    parser.feed(response.text)
    return parser.tags


def area_of(response: Response, name: str = "text") -> str:
    """What stands in a field for lines of text, as a browser has it: without the line break behind its tag."""
    (found,) = re.findall(rf'<textarea [^>]*name="{name}"[^>]*>(.*?)</textarea>', response.text, re.DOTALL)
    return unescape(found).removeprefix("\n")


def figures_of(response: Response) -> dict[str, Any]:
    """The figures' data of a page or a frame."""
    found = re.findall(r'<script type="application/json" id="figures"[^>]*>(.*?)</script>', response.text, re.DOTALL)
    assert len(found) == 1
    data: dict[str, Any] = json.loads(found[0])
    return data


def new_session(client: TestClient, at: int = 15, kind: str = "step", **fields: str) -> str:
    """Make a session by acting on the first lesson; returns the path of its page."""
    answer = client.post(f"{LESSON}/{kind}", data={"branch": "main", "at": str(at), **fields})
    assert answer.status_code == 303, answer.text
    return landed(answer).partition("?")[0]


def link_in(page: Response, name: str) -> str | None:
    """Where the link with this id leads."""
    return next(attributes.get("href") for tag, attributes in tags_of(page) if attributes.get("id") == name)


def landed(answer: Response) -> str:
    """Where a redirect leads, below the root."""
    return urljoin(answer.request.url.path, answer.headers["location"])


def end_of(client: TestClient, page: str) -> int:
    """How many actions a session has."""
    at: int = figures_of(client.get(page))["at"]
    return at
