"""A client over a fresh database, as a browser on the page is: it says where its requests come from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings

ORIGIN = "http://testserver"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with browser(settings) as client:
        yield client


def browser(settings: Settings) -> TestClient:
    """A new browser on a new server over the database of `settings`."""
    return TestClient(create_app(settings), headers={"Origin": ORIGIN}, follow_redirects=False)
