"""Two branches side by side in a browser: what differs is ringed in both pictures, and one key steps both."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from engine.scenario import Scenario
from tests.browser.scenarios import story
from tests.browser.test_accessible import FOLD, PHONE, WIDE, violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser


def compared(view: Watched, end: int, knob: str, value: str, *, run: bool = True) -> str:
    """The address of a comparison of main with what one knob makes of it; all but the moment."""
    request = view.page.request
    headers = {"Accept": "application/json", "Origin": view.site}
    home = view.home.rstrip("/")
    made = request.post(
        f"{home}/vary", form={"branch": "main", "at": str(end), "knob": knob, "value": value}, headers=headers
    ).json()
    page = f"/s/{made['session']}"
    for branch in ("main", made["branch"]) if run else ():
        assert request.post(f"{page}/run", form={"branch": branch, "at": str(end)}, headers=headers).ok
    return f"{page}/compare?a=main&b={made['branch']}&at="


@pytest.fixture
def gate(view: Watched) -> str:
    """main and gate off: 73 and 70 actions; second is refused after 15, or admitted."""
    return compared(view, 15, "scheduler_reserve_full_isl", "off")


def rings(view: Watched, figure: str) -> list[list[float]]:
    """The rings of a figure as boxes [left, top, right, bottom], from the path that is drawn."""
    script = (
        """name => document.querySelector(`#figure-${name} .plot`).layout.shapes.find(s => s.name === "rings").path"""
    )
    path: str = view.page.evaluate(script, figure)
    boxes = []
    for part in re.findall(r"M([^MZ]*)Z", path):
        points = [tuple(map(float, one.split(","))) for one in part.split("L")]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        boxes.append([min(xs), min(ys), max(xs), max(ys)])
    return boxes


def ringed(view: Watched, name: str) -> list[int]:
    """The blocks of a figure whose cells lie inside a ring."""
    script = """name => {
      const host = window.poolscope.figures.hosts[name];
      return Array.from({length: 120}, (_, block) => host.boxes(block)).flat()
        .map(({block, x, y, w, h}) => ({block, x, y, w, h}));
    }"""
    cells: list[dict[str, Any]] = view.page.evaluate(script, name)
    boxes = rings(view, name)
    inside = [
        cell["block"]
        for cell in cells
        if any(
            left <= cell["x"]
            and top <= cell["y"]
            and cell["x"] + cell["w"] <= right
            and cell["y"] + cell["h"] <= bottom
            for left, top, right, bottom in boxes
        )
    ]
    return sorted(inside)


def test_what_differs_is_ringed_on_both_sides(view: Watched, gate: str) -> None:
    view.open(f"{gate}17", 17)
    for side in ("a", "b"):
        assert ringed(view, f"pool-{side}") == list(range(79, 98))
    assert ringed(view, "queue-a") == list(range(79, 98))
    assert ringed(view, "queue-b") == []
    assert ringed(view, "tables-a") == []
    assert ringed(view, "tables-b") == list(range(79, 98))
    expect(view.page.locator("[data-row=second] .mk.differs")).to_have_count(4 + 2)
    expect(view.page.locator("[data-row=holder] .mk.differs")).to_have_count(0)


def test_a_key_steps_both_at_once(view: Watched, gate: str) -> None:
    view.open(f"{gate}14", 14)
    assert [ringed(view, f"pool-{side}") for side in ("a", "b")] == [[], []]
    expect(view.page.locator("#here")).to_have_text("Here, in add_request second, every block is the same in both.")
    for at, last in ((15, 85), (16, 91), (17, 97)):
        view.press("ArrowRight", at)
        assert [ringed(view, f"pool-{side}") for side in ("a", "b")] == [list(range(79, last + 1))] * 2
        assert [side["at"] for side in view.page.evaluate("window.poolscope.figures.data.sides")] == [at, at]
    expect(view.page).to_have_url(re.compile(r"&at=17$"))
    view.press("ArrowLeft", 16)
    view.press("Home", 0)
    view.press("End", 73)
    expect(view.page.locator("#head-b .over-now")).to_have_text("ends after 70")
    view.press("Home", 0)
    view.press("n", 15)
    view.press("n", 16)


def test_the_slider_moves_both(view: Watched, gate: str) -> None:
    view.open(f"{gate}3", 3)
    view.page.locator("#compare-scrub").fill("49")
    view.wait(49)
    expect(view.page.locator("#aspects [data-aspect=schedule]")).to_have_text(
        re.compile(r"schedule\s*differs\s*1\s*101")
    )
    assert [model["at"] for model in view.page.evaluate("window.poolscope.models.map(m => m.plain())")] == [49, 49]
    assert view.page.locator("#compare-scrub").get_attribute("aria-valuetext") == "after 49 of 73step 45"


def test_lanes_and_both_series_are_drawn(view: Watched, gate: str) -> None:
    view.open(f"{gate}49", 49)
    lanes = view.page.evaluate("window.poolscope.figures.data.lanes")
    past = view.shape("lanes", "past")["path"].count("M")
    assert past == sum(first < 49 for stretches in lanes.values() for first, _ in stretches)
    assert view.shape("lanes", "now")["path"].count("M") == 6
    assert view.shape("lanes", "future")["path"].count("M") == sum(
        last > 49 for one in lanes.values() for _, last in one
    )
    for name in ("a", "b", "a later", "b later"):
        assert view.shape("over", name)["path"].count("M") == 3
    assert "px" in view.shape("over", "b")["line"]["dash"]
    assert view.shape("over", "apart")["path"] != view.shape("over", "apart later")["path"]
    before = view.shape("over", "needle")["path"]
    view.press("ArrowRight", 50)
    assert view.shape("over", "needle")["path"] != before


def test_a_block_is_pointed_at_in_every_picture(view: Watched, gate: str) -> None:
    view.open(f"{gate}17", 17)
    view.page.keyboard.press("Tab")
    view.page.focus("#figure-pool-a")
    for _ in range(3):
        view.page.keyboard.press("ArrowDown")
    expect(view.page.locator("#live")).to_have_text(
        re.compile(r"^Block 61: held by holder, hashed in main; .* the same$")
    )
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowRight")
    expect(view.page.locator("#live")).to_have_text(
        "Block 82: free and empty in main; held by second, hashed in gate off; differs"
    )
    for figure in ("pool-a", "pool-b", "queue-a", "tables-b"):
        expect(view.page.locator(f"#figure-{figure} .outline.focused")).to_have_count(1)
    view.page.keyboard.press("Enter")
    card = view.page.locator("#compare-card")
    expect(card).to_contain_text("gate off: held by second, hashed")
    view.page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    view.page.keyboard.press("Enter")
    card.locator("a >> nth=1").click()
    view.wait(17)
    expect(view.page.locator("#card h2")).to_have_text("Block 82")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_no_violation(view: Watched, gate: str, size: tuple[int, int], scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    for at in (0, 49, 73):
        view.open(f"{gate}{at}", at)
        assert violations(view.page) == []
        assert view.page.evaluate("document.documentElement.scrollWidth") <= size[0]
    view.page.keyboard.press("?")
    if size != PHONE:
        expect(view.page.locator("#keys")).to_be_visible()
        assert violations(view.page) == []


def test_several_groups(look: Callable[[Scenario], Watched]) -> None:
    """A table a group, each named; nothing is broken where windows leave holes."""
    view = look(story("window-holes"))
    end = len(story("window-holes").actions)
    path = compared(view, end, "max_num_batched_tokens", "16", run=False)
    view.open(f"{path}{end}", end)
    told = view.page.evaluate("window.poolscope.figures.data.sides.map(s => s.tables.map(t => [t.id, t.group]))")
    words = view.notes("tables-a")
    groups = view.page.evaluate("window.poolscope.models[0].groups.map(g => g.short)")
    assert all(
        words.count(short) == sum(group == i for _, group in told[0])
        for i, short in enumerate(groups)
        if len(groups) > 1
    )
    for at in range(end, -1, -1):
        view.wait(at)
        if at:
            view.press("ArrowLeft", at - 1)


def test_without_javascript(browser: Browser, view: Watched, gate: str) -> None:
    context = browser.new_context(base_url=view.site, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{gate}17")
    expect(page.locator("#requests-b [data-row=second]")).to_contain_text("79–97 (differs)")
    expect(page.locator("#order-a")).to_contain_text("head first: 79–100 (differs)")
    expect(page.locator("#aspects .differs .says-so").first).to_be_visible()
    page.click("#go-step")
    expect(page.locator("#compare-where b")).to_have_text("after 18 of 73")
    page.click("#go-parting")
    expect(page.locator("#compare-where b")).to_have_text("after 15 of 73")
    context.close()


def test_pictures_follow_the_theme_and_the_window(view: Watched, gate: str) -> None:
    view.open(f"{gate}49", 49)
    ring = view.shape("pool-a", "rings")["line"]["color"]
    view.page.click("#theme")
    view.until(
        "window.poolscope.figures.hosts['pool-a'].plot.layout.shapes.find(s => s.name === 'rings').line.color !== "
        + json.dumps(ring),
        True,
    )
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.until("window.poolscope.figures.grids[0].columns", 10)
    assert len(ringed(view, "pool-b")) == 33


def test_on_a_phone_both_sides_of_a_panel_stand_together(view: Watched, gate: str) -> None:
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.open(f"{gate}49", 49)
    boxes = "selector => [...document.querySelectorAll(selector)].map(one => one.getBoundingClientRect().toJSON())"

    def places(selector: str) -> list[dict[str, float]]:
        found: list[dict[str, float]] = view.page.evaluate(boxes, selector)
        return found

    for panel in (".side-head", ".side-pool", ".side-requests"):
        a, b = places(panel)
        assert a["top"] == b["top"]
        assert a["right"] < b["left"]
    rows_a, rows_b = (places(f"#requests-{key} [data-row]") for key in "ab")
    assert len(rows_a) > 1
    assert [(row["top"], row["height"]) for row in rows_a] == [(row["top"], row["height"]) for row in rows_b]
    a, b = places(".side-queue")
    assert a["left"] == b["left"]
    assert a["bottom"] <= b["top"] < a["bottom"] + 40
    expect(view.page.locator(".side-queue .plate")).to_have_text(["A", "B"])
    for key in "ab":
        cells = view.page.evaluate(f"window.poolscope.figures.hosts['tables-{key}'].hits.map(hit => hit.x + hit.w)")
        assert cells
        assert max(cells) <= rows_a[0]["width"] + 1
    assert view.page.evaluate("document.documentElement.scrollWidth") == 390
