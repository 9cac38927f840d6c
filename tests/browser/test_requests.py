"""The lists of requests: nothing is cut or painted over, and every question can be asked in every layout."""

from collections.abc import Callable
from itertools import combinations

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from engine.scenario import Scenario
from tests.browser.scenarios import crowd, story
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

Look = Callable[[Scenario], Watched]
PARTS = (".swatch", ".pick", ".tag", ".side", ".bar", ".caption", ".ask")
SIZES = [(1440, 900), (1280, 720), (1024, 768), (390, 844)]


def seen(place: Locator) -> dict[str, FloatRect]:
    """The parts of a row that are shown, and where."""
    boxes = {name: place.locator(name).bounding_box() for name in PARTS if place.locator(name).count()}
    return {name: box for name, box in boxes.items() if box and box["width"] and box["height"]}


def apart(one: FloatRect, other: FloatRect) -> bool:
    beside = one["x"] + one["width"] <= other["x"] + 0.5 or other["x"] + other["width"] <= one["x"] + 0.5
    return beside or one["y"] + one["height"] <= other["y"] + 0.5 or other["y"] + other["height"] <= one["y"] + 0.5


def check_rows(view: Watched) -> None:
    """No part of a row lies over another or beyond the row, and no caption is cut."""
    for row in view.page.locator("#requests .row").all():
        row.hover()
        parts = seen(row)
        for (name, one), (other, two) in combinations(parts.items(), 2):
            assert apart(one, two), (name, other, parts)
        whole = row.bounding_box()
        assert whole
        for name, box in parts.items():
            assert box["x"] >= whole["x"] - 4, (name, parts)
            assert box["x"] + box["width"] <= whole["x"] + whole["width"] + 4, (name, parts)
        assert row.locator(".caption").evaluate("(one) => one.scrollWidth <= one.clientWidth"), parts


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_part_of_a_row_lies_over_another(look: Look, width: int, height: int) -> None:
    for name, moments in (("one-call", (6, 15)), ("preemption", (5, 6)), ("head-of-line", (7, 8))):
        view = look(story(name))
        view.page.set_viewport_size({"width": width, "height": height})
        for at in moments:
            view.open(f"?at={at}&sel=request:R", at)
            if width < 700:
                view.page.click(".tabbar [data-tab=requests]")
            check_rows(view)


@pytest.mark.parametrize("width", [1440, 1920])
def test_what_is_to_go_can_be_read(view: Watched, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 900})
    view.open("/story/one-call?at=6&sel=request:R", 6)
    caption = view.page.locator(".row.picked .caption")
    expect(caption).to_have_text("128 hit + 100 now, 72 to go")
    over = """(one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const {right, bottom} = [...range.getClientRects()].at(-1);
      return document.elementFromPoint(right - 3, bottom - 5) === one;
    }"""
    assert caption.evaluate(over)


@pytest.mark.parametrize("path", ["/story/preemption", "/embed/story/preemption"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_question_can_be_asked_in_every_layout(view: Watched, path: str, width: int, height: int) -> None:
    view.page.set_viewport_size({"width": width, "height": height})
    view.open(f"{path}?at=5", 5)
    if width < 700:
        view.page.click(".tabbar [data-tab=requests]")
    row = view.page.locator(".row:has-text('cy')")
    for place, words in enumerate(("Why is cy waiting?", "Why did cy hit 0", "Why was cy preempted")):
        row.locator(".ask").click()
        expect(row.locator(".why").nth(place)).to_be_in_viewport(ratio=1)
        row.locator(".why").nth(place).click()
        expect(row.locator(".whys")).to_be_hidden()
        expect(view.page.locator("#card h2")).to_contain_text(words)
        view.page.keyboard.press("Escape")
        expect(view.page.locator("#card")).to_be_hidden()
        expect(row.locator(".ask")).to_be_focused()


def test_a_click_on_a_name_in_a_row_of_one_line_selects_it(look: Look) -> None:
    view = look(crowd(["first", "second", "third", "fourth", "fifth"], 12, tokens=120, steps=2))
    view.open("?at=7", 7)
    expect(view.page.locator("#requests")).to_have_class("lists tight")
    for name in ("first", "fifth"):
        row = view.page.locator(f".row:has-text('{name}')")
        row.hover()
        row.locator(".pick").click()
        expect(row.locator(".pick")).to_have_attribute("aria-current", "true")
    last = view.page.locator(".row:has-text('fifth')")
    if last.locator("button.ask").count():
        last.locator(".ask").click()
        last.locator(".why").first.click()
    else:
        last.locator(".ask").click()  # the only question, at once
    expect(view.page.locator("#card h2")).to_contain_text("fifth")


def test_escape_closes_the_questions_alone(view: Watched) -> None:
    view.open("/story/one-call?at=15&sel=request:second", 15)
    view.page.click(".row.stuck .ask")
    expect(view.page.locator(".row.stuck .whys")).to_be_visible()
    view.page.keyboard.press("Escape")
    expect(view.page.locator(".row.stuck .whys")).to_be_hidden()
    expect(view.page.locator(".row.picked .pick")).to_have_text("second")


def shown_whole(view: Watched, row: Locator) -> bool:
    lists, place = view.page.locator("#requests").bounding_box(), row.bounding_box()
    assert lists
    assert place
    return place["y"] >= lists["y"] - 1 and place["y"] + place["height"] <= lists["y"] + lists["height"] + 1


@pytest.mark.parametrize(("width", "height"), SIZES[:3])
def test_the_selected_row_is_in_sight_and_the_page_stays(view: Watched, width: int, height: int) -> None:
    view.page.set_viewport_size({"width": width, "height": height})
    view.open("/story/one-call?at=6&sel=request:R", 6)
    assert shown_whole(view, view.page.locator(".row.picked"))
    assert view.page.evaluate("scrollY") == 0


def test_the_selected_row_comes_into_sight_in_a_long_list(look: Look) -> None:
    names = [f"r{number}" for number in range(30)]
    view = look(crowd(names, 400, steps=1))
    view.open("?at=31", 31)
    view.page.evaluate("poolscope.selection.choose('request:r28')")
    assert shown_whole(view, view.page.locator(".row.picked"))


def test_requests_are_cards_where_they_fit_and_else_rows(look: Look) -> None:
    view = look(crowd(["a", "b", "c"], 60, steps=1))
    view.open("?at=4", 4)
    rows = view.page.locator("#requests .row")
    assert all(shown_whole(view, rows.nth(place)) for place in range(3))
    view.page.set_viewport_size({"width": 1440, "height": 1300})
    expect(view.page.locator("#requests")).to_have_class("lists")
    expect(rows.first.locator(".caption")).to_be_visible()
    view.page.set_viewport_size({"width": 1440, "height": 760})
    expect(view.page.locator("#requests")).to_have_class("lists tight")


@pytest.mark.parametrize("name", ["preemption", "one-call"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768)])
def test_every_request_of_a_story_is_seen(look: Look, name: str, width: int, height: int) -> None:
    view = look(story(name))
    view.page.set_viewport_size({"width": width, "height": height})
    for at in range(1, 7):
        view.open(f"?at={at}", at)
        for row in view.page.locator("#requests .row").all():
            assert shown_whole(view, row), (at, row.inner_text())


def test_words_in_empty_fields_are_not_cut(view: Watched) -> None:
    view.open("/story/one-call?at=0", 0)
    for name in ("id", "tokens", "max_tokens", "shared", "shared_tokens"):
        view.page.fill(f"#add-{name}", "")
    script = """() => [...document.querySelectorAll("#composer .fields > .field input")].map((one) => {
      const pen = document.createElement("canvas").getContext("2d");
      const style = getComputedStyle(one, "::placeholder");
      pen.font = `${style.fontSize} ${style.fontFamily}`;
      const {paddingLeft, paddingRight} = getComputedStyle(one);
      const room = one.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
      return [one.placeholder, pen.measureText(one.placeholder).width <= room];
    })"""
    found = view.page.evaluate(script)
    assert found == [["a name", True], ["a number", True], ["a number", True], ["a name", True], ["tokens", True]]
