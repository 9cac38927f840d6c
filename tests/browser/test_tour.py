"""A story's stops in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from app.gallery import load_lesson
from tests.browser.test_accessible import FOLD, PHONE, WIDE, violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

STOPS = load_lesson().stops


def test_the_lesson_goes_from_stop_to_stop(view: Watched) -> None:
    page, words = view.page, view.page.locator("#tour-words")
    view.open("/story/one-call", 0)
    expect(words).to_contain_text(load_lesson().story)
    for place, stop in enumerate(STOPS):
        view.click("#tour-next", stop.at)
        expect(page.locator("#tour-where")).to_have_text(f"{place + 1} of 5")
        expect(words.locator("li:visible")).to_have_text(stop.note)
        chosen = f"&sel={stop.select}" if stop.select else ""
        expect(page).to_have_url(re.compile(re.escape(f"?branch=main&at={stop.at}{chosen}") + "$"))
    expect(page.locator("#tour-next")).to_have_attribute("aria-disabled", "true")
    expect(page.locator("#requests .picked")).to_contain_text("second")
    for stop in reversed(STOPS[:-1]):
        view.press("N", stop.at)
        expect(words.locator("li:visible")).to_have_text(stop.note)
    view.press("n", 4)


def test_two_stops_at_one_moment_differ_in_what_they_select(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=6&sel=request:R", 6)
    expect(page.locator("#tour-where")).to_have_text("3 of 5")
    page.locator("#tour-next").click()
    expect(page.locator("#card h2")).to_have_text("Block 73")
    expect(page.locator("#tour-where")).to_have_text("4 of 5")
    assert page.locator("#requests .picked").count() == 0
    page.locator("#tour-back").click()
    expect(page.locator("#card")).to_be_hidden()
    expect(page.locator("#requests .picked")).to_contain_text("R")


def test_moving_through_time_keeps_the_tour_in_step(view: Watched) -> None:
    where, intro = view.page.locator("#tour-where"), view.page.locator("#tour-words .intro")
    view.open("/story/one-call", 0)
    view.press("ArrowRight", 1)
    expect(where).to_have_text("5 stops")
    expect(intro).to_be_visible()
    view.press("ArrowRight", 2)
    expect(where).to_have_text("1 of 5")
    expect(intro).to_be_hidden()
    view.press("End", 15)
    expect(where).to_have_text("5 of 5")
    view.press("ArrowLeft", 14)
    view.click("#tour-back", 6)
    expect(where).to_have_text("4 of 5")


def test_acting_makes_a_session_and_the_story_stays(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=15&sel=request:second", 15)
    place = page.locator(".workspace").bounding_box()
    view.click("#go-step", 16)
    expect(page).to_have_url(re.compile(r"/s/[a-z0-9]{12}\?branch=main&at=16"))
    expect(page.locator("#tour-words")).to_contain_text("This is a session of your own now")
    assert page.locator(".workspace").bounding_box() == place
    page.get_by_role("link", name="Back to the story").click()
    view.wait(15)
    expect(page).to_have_url(re.compile(r"/story/one-call\?branch=main&at=15$"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_it_has_no_violation_and_fits(view: Watched, size: tuple[int, int], scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    for slug, at in (("watermark", 7), ("window-holes", 7), ("cached-prompt", 0)):
        view.open(f"/story/{slug}?at={at}", at)
        assert violations(view.page) == []
        assert view.page.evaluate("document.documentElement.scrollWidth") == size[0]
        box = view.page.locator("#tour-words").bounding_box()
        full = view.page.evaluate("document.getElementById('tour-words').scrollHeight")
        assert box
        assert full <= box["height"] + 1, "the words are cut"
