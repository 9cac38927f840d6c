"""Where things stand: nothing runs off the page, moves while stepping, or points at the wrong place."""

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import pytest
from playwright.sync_api import expect

from engine.scenario import Scenario
from tests.browser.scenarios import STEP, crowd, scenario, story
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

SIZES = [(1440, 900), (1024, 768), (390, 844)]
Look = Callable[[Scenario], Watched]


def box(view: Watched, selector: str) -> dict[str, float]:
    found: Any = view.page.locator(selector).first.bounding_box()
    assert found, selector
    return dict(found)


def shared_without_caching() -> Scenario:
    prompt = [{"shared": "s", "tokens": 32}, {"tokens": 68}]
    add = {"do": "add_request", "prompt": prompt, "max_tokens": 8}
    actions = [{**add, "id": "A"}, STEP, {**add, "id": "B"}, STEP, STEP]
    config = {"num_blocks": 30, "enable_prefix_caching": False}
    return scenario({"version": 1, "title": "no cache", "config": config, "actions": actions})


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_no_label_of_the_token_bar_runs_off_the_panel(look: Look, width: int, height: int) -> None:
    view = look(shared_without_caching())
    view.page.set_viewport_size({"width": width, "height": height})
    for at in range(6):
        view.open(f"?at={at}", at)
        assert view.page.evaluate("document.documentElement.scrollWidth") <= width, at
        panel = box(view, "#call-panel")
        for label in view.page.locator(".call.chosen .zeros span, .call.chosen .terms span").all():
            place = label.bounding_box()
            assert place
            assert place["x"] >= panel["x"], at
            assert place["x"] + place["width"] <= panel["x"] + panel["width"], (at, label.inner_text())


def test_a_row_of_one_line_keeps_its_height_under_the_mouse(look: Look) -> None:
    view = look(crowd(["first", "second", "third", "fourth", "fifth"], 12, tokens=120, steps=2))
    view.open("?at=7", 7)
    rows = view.page.locator(".tight .row")
    heights = [rows.nth(place).bounding_box() for place in range(rows.count())]
    assert rows.count() == 5
    for place in range(rows.count()):
        rows.nth(place).hover()
        assert [rows.nth(other).bounding_box() for other in range(rows.count())] == heights


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_moves_while_stepping(view: Watched, width: int, height: int) -> None:
    view.page.set_viewport_size({"width": width, "height": height})
    view.open("/story/one-call?at=0", 0)
    watched = ["#figure-pool", "#figure-queue"] + (["#composer h2", "#add-send"] if width == 1440 else [])
    before = {name: box(view, name) for name in watched}
    for at in range(1, 16):
        view.page.locator("#go-step").dispatch_event("click")
        view.wait(at)
        for name in watched:
            now = box(view, name)
            assert (now["x"], now["y"]) == (before[name]["x"], before[name]["y"]), (name, at)


def test_a_list_that_goes_on_says_so(view: Watched) -> None:
    view.open("/story/one-call?at=15", 15)
    assert view.page.locator("#figure-tables").get_attribute("data-more") == "below"
    view.page.locator("#figure-tables").evaluate("(one) => one.scrollTo(0, one.scrollHeight)")
    expect(view.page.locator("#figure-tables")).to_have_attribute("data-more", "above")


def test_what_is_unfolded_comes_into_view(view: Watched) -> None:
    view.page.set_viewport_size({"width": 1440, "height": 700})
    view.open("/story/one-call?at=9", 9)
    view.page.click("#abort summary")
    expect(view.page.locator("#reset-now")).to_be_in_viewport()


def last_cells(view: Watched) -> dict[float, float]:
    """Where the last block of the free queue is drawn: y -> x."""
    script = """() => {
      const {figures, model} = window.poolscope;
      return figures.hosts.queue.boxes(model.queue.head.at(-1)[0]).map((one) => [one.y, one.x]);
    }"""
    found: list[tuple[float, float]] = view.page.evaluate(script)
    return dict(found)


def test_what_came_to_the_back_stands_below_the_back_of_a_short_queue(look: Look) -> None:
    actions = [
        {"do": "add_request", "id": "A", "prompt": {"tokens": 32}, "max_tokens": 1},
        {"do": "add_request", "id": "B", "prompt": {"tokens": 64}, "max_tokens": 9},
        STEP,
    ]
    view = look(scenario({"version": 1, "title": "short", "config": {"num_blocks": 12}, "actions": actions}))
    view.open("?at=3", 3)
    back = view.model()["queue"]["in"]
    assert [move["end"] for move in back] == ["back"]
    places = last_cells(view)
    strip, below = sorted(places)[-2:]
    assert places[below] == places[strip]


@pytest.mark.parametrize(("label", "width"), [("full_sequence_must_fit", 1440), ("full_sequence_must_fit", 390)])
def test_labels_of_the_probe_are_whole(view: Watched, label: str, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 900})
    view.open("/story/one-call?at=6", 6)
    view.page.click("#probe-tab")
    one = view.page.locator(f"label[for=probe-{label}]")
    expect(one).to_be_visible()
    assert one.evaluate("(it) => it.scrollWidth <= it.clientWidth && getComputedStyle(it).textOverflow !== 'ellipsis'")


@pytest.mark.parametrize("at", [9, 14, 15])
@pytest.mark.parametrize("width", [1440, 1024, 780])
def test_names_on_the_time_line_do_not_touch(view: Watched, at: int, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 900})
    view.open(f"/story/one-call?at={at}", at)
    shown = [one for one in view.page.locator(".scrub .under").all() if one.is_visible()]
    spans = sorted((place["x"], place["x"] + place["width"]) for one in shown if (place := one.bounding_box()))
    assert all(left[1] < right[0] for left, right in pairwise(spans)), spans


def test_the_foot_of_a_narrow_window_is_not_crowded(view: Watched) -> None:
    view.page.set_viewport_size({"width": 1024, "height": 768})
    view.open("/story/one-call?at=9", 9)
    now, was = box(view, "#usage-now"), box(view, "#usage-was")
    assert now["y"] + now["height"] <= was["y"]


def test_questions_on_the_phone_stand_apart(view: Watched) -> None:
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.open("/story/one-call?at=15", 15)
    view.page.click(".tabbar [data-tab=requests]")
    view.page.click(".row.stuck .ask")
    first, second = (one.bounding_box() for one in view.page.locator(".row.stuck .why").all())
    assert first
    assert second
    assert first["x"] + first["width"] + 6 <= second["x"] or first["y"] + first["height"] <= second["y"]


def test_a_small_pool_can_be_enlarged_and_escape_leaves(look: Look) -> None:
    view = look(scenario({"version": 1, "title": "small", "config": {"num_blocks": 10}, "actions": []}))
    view.open("?at=0", 0)
    size = "window.poolscope.figures.grid.pitch"
    assert view.page.evaluate(size) == 28
    view.page.click("#enlarge")
    view.until(f"{size} > 28", True)
    view.page.keyboard.press("Escape")
    view.until(size, 28)
    expect(view.page.locator("#enlarge")).to_have_attribute("aria-pressed", "false")


def test_long_ids_stay_in_their_column_when_they_finish(look: Look) -> None:
    add = {"do": "add_request", "id": "x" * 120, "prompt": {"tokens": 4}, "max_tokens": 1}
    view = look(scenario({"version": 1, "title": "long id", "config": {"num_blocks": 9}, "actions": [add, STEP]}))
    view.open("?at=2", 2)
    lists, done = box(view, "#requests"), box(view, ".done .name")
    assert done["x"] + done["width"] <= lists["x"] + lists["width"]


def test_on_paper_time_does_not_cover_the_call(view: Watched) -> None:
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.open("/story/one-call?at=6", 6)
    view.page.emulate_media(media="print")
    expect(view.page.locator("#transport")).to_be_hidden()
    assert view.page.locator("#call-panel").evaluate("(one) => one.scrollHeight <= one.clientHeight + 1")


@pytest.mark.parametrize("path", ["/embed/story/preemption", "/embed/story/one-call"])
@pytest.mark.parametrize("width", [360, 390, 700])
def test_the_head_of_an_embed_is_not_crowded(view: Watched, path: str, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 844})
    view.open(f"{path}?at=5", 5)
    places = [box(view, name) for name in (".top h1", "#time-where", "#open-in")]
    assert all(left["x"] + left["width"] <= right["x"] for left, right in pairwise(places)), places
    assert places[-1]["x"] + places[-1]["width"] <= width


def signs_and_words(view: Watched) -> list[tuple[float, float, float, float]]:
    """Left, right, width and top of what stands over the time line: signs and words."""
    script = """() => [...document.querySelectorAll(".scrub .over :is(.sign, em)")].map((one) => {
      const {left, right, width, top} = one.getBoundingClientRect();
      return [left, right, width, top];
    }).filter(([, , width]) => width > 0)"""
    return view.page.evaluate(script)  # type: ignore[no-any-return]


@pytest.mark.parametrize("width", [700, 960, 1024, 1440])
def test_what_stands_over_the_time_line_stands_apart(look: Look, width: int) -> None:
    crowded = crowd(["ada", "bo", "cy", "dan", "eve", "fay"], 14, tokens=70, steps=24)
    for scenario_, moments in ((story("preemption"), (4, 5, 6, 7)), (story("one-call"), (2, 15)), (crowded, (15, 30))):
        view = look(scenario_)
        view.page.set_viewport_size({"width": width, "height": 768})
        for at in moments:
            view.open(f"?at={at}", at)
            places = signs_and_words(view)
            assert places
            for (left, right, _, top), (other, _, _, below) in combinations(sorted(places), 2):
                assert right <= other + 1.5 or abs(top - below) > 5, (at, left, right, other)


@pytest.mark.parametrize("width", [1280, 1300, 1440])
def test_no_panel_runs_into_the_next(view: Watched, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 720})
    view.open("/story/one-call?at=6", 6)
    for name, under in (("pool", "queue"), ("queue", "tables"), ("tables", "hashes")):
        figure, below = box(view, f"#figure-{name}"), box(view, f"#{under}-head")
        assert figure["height"] >= 60, name
        assert figure["y"] + figure["height"] <= below["y"], name
