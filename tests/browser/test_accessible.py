"""WCAG 2.1 A and AA by axe-core, and the keys, in a real browser."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.scenario import Scenario
from tests.browser.scenarios import crowd, story
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

AXE = Path(__file__).resolve().parents[2] / "build" / "axe.js"
# Everything that it looked at takes several times as long to bring over as to find.
FOUND = """rules => axe.run(document, {runOnly: rules}).then(({passes, violations}) => ({
  passes: passes.length,
  violations: violations.map(({id, nodes}) => ({id, places: nodes.slice(0, 3).map(({html}) => html.slice(0, 120))})),
}))"""
STILL = "Promise.allSettled(document.getAnimations().map((one) => one.finished)).then(() => 0)"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
WIDE, FOLD, PHONE = (1440, 900), (1024, 768), (390, 844)


def violations(page: Page) -> list[str]:
    """What axe-core finds wrong, with the first places."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    page.evaluate(STILL)  # what fades in is paler until it has
    found = page.evaluate(FOUND, RULES)
    assert found["passes"] > 5
    return [f"{one['id']}: {one['places']}" for one in found["violations"]]


def test_a_fault_is_found(view: Watched) -> None:
    view.open("/story/one-call?at=0", 0)
    view.page.evaluate(
        "for (const name of ['aria-label', 'title']) document.getElementById('theme').removeAttribute(name)"
    )
    (found,) = violations(view.page)
    assert found.startswith("button-name: ['<button class=")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_the_page_has_no_violation(view: Watched, size: tuple[int, int], scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    for at in (0, 6, 15):
        view.open(f"/story/one-call?at={at}", at)
        assert violations(view.page) == []


def test_what_opens_has_no_violation(view: Watched) -> None:
    view.open("/story/one-call?at=15&sel=block:3", 15)
    expect(view.page.locator("#card .card")).to_be_visible()
    assert violations(view.page) == []
    view.page.click("#probe-tab")
    view.page.click("#probe-send")
    expect(view.page.locator("#call-probe")).to_be_visible()
    assert violations(view.page) == []
    view.page.click(".row.stuck .ask")
    view.page.click(".row.stuck .why >> nth=0")
    expect(view.page.locator("#card .why-card")).to_be_visible()
    assert violations(view.page) == []
    view.page.keyboard.press("Escape")
    view.page.click("#help")
    assert violations(view.page) == []


def test_what_unfolds_has_no_violation(view: Watched) -> None:
    view.page.set_viewport_size({"width": 1024, "height": 768})
    view.open("/story/one-call?at=6", 6)
    view.page.click("#open-composer")
    view.page.click("#open-foot")
    assert violations(view.page) == []
    view.page.set_viewport_size({"width": 390, "height": 844})
    for tab in ("requests", "queue", "tables", "hashes", "time", "log"):
        view.page.click(f"[data-tab={tab}]")
        assert violations(view.page) == [], tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_time_s_menus_have_no_violation(view: Watched, size: tuple[int, int], scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    view.open("?at=5", 5)
    view.page.click("#go-until")
    view.page.focus("[data-until=refuse]")
    expect(view.page.locator("#until-target")).to_be_visible()
    assert violations(view.page) == []
    view.page.click("#step-instead")
    view.wait(6)
    view.page.click("#go-branches")
    expect(view.page.locator(".branch-list")).to_be_visible()
    assert violations(view.page) == []
    assert view.page.evaluate("document.documentElement.scrollWidth") <= size[0]


@pytest.mark.parametrize("name", ["preemption", "window-holes", "usage-zero"])
def test_other_stories_have_no_violation(look: Callable[[Scenario], Watched], name: str) -> None:
    view = look(story(name))
    view.open("?at=5", 5)
    assert violations(view.page) == []


def test_a_crowd_has_no_violation(look: Callable[[Scenario], Watched]) -> None:
    view = look(crowd([f"r{i}" for i in range(10)], 400))
    view.open("?at=12", 12)
    assert violations(view.page) == []


def test_whole_pages_have_no_violation(view: Watched) -> None:
    for path in (
        "/story/one-call/block/3?at=6",
        "/story/one-call/probe?at=15&request=second",
        "/story/one-call/why?at=15&about=waiting&id=second",
        "/story/one-call/call?at=6&call=0",
    ):
        view.page.goto(path)
        assert violations(view.page) == [], path


def test_every_picture_is_a_grid_for_the_keys(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    live = view.page.locator("#live")
    ways = {
        "pool": [("ArrowRight", "Block 2:"), ("ArrowDown", "Block 22:"), ("Home", "Block 0:"), ("End", "Block 100:")],
        "queue": [("Home", "Block 74:"), ("ArrowRight", "Block 75:"), ("ArrowUp", "Block 68:")],
        "tables": [
            ("Home", "Block 1:"),
            ("ArrowRight", "Block 2:"),
            ("ArrowDown", "Block 32:"),
            ("ArrowUp", "Block 2:"),
        ],
        "hashes": [("Home", "Block 1:"), ("ArrowRight", "Block 2:")],
    }
    for name, keys in ways.items():
        view.page.keyboard.press("Tab")  # the last thing that was done was a key: the focus is to be seen
        view.page.focus(f"#figure-{name}")
        for key, words in keys:
            view.page.keyboard.press(key)
            expect(live).to_contain_text(words)
    view.page.keyboard.press("Enter")
    expect(view.page.locator("#card h2")).to_have_text("Block 2")
    assert view.page.locator("#transport .where b").inner_text() == "after 6 of 15"


def test_a_row_of_chips_is_one_stop_for_tab(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    first = view.page.locator(".chosen .stage.pop .chip").first
    first.focus()
    view.page.keyboard.press("ArrowRight")
    expect(view.page.locator(".chosen .stage.pop .chip").nth(1)).to_be_focused()
    view.page.keyboard.press("Enter")
    expect(view.page.locator("#card h2")).to_have_text("Block 68")
    assert view.page.locator(".chosen .stage.pop .chip:not([tabindex='-1'])").count() == 1


def test_a_card_that_a_key_opened_has_the_focus_and_gives_it_back(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    pool = view.page.locator("#figure-pool")
    pool.focus()
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("Enter")
    expect(view.page.locator("#card .close")).to_be_focused()
    view.page.keyboard.press("Escape")
    expect(view.page.locator("#card")).to_be_hidden()
    expect(pool).to_be_focused()


def test_chips_and_tests_have_names(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    call = view.page.locator("#call .call.chosen")
    expect(call.locator(".stage.touch .chip").first).to_have_accessible_name(
        "Block 1, hit, held by two or more, hashed, changed in this step"
    )
    expect(call.locator(".stage.pop .chip").first).to_have_accessible_name("Block 67, changed in this step")
    gate = call.locator(".stage.gate .stage-head")
    expect(gate.locator(".out")).to_have_attribute("aria-hidden", "true")
    expect(gate.locator(".unseen")).to_have_text("passed")
    view.open("/story/one-call?at=15", 15)
    refused = view.page.locator("#call .call.chosen .stage.gate .out")
    expect(refused).to_have_text("returns None")
    assert refused.get_attribute("aria-hidden") is None


def test_the_log_is_filtered_by_request_and_kind(view: Watched) -> None:
    view.open("/story/one-call?at=15", 15)
    shown = view.page.locator("#log .sentences li:visible")
    for kind in ("scheduling", "requests"):
        view.page.select_option("#log-kind", label=kind)
        expect(shown.filter(has_text="was refused by the gate")).to_have_count(1)
    view.open("/story/one-call?at=6", 6)
    view.page.select_option("#log-kind", label="requests")
    expect(shown).to_have_text(["R is admitted."])
    view.page.select_option("#log-kind", label="KV events")
    view.page.select_option("#log-request", label="holder")
    expect(view.page.locator("#log .events li:visible")).to_have_text(["Nothing of this kind in this step."])
    view.page.select_option("#log-request", label="R")
    expect(view.page.locator("#log .events li:visible")).to_contain_text(["BlockStored"])
