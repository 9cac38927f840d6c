"""A program over a fresh database: it sends no Origin and keeps no cookie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings

Json = dict[str, Any]
STEP: Json = {"do": "step"}
CONFIG: Json = {"num_blocks": 12, "max_num_batched_tokens": 256}


def add(name: str, tokens: int = 20, shared: int = 32, **more: object) -> Json:
    """A request that shares a prefix with all others."""
    prompt = [{"shared": "system", "tokens": shared}, {"tokens": tokens}]
    return {"do": "add_request", "id": name, "prompt": prompt, "max_tokens": 4, **more}


def scenario(*actions: Json, **config: object) -> Json:
    """A scenario on twelve blocks."""
    return {"version": 1, "title": "Small", "config": {**CONFIG, **config}, "actions": list(actions)}


class Api:
    """The API as a program sees it, and one session of its own."""

    def __init__(self, client: TestClient, *actions: Json, **config: object) -> None:
        self.client = client
        made = client.post("/api/sessions", json=scenario(*actions, **config))
        assert made.status_code == 201, made.text
        self.made: Json = made.json()
        self.path = f"/api/sessions/{self.made['id']}"
        self.headers = {"Authorization": f"Bearer {self.made['secret']}"}

    def get(self, what: str = "") -> Response:
        """Look at the session."""
        return self.client.get(f"{self.path}{what}")

    def act(self, *actions: Json, **place: object) -> Response:
        """Act on the session."""
        return self.client.post(f"{self.path}/actions", json={"actions": list(actions), **place}, headers=self.headers)

    @property
    def end(self) -> int:
        """How many actions its branch main has."""
        return len(self.get().json()["actions"])


def error_of(answer: Response) -> tuple[int, str, str]:
    """Status, code and place of an error, which has the one shape."""
    assert answer.headers["content-type"] == "application/json"
    (shape,) = answer.json().items()
    assert shape[0] == "error"
    assert list(shape[1]) == ["code", "message", "where", "expected"]
    assert all(isinstance(value, str) for value in shape[1].values())
    return answer.status_code, shape[1]["code"], shape[1]["where"]


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with program(settings) as client:
        yield client


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data")


def program(settings: Settings) -> TestClient:
    """A new program at a new server over the database of `settings`."""
    return TestClient(create_app(settings), follow_redirects=False)
