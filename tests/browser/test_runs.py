"""Runs that take long: the page follows them, wherever it looks meanwhile."""

import re
from collections.abc import Callable, Iterator
from threading import Event

import pytest
from playwright.sync_api import Browser, expect

from app.services import runs
from app.services.links import encode
from app.services.running import Run, run_slice
from app.services.session import Branch
from app.settings import Settings
from engine.scenario import Limits
from tests.browser.conftest import serving
from tests.browser.scenarios import scenario
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

ADDS = 24
MOST = 1_000
RUNNING = re.compile(f"Running until no request is left: [0-9]+ steps of at most {MOST} so far")
PROGRESS = re.compile(r"/run\?")


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on which runs stop after many steps."""
    with serving(tmp_path_factory.mktemp("long"), settings=Settings(steps_a_call=MOST)) as address:
        yield address


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Until it is set a run goes on by a step at a time, too slowly to end before a test has looked at it."""
    event = Event()

    def paced(branch: Branch, run: Run, limits: Limits) -> None:
        if event.wait(0.02):
            return run_slice(branch, run, limits)
        run.spent = runs.PATIENCE
        return run_slice(branch, run, limits, seconds=1e-5)

    monkeypatch.setattr(runs, "run_slice", paced)
    yield event
    event.set()


@pytest.fixture
def run(browser: Browser, long_site: str, let_go: Event) -> Iterator[Callable[[], Watched]]:
    """A session in which a long run is under way; told how it gets on at the moment it was answered at."""
    context = browser.new_context(base_url=long_site, viewport={"width": 1440, "height": 900})
    view = Watched(context.new_page(), long_site)

    def begin() -> Watched:
        prompt = {"tokens": 2}
        adds = [{"do": "add_request", "id": f"l{n}", "prompt": prompt, "max_tokens": 3000} for n in range(ADDS)]
        config = {"num_blocks": 9000, "max_model_len": 100_000}
        crowd = scenario({"version": 1, "title": "long", "config": config, "actions": adds})
        view.open(f"/p/{encode(crowd, ADDS)}/", ADDS)
        view.page.click("#go-run")
        expect(view.page.locator("#notice")).to_contain_text(RUNNING)
        return view

    yield begin
    let_go.set()
    view.check()
    context.close()


def test_a_page_that_is_loaded_again_follows_the_run_to_its_end(run: Callable[[], Watched], let_go: Event) -> None:
    view = run()
    view.page.reload()
    expect(view.page.locator("#notice")).to_contain_text(RUNNING)
    let_go.set()
    expect(view.page.locator("#notice")).to_contain_text(f"Ran {MOST} steps.", timeout=60_000)
    view.wait(ADDS + MOST)
    expect(view.page.locator("#time-where b")).to_have_text(f"after {ADDS + MOST} of {ADDS + MOST}")


def test_the_end_of_the_time_line_grows_with_the_run(run: Callable[[], Watched]) -> None:
    view = run()
    line = view.page.locator("#time-where b")
    first = int(line.inner_text().split()[1])
    expect(line).not_to_have_text(f"after {first} of {first}")
    assert line.inner_text().startswith(f"after {first} of ")
    assert int(view.page.get_attribute("#scrub", "max") or 0) > first
    view.page.click("#run-stop")
    expect(view.page.locator("#notice")).to_contain_text("Then it was stopped.")


def test_looking_elsewhere_meanwhile_keeps_the_run_in_view_and_stays_there(
    run: Callable[[], Watched], let_go: Event
) -> None:
    view = run()
    view.click("#go-first", 0)
    expect(view.page.locator("#notice")).to_contain_text(RUNNING)
    expect(view.page.locator("#run-stop")).to_be_visible()
    view.click("#go-step", 1)
    expect(view.page.locator("#run-stop")).to_be_visible()
    let_go.set()
    expect(view.page.locator("#notice")).to_contain_text(f"Ran {MOST} steps.", timeout=60_000)
    expect(view.page.locator("#time-where b")).to_have_text(f"after 1 of {ADDS + MOST}")
    view.click("#notice >> text=Go to the end", ADDS + MOST)


def test_a_run_that_ends_just_as_one_looks_elsewhere_still_tells_how(run: Callable[[], Watched], let_go: Event) -> None:
    view = run()
    page = view.page
    page.route(PROGRESS, lambda route: route.continue_() if "at=0" in route.request.url else None)
    with page.expect_request(PROGRESS):
        pass  # it is never answered
    let_go.set()
    progress = view.page.url.partition("?")[0] + "/run"
    headers = {"Accept": "application/json"}
    while not page.request.get(progress, headers=headers).json()["why"]:
        pass
    view.click("#go-first", 0)
    expect(page.locator("#notice")).to_contain_text(f"Ran {MOST} steps.")
    expect(page.locator("#time-where b")).to_have_text(f"after 0 of {ADDS + MOST}")


def test_a_branch_made_meanwhile_shows_the_run_and_can_stop_it(run: Callable[[], Watched]) -> None:
    view = run()
    view.page.fill("#add-id", "mine")
    view.page.fill("#add-tokens", "2")
    view.page.click("#add-send")
    notice = view.page.locator("#notice")
    expect(notice).to_contain_text("This is b2 now")
    expect(notice).to_contain_text(re.compile("main runs on: [0-9]+ steps of at most"))
    expect(view.page.locator("#go-branches")).to_have_text("b2")
    at = view.model()["at"]
    view.page.click("#run-stop")
    expect(notice).to_contain_text(re.compile("main: Ran [0-9]+ steps. Then it was stopped."))
    expect(view.page.locator("#time-where b")).to_have_text(f"after {at} of {at}")
    view.page.click("#notice >> text=Go to the end of main")
    view.moved(at)
    expect(view.page.locator("#go-branches")).to_have_text("main")


def test_who_may_only_look_sees_the_run(run: Callable[[], Watched], browser: Browser, long_site: str) -> None:
    """Whoever looks only sees how it gets on, and has nothing to stop it with."""
    view = run()
    context = browser.new_context(base_url=long_site)
    other = Watched(context.new_page(), long_site)
    other.open(view.page.url)
    expect(other.page.locator("#notice")).to_contain_text(RUNNING)
    expect(other.page.locator("#run-stop")).to_be_hidden()
    view.page.click("#run-stop")
    expect(other.page.locator("#notice")).to_contain_text("Then it was stopped.")
    other.check()
    context.close()
