"""What the words mean: in the sheet, where they stand in the call, by keys and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import ViewportSize, expect

from app.rendering.glossary import MEANINGS
from tests.browser.test_accessible import violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

PHONE: ViewportSize = {"width": 390, "height": 844}


def test_the_sheet_has_two_parts(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.keyboard.press("?")
    sheet = view.page.locator("#keys")
    expect(sheet.locator(".of-keys")).to_be_visible()
    expect(sheet.locator(".of-words")).to_be_hidden()
    expect(view.page.locator("#part-keys")).to_be_focused()
    view.page.keyboard.press("ArrowRight")
    expect(sheet.locator(".of-words")).to_contain_text(MEANINGS["null-block"].sentence)
    expect(sheet.locator(".of-keys")).to_be_hidden()
    view.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    assert view.model()["at"] == 6, "an arrow in the sheet moved through time"
    view.page.click("text=What the words mean")
    expect(sheet.locator(".of-words")).to_be_visible()
    assert view.page.url.endswith("/story/one-call?at=6")
    view.page.mouse.click(5, 5)  # beside it
    expect(sheet).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/story/one-call?at=6", "/embed/story/one-call?at=6"])
def test_on_a_phone_it_is_comfortable_and_scrolls_in_itself(view: Watched, path: str, scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size(PHONE)
    view.open(path, 6)
    view.page.click("text=What the words mean")
    words = view.page.locator(".of-words")
    expect(words).to_be_visible()
    box = view.page.locator("#keys").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["height"] <= 844
    last = words.locator("[data-meaning]").last
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    assert words.evaluate("one => one.scrollWidth <= one.clientWidth && one.scrollTop > 0")
    assert view.page.evaluate("scrollY") == 0
    assert violations(view.page) == []


def test_a_stage_opens_what_its_words_mean(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    view.press("ArrowRight", 6)  # a frame, which has no sentences of its own
    call = view.page.locator("#call .call.chosen")
    count = call.locator(".stage.count details.opens")
    head = count.locator("summary")
    expect(count).not_to_have_attribute("open", "")
    assert head.locator("h4").evaluate("one => getComputedStyle(one).textDecorationStyle") == "dotted"
    head.click()
    told = count.locator(".meanings dd")
    words = ["count", "need", "held-before", "hit", "idle-hits", "to-take"]
    expect(told).to_have_text([MEANINGS[key].sentence for key in words])
    assert violations(view.page) == []
    # A step keeps it open, and time goes on by the keys though the head has the focus.
    view.press("ArrowRight", 7)
    expect(view.page.locator("#call .call.chosen .stage.count details.opens")).to_have_attribute("open", "")
    view.page.locator("#call .call.chosen .stage.count summary").click()
    view.press("ArrowRight", 8)
    expect(view.page.locator("#call .call.chosen .stage.count details.opens")).not_to_have_attribute("open", "")


def test_a_term_opens_its_stage_and_the_names_of_the_tokens_theirs(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    call = view.page.locator("#call .call.chosen")
    call.locator(".stage.check .term", has_text="watermark").click()
    expect(call.locator(".stage.check .meanings")).to_contain_text(MEANINGS["watermark"].sentence)
    expect(call.locator(".stage.check details.opens")).to_have_attribute("open", "")
    call.locator("summary.terms").click()
    told = call.locator(".layout .meanings dt")
    expect(told).to_have_text(["comp", "new_comp", "ext_comp", "new", "lookahead", "later"])
    slots, words = call.locator(".slots").first.bounding_box(), told.first.bounding_box()
    assert slots is not None
    assert words is not None
    assert words["y"] > slots["y"] + slots["height"], "between the names and what they name"


def test_keys_reach_them_without_many_stops(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    call = view.page.locator("#call .call.chosen")
    assert call.locator("summary").count() == 9
    assert call.locator(".opens :is(a, button, [tabindex])").count() == 0
    call.locator("summary.terms").focus()
    view.page.keyboard.press("Enter")
    expect(call.locator(".layout .meanings")).to_contain_text(MEANINGS["new_comp"].sentence)
    view.page.keyboard.press("Space")
    expect(call.locator(".layout details.opens")).not_to_have_attribute("open", "")
    assert view.model()["at"] == 6, "Space on a head made a step"


def test_what_happens_next_is_in_nobodys_way(view: Watched) -> None:
    view.open("/story/one-call?at=15", 15)
    call = view.page.locator("#call .call.refused.chosen")
    for stage in ("hash", "gate", "return"):
        call.locator(f".stage.{stage} summary").click()
        told = call.locator(f".stage.{stage} .meanings")
        expect(told).to_contain_text(MEANINGS[stage].sentence)
    words, following = (call.locator(name).bounding_box() for name in (".stage.return .meanings", ".next"))
    assert words is not None
    assert following is not None
    assert following["y"] >= words["y"] + words["height"]
    assert violations(view.page) == []


def test_the_probe_tells_its_words_too(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.click("#probe-tab")
    view.page.click("#probe-send")
    gate = view.page.locator("#probe .stage.gate details.opens")
    gate.locator("summary").click()
    expect(gate.locator("dd").first).to_have_text(MEANINGS["gate"].sentence)


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_of_words(view: Watched, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 844})
    view.page.goto("/words#word-draft")
    entry = view.page.locator("#word-draft")
    expect(entry).to_be_in_viewport()
    assert entry.evaluate("one => getComputedStyle(one).display") == "grid"
    assert violations(view.page) == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    view.page.click("#theme")
    expect(view.page.locator("html")).to_have_attribute("data-theme", "dark")
