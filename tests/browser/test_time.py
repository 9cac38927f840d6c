"""Time on the page: scrubbing, running until, stopping, playing, keys."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route, expect

from app.services.links import encode
from app.settings import Settings
from tests.browser.conftest import serving
from tests.browser.scenarios import scenario
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15


def where(view: Watched) -> str:
    return view.page.locator("#time-where b").inner_text()


def test_scrubbing_by_hand_goes_where_the_hand_goes(view: Watched) -> None:
    view.open("/story/one-call", 0)
    box = view.page.locator("#scrub").bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    mouse = view.page.mouse
    mouse.move(box["x"] + 8, middle)
    mouse.down()
    for share in (0.2, 0.5, 0.8):
        mouse.move(box["x"] + 8 + share * (box["width"] - 16), middle)
    view.wait(12)
    assert where(view) == "after 12 of 15"
    mouse.move(box["x"] + 8 + 0.4 * (box["width"] - 16), middle)
    mouse.up()
    view.wait(6)
    expect(view.page).to_have_url(re.compile(r"\?branch=main&at=6$"))
    expect(view.page.locator("#scrub")).to_have_value("6")
    scrubbed = view.model()
    view.open("/story/one-call?at=6", 6)
    assert view.model() == scrubbed


def test_the_range_is_a_slider_for_keys_too(view: Watched) -> None:
    view.open("/story/one-call", 0)
    view.page.focus("#scrub")
    view.press("ArrowRight", 1)
    view.press("ArrowRight", 2)
    view.press("End", END)
    view.press("ArrowLeft", END - 1)
    expect(view.page.locator("#scrub")).to_be_focused()
    expect(view.page.locator("#scrub")).to_have_attribute("aria-valuetext", re.compile("after 14 of 15: "))


def test_pointing_at_a_stop_tells_what_it_is(view: Watched) -> None:
    view.open("/story/one-call", 0)
    box = view.page.locator("#scrub").bounding_box()
    assert box
    view.page.mouse.move(box["x"] + 8 + 2 / END * (box["width"] - 16), box["y"] + 12)
    expect(view.page.locator(".stop.pointed .under")).to_be_visible()
    expect(view.page.locator(".stop.pointed a")).to_have_id("stop-2")


def test_run_until_over_what_is_recorded_and_behind_it(view: Watched) -> None:
    view.open("/story/one-call", 0)
    view.page.click("#go-until")
    refuse = view.page.locator("[data-until=refuse]")
    expect(refuse.locator(".to")).to_have_text("step 11 second")
    expect(view.page.locator("[data-until=preempt] .to")).to_have_text("not yet: runs on")
    expect(view.page.locator("[data-until=idle] .to b")).to_have_text("here")
    refuse.hover()
    target = view.page.locator("#until-target")
    expect(target).to_have_attribute("data-label", "step 11, 15 on")
    stop, ring = view.page.locator("#stop-15").bounding_box(), target.bounding_box()
    assert stop
    assert ring
    assert abs(stop["x"] + stop["width"] / 2 - ring["x"] - ring["width"] / 2) < 2
    refuse.click()
    view.moved(0)
    expect(target).to_be_hidden()
    expect(view.page.locator("#notice")).to_contain_text("allocate_slots returned None for")
    assert "/s/" not in view.page.url
    expect(view.page.locator("#time-until")).not_to_have_attribute("open", "")
    at = view.model()["at"]
    view.page.click("#go-until")
    view.page.fill("#until-steps", "20")
    view.page.click("#until-run")
    view.moved(at)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main"))
    expect(view.page.locator("#notice")).to_contain_text(re.compile("as many as were asked for|No request is left"))


def test_what_is_no_number_of_steps_is_told(view: Watched) -> None:
    view.allowed.append("422")
    view.open("/story/one-call", 0)
    view.page.click("#go-until")
    view.page.fill("#until-steps", "many")
    view.page.click("#until-run")
    expect(view.page.locator("#notice .error")).to_contain_text("not a whole number")


def test_step_here_instead_makes_a_branch(view: Watched) -> None:
    view.open("/story/one-call", 0)
    view.page.click("#go-until")
    view.page.click("#step-instead")
    view.wait(1)
    expect(view.page.locator("#go-branches")).to_have_text("b2")
    expect(view.page.locator("#time-where b")).to_have_text("after 1 of 1")


def test_playing_goes_to_the_end_and_pauses_there(view: Watched) -> None:
    view.open("/story/one-call?at=8", 8)
    view.page.click("#go-until")
    view.page.select_option("#play-speed", "20")
    view.page.click("#play")
    view.wait(END)
    expect(view.page.locator("#play")).to_have_attribute("aria-pressed", "false")
    assert "/s/" not in view.page.url


def test_playing_shows_pause_where_step_is_and_a_click_there_pauses(view: Watched) -> None:
    view.open("/story/one-call?at=0", 0)
    step = view.page.locator("#go-step").bounding_box()
    view.page.click("#go-until")
    view.page.select_option("#play-speed", "1")
    view.page.click("#play")
    pause = view.page.locator("#go-pause")
    expect(view.page.locator("#go-step")).to_be_hidden()
    expect(pause).to_be_focused()
    assert pause.bounding_box() == step
    expect(view.page.locator("#time-until")).not_to_have_attribute("open", "")
    view.page.click("#go-until")
    view.wait(2)
    expect(view.page.locator("#time-until")).to_have_attribute("open", "")  # frames don't close it
    pause.click()
    expect(view.page.locator("#go-step")).to_be_visible()
    expect(pause).to_be_hidden()
    assert view.page.evaluate("document.body.classList.contains('plays')") is False


@pytest.mark.parametrize("move", ["#go-back", "#go-first", "#go-last", "#tour-next", "scrub", "ArrowLeft"])
def test_whoever_moves_by_hand_pauses_the_play(view: Watched, move: str) -> None:
    view.open("/story/one-call?at=8", 8)
    view.page.click("#go-until")
    view.page.select_option("#play-speed", "1")
    view.page.click("#play")
    if move == "scrub":
        box = view.page.locator("#scrub").bounding_box()
        assert box
        view.page.mouse.click(box["x"] + 8, box["y"] + 12)
    elif move.startswith("#"):
        view.page.click(move)
    else:
        view.page.keyboard.press(move)
    expect(view.page.locator("#go-pause")).to_be_hidden()
    expect(view.page.locator("#play")).to_have_attribute("aria-pressed", "false")


def test_a_step_of_a_play_that_comes_after_the_pause_is_let_go(view: Watched) -> None:
    view.open("/story/one-call?at=4", 4)
    held: list[Route] = []
    view.page.route("**/frame?*", lambda route: held.append(route))  # noqa: PLW0108, Playwright marks what it is given
    with view.page.expect_request("**/frame?*"):
        view.page.keyboard.press("p")
    view.page.click("#go-pause")
    with view.page.expect_response("**/frame?*"):
        held[0].continue_()
    view.page.unroute("**/frame?*")
    view.press("ArrowRight", 5)
    assert where(view) == "after 5 of 15"


def test_keys_go_on_working_after_scrubbing(view: Watched) -> None:
    view.open("/story/one-call?at=4", 4)
    view.page.focus("#scrub")
    view.press("PageUp", 6)
    view.press(" ", 7)
    expect(view.page.locator("#scrub")).to_be_focused()
    view.page.keyboard.press("?")
    expect(view.page.locator("#keys")).to_be_visible()
    view.page.keyboard.press("Escape")
    view.page.focus("#scrub")
    view.page.keyboard.press("u")
    expect(view.page.locator("[data-until=finish]")).to_be_visible()
    view.page.focus("#scrub")
    view.page.keyboard.press("n")
    view.moved(7)
    view.page.focus("#scrub")
    view.press("Home", 0)
    view.page.keyboard.press("p")
    expect(view.page.locator("#go-pause")).to_be_visible()
    view.page.keyboard.press("p")
    expect(view.page.locator("#go-pause")).to_be_hidden()


def test_space_after_add_by_the_mouse_steps(view: Watched) -> None:
    view.open("/story/one-call?at=0", 0)
    view.click("#add-send", 1)
    view.press(" ", 2)
    expect(view.page.locator("#time-where")).to_contain_text("step 1")


def test_after_add_by_a_key_the_next_id_can_be_typed(view: Watched) -> None:
    view.open("/story/one-call?at=0", 0)
    view.page.focus("#add-tokens")
    view.press("Enter", 1)
    expect(view.page.locator("#add-id")).to_be_focused()
    view.page.keyboard.type("next")
    expect(view.page.locator("#add-id")).to_have_value("next")


def test_character_keys_and_their_switch(view: Watched) -> None:
    view.open("/story/one-call?at=4", 4)
    view.page.keyboard.press("b")
    expect(view.page.locator(".branch-list")).to_be_visible()
    view.page.keyboard.press("Escape")
    expect(view.page.locator(".branch-list")).to_have_count(0)
    view.page.keyboard.press("u")
    expect(view.page.locator("[data-until=finish]")).to_be_visible()
    view.page.keyboard.press("Escape")
    expect(view.page.locator("[data-until=finish]")).to_be_hidden()
    view.page.keyboard.press("?")
    sheet = view.page.locator("#keys")
    expect(sheet).to_contain_text("Character keys")
    view.page.uncheck("#character-keys")
    sheet.locator("button").click()
    view.page.keyboard.press("?")
    view.page.keyboard.press("b")
    view.press("ArrowRight", 5)
    expect(sheet).to_be_hidden()
    expect(view.page.locator(".branch-list")).to_have_count(0)
    view.page.reload()
    view.wait(5)
    expect(view.page.locator("#character-keys")).not_to_be_checked()
    # In a field a letter is a letter.
    view.page.evaluate("localStorage.clear()")
    view.page.focus("#add-id")
    view.page.keyboard.type("rub")
    expect(view.page.locator("#add-id")).to_have_value(re.compile("rub"))
    expect(view.page.locator(".branch-list")).to_have_count(0)


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on which runs may take long."""
    with serving(tmp_path_factory.mktemp("long"), settings=Settings(steps_a_call=18_000)) as address:
        yield address


def test_a_long_run_shows_how_it_gets_on_and_is_stopped(browser: Browser, long_site: str) -> None:
    context = browser.new_context(base_url=long_site, viewport={"width": 1440, "height": 900})
    # Such a pool and the work go on for thousands of steps.
    add = {"do": "add_request", "prompt": {"tokens": 2}, "max_tokens": 3000}
    long = scenario(
        {
            "version": 1,
            "title": "Long",
            "config": {"num_blocks": 9000, "max_model_len": 4096},
            "actions": [{**add, "id": f"l{number}"} for number in range(24)],
        }
    )
    view = Watched(context.new_page(), long_site, home=f"/p/{encode(long, 24)}/")
    view.open("?at=24", 24)
    view.page.click("#go-run")
    running = view.page.locator("#notice", has_text="of at most 18000 so far")
    expect(running).to_be_visible()
    first = running.inner_text()
    expect(view.page.locator("#notice")).not_to_have_text(first)
    expect(view.page.locator("#go-step")).to_be_hidden()
    view.page.click("#go-stop")
    expect(view.page.locator("#notice")).to_contain_text("Then it was stopped.")
    at = view.model()["at"]
    assert 24 < at < 18_000
    # A long time line is one range with ticks, and seeking in it is exact.
    view.page.focus("#scrub")
    view.press("Home", 0)
    view.press("ArrowRight", 1)
    view.press("End", at)
    view.check()
    context.close()
