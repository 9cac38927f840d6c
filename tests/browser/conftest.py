"""A running server and a watched page."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser

from app.main import create_app
from app.settings import Settings
from tests.browser.watched import Watched


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app, served from a thread over an empty database."""
    data: Path = tmp_path_factory.mktemp("data")
    config = uvicorn.Config(create_app(Settings(data=data)), host="127.0.0.1", port=0, log_level="warning")
    server = uvicorn.Server(config)
    started = threading.Event()
    original = server.startup

    async def startup(sockets: object = None) -> None:
        await original(sockets=None)
        started.set()

    server.startup = startup  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(20), "the server does not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture
def view(browser: Browser, site: str) -> Iterator[Watched]:
    """A page at 1440 x 900. Whatever it did that it must not do fails the test."""
    context = browser.new_context(base_url=site, viewport={"width": 1440, "height": 900})
    watched = Watched(context.new_page(), site)
    yield watched
    watched.check()
    context.close()
