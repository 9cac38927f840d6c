"""A running server and a watched page."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser

from app import main
from app.services.links import encode
from app.settings import Settings
from engine.scenario import Scenario
from tests.browser.watched import Watched


@contextmanager
def serving(data: Path, port: int = 0, settings: Settings | None = None) -> Iterator[str]:
    """The address of the app over this database, served from a thread."""
    config = uvicorn.Config(
        main.create_app(replace(settings or Settings(), data=data)), host="127.0.0.1", port=port, log_level="warning"
    )
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
    assert not thread.is_alive(), "the server does not stop"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the app over an empty database."""
    with serving(tmp_path_factory.mktemp("data")) as address:
        yield address


@pytest.fixture
def view(browser: Browser, site: str) -> Iterator[Watched]:
    """A page at 1440 x 900. Whatever it did that it must not do fails the test."""
    context = browser.new_context(base_url=site, viewport={"width": 1440, "height": 900})
    watched = Watched(context.new_page(), site)
    yield watched
    watched.check()
    context.close()


@pytest.fixture
def look(browser: Browser, site: str) -> Iterator[Callable[[Scenario], Watched]]:
    """A watched page whose home is a scenario's permalink."""
    with ExitStack() as stack:

        def open_over(scenario: Scenario) -> Watched:
            context = browser.new_context(base_url=site, viewport={"width": 1440, "height": 900})
            stack.callback(context.close)
            watched = Watched(context.new_page(), site, home=f"/p/{encode(scenario, 0)}/")
            stack.callback(watched.check)
            return watched

        yield open_over
