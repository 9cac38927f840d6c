"""A recording opened from disk, without a network: time and selection as on the live page."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Route, expect

from app.rendering.glossary import MEANINGS
from app.services.links import encode
from engine.scenario import Scenario
from tests.browser.scenarios import HOSTILE, crowd, story
from tests.browser.test_accessible import FOLD, PHONE, WIDE, violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

LESSON = "/story/one-call"
END = 15
Record = Callable[..., Watched]


@pytest.fixture
def record(browser: Browser, tmp_path: Path, site: str) -> Iterator[Record]:
    """Download the recording of an address and open it from disk, with the network off: its page."""
    with ExitStack() as stack:

        def start(address: str, query: str = "", path: str = "", shown: int | None = None) -> Watched:
            file = tmp_path / "recording.html"
            with urlopen(f"{site}{address}/export.html{query}") as answer:
                file.write_bytes(answer.read())
            context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
            stack.callback(context.close)
            context.route(lambda url: not url.startswith(("file:", "data:", "blob:")), Route.abort)
            watched = Watched(context.new_page(), f"file://{tmp_path}", home=f"file://{file}")
            stack.callback(watched.check)
            watched.page.goto(f"file://{file}{path}")
            watched.wait(shown)
            return watched

        yield start


def home_of(scenario: Scenario) -> str:
    return f"/p/{encode(scenario, 0)}"


def told(view: Watched) -> list[str]:
    """What the page says, without what a recording does not offer."""
    page = view.page
    texts = [page.locator("#time-where b").inner_text(), page.locator("#log .sentences").inner_text()]
    texts += page.locator("#call .verdict, #call .detail, #call .formula, #call .note").all_inner_texts()
    # Cards where there is room, else rows of one line: what stands in both.
    texts += page.locator("#requests .row .head, #requests .row .caption").all_text_contents()
    return [" ".join(text.split()) for text in texts]


def card(view: Watched, block: int) -> str:
    view.page.evaluate("block => window.poolscope.selection.select(block, null)", block)
    expect(view.page.locator(f"#card .card[data-block='{block}']")).to_be_visible()
    return " ".join(view.page.locator("#card .card").inner_text().split())


def at(view: Watched, moment: int) -> dict[str, Any]:
    """Go there by the scrubber; the model."""
    view.page.evaluate(
        "at => { const range = document.getElementById('scrub'); range.value = at;"
        " range.dispatchEvent(new Event('input', {bubbles: true})); }",
        moment,
    )
    view.wait(moment)
    return view.model()


def test_it_shows_what_the_live_page_shows(view: Watched, record: Record) -> None:
    view.open(f"{LESSON}?at=0", 0)
    file = record(LESSON, shown=0)
    models = []
    for moment in range(END + 1):
        if moment:
            view.press("ArrowRight", moment)
            file.press("ArrowRight", moment)
        models.append(view.model())
        assert file.model() == models[-1], moment
        assert told(file) == told(view)
        assert file.ids("pool") == view.ids("pool")
        assert file.page.locator("form:not([method=dialog]), [hx-post], #probe-tab, #go-stop, .why").count() == 0
    for moment in (3, 12, 0, 7, 6, 15, 1):
        assert at(file, moment) == models[moment], moment
    file.press("Home", 0)
    file.press("End", END)
    assert file.model() == models[END]


def test_a_block_is_selected_in_all_panels_and_its_card_is_the_servers(view: Watched, record: Record) -> None:
    view.open(f"{LESSON}?at=6", 6)
    file = record(LESSON, shown=0)
    for moment in (6, 2, 15):
        at(view, moment)
        at(file, moment)
        for block in (0, 1, 3, 66, 67, 80, 100):
            assert card(file, block) == card(view, block), (moment, block)
    at(file, 6)
    file.page.click("#figure-pool", position={"x": 100, "y": 20})
    chosen = file.page.locator("#card .card").get_attribute("data-block")
    for figure in ("pool", "tables", "hashes"):
        expect(file.page.locator(f"#figure-{figure} .outline.selected").first).to_be_attached()
    file.page.click("#card .life a >> nth=0")
    file.moved(6)
    expect(file.page.locator(f"#card .card[data-block='{chosen}']")).to_be_visible()
    assert f"&sel=block:{chosen}" in file.page.url
    file.page.keyboard.press("Escape")
    expect(file.page.locator("#card")).to_be_hidden()


def test_hovering_a_block_opens_its_card(record: Record) -> None:
    file = record(LESSON, shown=0)
    file.press("End", END)
    file.page.hover("#figure-pool", position={"x": 100, "y": 20})
    expect(file.page.locator("#card .card")).to_be_visible()
    expect(file.page.locator("#figure-tables .outline.hovered").first).to_be_attached()


def test_it_plays(record: Record) -> None:
    file = record(LESSON, "?from=10", shown=10)
    file.page.click("#go-until")
    expect(file.page.locator("#time-until form")).to_have_count(0)
    file.page.select_option("#play-speed", "20")
    file.page.click("#play")
    file.wait(END)
    expect(file.page.locator("#play")).to_have_text("Play")


def test_a_range_is_left_nowhere(record: Record) -> None:
    file = record(LESSON, "?from=3&to=7", shown=3)
    assert file.page.title() == "Recording of One call, traced, moments 3 to 7 · Poolscope"
    expect(file.page.locator("#recorded")).to_have_text("recording, moments 3 to 7 of 15")
    expect(file.page.locator("#go-first")).to_have_attribute("aria-disabled", "true")
    expect(file.page.locator("#go-back")).to_have_attribute("aria-disabled", "true")
    file.press("End", 7)
    for button in ("#go-last", "#go-step"):
        expect(file.page.locator(button)).to_have_attribute("aria-disabled", "true")
    assert file.page.locator(".stop.outside").count() == 11
    assert at(file, 5)["at"] == 5
    file.page.focus("#scrub")
    file.page.keyboard.press("Home")
    file.wait(3)
    expect(file.page.locator("#scrub")).to_have_value("3")
    file.press("End", 7)
    card(file, 3)
    assert file.page.locator("#card .life li").count() == 4
    assert file.page.locator("#card .life .outside").count() == 3


def test_a_link_to_a_moment_of_the_file_opens_there(record: Record) -> None:
    file = record(LESSON, path="?branch=main&at=6&sel=block:3", shown=6)
    expect(file.page.locator("#card .card[data-block='3']")).to_contain_text("step 3")
    chip = file.page.locator(".chosen .stage.pop .chip").first
    assert str(chip.get_attribute("href")).endswith("?branch=main&at=6&sel=block:67")
    chip.click()
    expect(file.page.locator("#card .card[data-block='67']")).to_be_visible()


def test_of_many_calls_each_can_be_told(view: Watched, record: Record) -> None:
    scenario = crowd([f"r{i}" for i in range(6)], 400)
    file = record(home_of(scenario), shown=0)
    at(file, 7)
    for index in (0, 3, 5, 1):
        file.page.select_option("#call-menu", str(index))
        expect(file.page.locator("#call article.chosen")).to_have_attribute("id", f"call-{index}")
        expect(file.page.locator("#call-menu")).to_have_value(str(index))
    view.open(f"{home_of(scenario)}/?at=7&call=1", 7)
    live = view.page.locator("#call article.chosen").inner_text()
    assert file.page.locator("#call article.chosen").inner_text() == live


def test_it_says_what_its_words_mean(record: Record) -> None:
    file = record(LESSON, shown=0)
    at(file, 6)
    head = file.page.locator("#call .call.chosen .stage.pop details.opens")
    head.locator("summary").click()
    expect(head.locator("dd")).to_have_text([MEANINGS["pop"].sentence])
    at(file, 7)
    expect(file.page.locator("#call .call.chosen .stage.pop dd")).to_have_text([MEANINGS["pop"].sentence])
    file.page.click("text=What the words mean")
    expect(file.page.locator(".of-words")).to_contain_text(MEANINGS["occupancy"].sentence)


def test_a_storys_stops_lead_through_it(record: Record) -> None:
    file = record("/story/preemption", shown=0)
    file.page.click("#tour-next")
    file.moved(0)
    expect(file.page.locator("#tour-where")).to_contain_text("1 of")
    expect(file.page.locator("#tour-words li:not([hidden])")).to_have_count(1)


def test_hostile_ids_are_text(view: Watched, record: Record) -> None:
    scenario = crowd(HOSTILE, 60)
    view.open(f"{home_of(scenario)}/?at=0", 0)
    file = record(home_of(scenario), shown=0)
    for moment in (6, 7, 10, 2):
        assert at(file, moment) == at(view, moment)
        assert told(file) == told(view)
        for block in (1, 5, 9):
            assert card(file, block) == card(view, block)
    assert file.page.locator("main img, main b b").count() == 0


@pytest.mark.parametrize("name", ["window-holes", "partial-hit", "reset-refused"])
def test_other_stories_are_the_same_too(view: Watched, record: Record, name: str) -> None:
    end = len(story(name).actions)
    view.open(f"/story/{name}?at=0", 0)
    file = record(f"/story/{name}", shown=0)
    for moment in (end, end // 2, 1):
        assert at(file, moment) == at(view, moment)
        assert told(file) == told(view)


@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_it_has_no_violation(record: Record, size: tuple[int, int]) -> None:
    file = record(LESSON, "?from=2", path="?at=6&sel=block:3", shown=6)
    file.page.set_viewport_size({"width": size[0], "height": size[1]})
    expect(file.page.locator("#card .card")).to_be_visible()
    assert violations(file.page) == []


def test_pictures_are_saved_from_it_too(record: Record) -> None:
    file = record(LESSON, path="?at=6", shown=6)
    for kind, start in (("svg", b"<svg "), ("png", b"\x89PNG")):
        file.page.locator("details.save[data-picture=queue] summary").click()
        with file.page.expect_download() as download:
            file.page.click(f"details.save[data-picture=queue] [data-save={kind}]")
        assert download.value.suggested_filename == f"One-call-traced-queue-after-6.{kind}"
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_a_damaged_file_says_so(record: Record) -> None:
    file = record(LESSON, shown=0)
    path = Path(file.home.removeprefix("file://"))
    text = path.read_text()
    at = text.index('base64" id="recording"')
    path.write_text(text[: at + 4000] + "AAAA" + text[at + 4004 :])
    file.page.goto(file.home)
    expect(file.page.locator("#notice")).to_contain_text("can't read the recording")
    file.allowed += ["error"]
