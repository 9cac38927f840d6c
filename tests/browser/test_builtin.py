"""The built-in scenario, stepped and read in a real browser."""

import json

import plotly.graph_objects as go
import pytest
from playwright.sync_api import expect

from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

FIGURES = ("pool", "queue", "tables", "hashes", "usage", "blocks", "series")
END = 15


def test_stepping_shows_the_numbers_of_the_call(view: Watched) -> None:
    view.open("/story/one-call", 0)
    for at in range(1, 7):
        view.click("#go-step", at)
    assert view.page.locator("#transport .where b").inner_text() == "after 6 of 15"
    assert view.model()["usage"]["now"] == pytest.approx(0.73)
    assert view.ids("usage") == ["0.73"]
    assert view.ids("queue").count("74") == 1
    assert view.model()["queue"]["head"][0] == [74, 0, 0]
    assert view.page.locator("#figure-queue .words .bold").first.text_content() == "74"
    verdict = view.page.locator("#call .call.chosen .verdict")
    expect(verdict).to_have_text("Granted. R reuses 8 cached blocks and takes 7 new ones.")


def test_a_blocks_card_tells_its_life(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    pool = view.page.locator("#figure-pool")
    box = view.page.evaluate("window.poolscope.figures.hosts.pool.boxes(3)[0]")
    pool.click(position={"x": box["x"] + 6, "y": box["y"] + 6})
    card = view.page.locator("#card .card")
    expect(card.locator("h2")).to_have_text("Block 3")
    expect(card.locator("header")).to_contain_text("held, ref_cnt 1")
    expect(card.locator(".life li").last).to_contain_text("R")
    assert "sel=block:3" in view.page.url
    assert view.page.locator(".outline.selected").count() == 4  # pool, queue (it left), table, tree
    card.locator(".life a").first.click()
    view.wait(2)
    expect(card.locator("header")).to_contain_text("free but cached")
    view.page.keyboard.press("Escape")
    expect(view.page.locator("#card")).to_be_hidden()
    assert "sel=" not in view.page.url


def test_keys_move_through_time_and_over_the_pool(view: Watched) -> None:
    view.open("/story/one-call", 0)
    view.press("ArrowRight", 1)
    view.press("Space", 2)
    view.press("ArrowLeft", 1)
    view.press("End", END)
    view.press("Home", 0)
    view.press("End", END)
    view.page.locator("#figure-pool").focus()
    view.page.keyboard.press("ArrowRight")
    view.page.keyboard.press("ArrowDown")
    expect(view.page.locator("#live")).to_have_text("Block 22: held by holder, hashed")
    view.page.keyboard.press("Enter")
    expect(view.page.locator("#card h2")).to_have_text("Block 22")
    assert view.page.locator("#transport .where b").inner_text() == "after 15 of 15"


def test_every_figure_at_every_moment_is_valid_and_a_step_shows_what_a_fresh_page_shows(view: Watched) -> None:
    stepped: list[str] = []
    view.open("/story/one-call", 0)
    for at in range(END + 1):
        if at:
            view.press("ArrowRight", at)
        stepped.append(json.dumps(view.model(), sort_keys=True))
        for name in FIGURES:
            given = view.figure(name)
            go.Figure({"data": given["data"], "layout": given["layout"]})  # raises where a property is wrong
            assert given["types"] == [trace["type"] for trace in given["data"]]
    for at, model in enumerate(stepped):
        view.open(f"/story/one-call?at={at}", at)
        assert json.dumps(view.model(), sort_keys=True) == model, f"after {at}"


def order(view: Watched, name: str) -> list[str]:
    figure = view.figure(name)
    return [one["name"] for one in [*figure["data"], *figure["layout"].get("shapes", [])]]


def test_trace_order_never_changes_and_untouched_figures_stay(view: Watched) -> None:
    view.open("/story/one-call", 0)
    names = {name: order(view, name) for name in FIGURES}
    for at in range(1, END + 1):
        view.press("ArrowRight", at)
        assert {name: order(view, name) for name in FIGURES} == names
    drawn = (
        "Object.fromEntries(Object.entries(window.poolscope.figures.hosts).map(([name, host]) => [name, host.drawn]))"
    )
    view.open("/story/one-call?at=8", 8)
    view.press("ArrowRight", 9)  # no block moves in this step: only the tables fill
    once = {"pool": 1, "queue": 1, "hashes": 1, "usage": 1, "blocks": 1}
    assert view.page.evaluate(drawn) == once | {"tables": 2, "series": 2}


def test_a_frame_that_does_not_fit_is_asked_for_whole(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    view.page.evaluate("window.poolscope.model.at = 3")  # as if a frame had been lost
    view.press("ArrowRight", 6)
    stepped = view.model()
    view.open("/story/one-call?at=6", 6)
    assert view.model() == stepped


def test_every_picture_has_a_sentence(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    for name in FIGURES:
        label = view.page.locator(f"#figure-{name} .plot").get_attribute("aria-label") or ""
        assert label.endswith("."), (name, label)
    assert "73 held" in (view.page.locator("#figure-pool .plot").get_attribute("aria-label") or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844)])
def test_nothing_is_wider_than_the_window_and_panels_keep_their_place(
    view: Watched, scheme: str, width: int, height: int
) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": width, "height": height})
    view.open("/story/one-call?at=5", 5)
    places = """['pool', 'queue', 'tables', 'hashes'].map(name => {
      const box = document.getElementById(`figure-${name}`).getBoundingClientRect();
      return [box.left, box.height];
    })"""
    before = view.page.evaluate(places)
    view.press("ArrowRight", 6)
    assert view.page.evaluate(places) == before
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    page = view.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert page == ("rgb(16, 19, 21)" if scheme == "dark" else "rgb(246, 247, 247)")


def test_the_theme_switch_is_kept(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    before = view.shape("pool", "empty")["fillcolor"]
    view.page.click("#theme")
    expect(view.page.locator("html[data-theme=dark]")).to_be_attached()
    assert view.page.evaluate("window.poolscope.figures.settled.then(() => true)")
    assert view.shape("pool", "empty")["fillcolor"] != before
    view.open("/story/one-call?at=6", 6)
    assert view.shape("pool", "empty")["fillcolor"] != before
