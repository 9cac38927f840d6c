"""The panels: the traced call, probe, a block's biography, a Why? card, what links them, log, foot."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from engine.scenario import Scenario
from tests.browser.scenarios import HOSTILE, crowd, story
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15
Look = Callable[[Scenario], Watched]
SPOT = "(([...window.poolscope.figures.hosts.pool.spot ?? []]).sort((a, b) => a - b))"


def test_a_granted_call_stands_over_its_blocks(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    call = view.page.locator("article.call.chosen")
    assert call.locator(".terms span").all_inner_texts() == ["new_comp 128", "new 100", "later 72"]
    zeros = call.locator(".zeros span")
    assert zeros.all_inner_texts() == ["comp 0", "ext_comp 0", "lookahead 0"]
    # Each stands where its part would: at the start, before the new tokens and behind them, all inside the panel.
    terms = [box for box in (one.bounding_box() for one in call.locator(".bar .part").all()) if box]
    starts = [box["x"] for box in (one.bounding_box() for one in zeros.all()) if box]
    assert starts == pytest.approx([terms[0]["x"], terms[1]["x"], terms[2]["x"]], abs=2)
    assert call.locator(".slots .taken .chip").all_inner_texts() == ["67", "68", "69", "70", "71", "72", "73"]
    assert call.locator(".slots .chip").count() == 19
    assert call.locator(".gate .term b").all_inner_texts() == ["17", "5", "40"]
    assert call.locator(".gate .unit").count() == 40
    bar = call.locator(".bar").bounding_box()
    taken = call.locator(".slots .taken").bounding_box()
    assert bar is not None
    assert taken is not None
    start = bar["x"] + bar["width"] * 128 / 300
    assert taken["x"] == pytest.approx(start, abs=1.5)  # the new blocks stand under the new tokens


def test_a_refused_call_says_what_is_missing_and_what_happened_next(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    call = view.page.locator("article.call.chosen")
    expect(call.locator(".bracket")).to_have_text("21 more free blocks needed")
    assert call.locator(".gate .unit").count() == 43
    assert call.locator(".gate .unit.over").count() == 21
    expect(call.locator(".next h4")).to_have_text("Waiting pass: admission stops")
    mark = call.locator(".gate .mark").bounding_box()
    over = call.locator(".gate .unit.over").first.bounding_box()
    bracket = call.locator(".bracket").bounding_box()
    assert mark is not None
    assert over is not None
    assert bracket is not None
    assert mark["x"] <= over["x"] + 1
    assert bracket["x"] == pytest.approx(over["x"], abs=2)


def test_a_tab_chooses_a_call_and_the_address_says_so(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.click("[data-call='0']")
    expect(view.page.locator("article.call.chosen .verdict")).to_contain_text("holder")
    assert "call=0" in view.page.url
    view.page.reload()
    view.wait(6)
    expect(view.page.locator("article.call.chosen .verdict")).to_contain_text("holder")


def test_many_calls_are_a_menu_and_another_one_is_asked_for(look: Look) -> None:
    view = look(crowd([f"r{i}" for i in range(10)], 400))
    view.open("?at=12", 12)
    menu = view.page.locator("#call-menu")
    assert menu.locator("option").count() == 10
    assert view.page.locator("article.call").count() == 1
    menu.select_option("3")
    expect(view.page.locator("article.call.chosen .verdict")).to_contain_text("r3")
    view.press("ArrowRight", 13)
    expect(menu.locator("option")).to_have_count(10)


def test_a_preemption_is_told_in_the_call_that_caused_it(look: Look) -> None:
    view = look(story("preemption"))
    view.open("?at=5", 5)
    call = view.page.locator("article.call.chosen")
    expect(call.locator(".next h4")).to_have_text("Running pass: cy is preempted")
    expect(call.locator(".bracket")).to_have_text("1 more free block needed")
    assert call.locator(".bracket b").bounding_box()["x"] >= call.bounding_box()["x"]  # type: ignore[index]


def test_probe_answers_as_a_traced_call_and_changes_nothing(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    before = view.model()
    view.page.click("#probe-tab")
    expect(view.page.locator("#probe-new")).to_have_attribute("placeholder", re.compile("100"))
    view.page.select_option("#probe-full_sequence_must_fit", "no")
    view.page.click("#probe-send")
    probed = view.page.locator("#call-probe")
    expect(probed.locator(".verdict")).to_contain_text("Granted")
    expect(view.page.locator("#probe .proof")).to_contain_text("unchanged")
    assert view.model() == before
    view.press("ArrowLeft", END - 1)  # it is asked again of the other moment
    expect(view.page.locator("#probe input[name=at]")).to_have_value(str(END - 1))
    view.page.keyboard.press("Escape")
    expect(view.page.locator("#probe")).to_be_hidden()
    expect(view.page.locator("#call")).to_be_visible()


def test_a_wrong_argument_is_told_beside_its_field_alone(view: Watched) -> None:
    view.allowed.append("422")
    view.open(f"/story/one-call?at={END}", END)
    view.page.click("#probe-tab")
    view.page.fill("#probe-new", "many")
    view.page.click("#probe-send")
    expect(view.page.locator("#probe .field.wrong .says")).to_have_text("This is not a whole number.")
    expect(view.page.locator("#probe-new-says")).to_have_text("This is not a whole number.")
    expect(view.page.locator("#probe-new")).to_have_value("many")
    expect(view.page.locator("#notice")).to_have_text("")


def test_a_why_card_answers_and_follows_time(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.page.click(".row.stuck .ask")
    view.page.click(".row.stuck .why >> nth=0")
    card = view.page.locator("#card .why-card")
    expect(card.locator("h2")).to_have_text("Why is second waiting?")
    expect(card.locator(".answer")).to_contain_text("21 more free blocks")
    view.page.keyboard.press("Escape")
    expect(view.page.locator("#card")).to_be_hidden()


def test_a_block_has_a_life_with_links(view: Watched) -> None:
    view.open("/story/one-call?at=6&sel=block:3", 6)
    card = view.page.locator("#card .card")
    expect(card.locator(".life li")).to_have_count(4)
    card.locator(".life a").first.click()
    view.wait(2)
    expect(card.locator("header")).to_contain_text("free but cached")
    assert "sel=block:3" in view.page.url


def test_pointing_at_a_request_unveils_its_blocks(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.hover("#requests [data-request='2']")
    blocks = [*range(1, 9), *range(67, 74)]
    view.until(SPOT, blocks)
    view.page.hover(".chosen .stage.pop h4")
    view.until(SPOT, list(range(67, 74)))
    view.page.hover(".chosen .stage.release h4")
    view.until(SPOT, [])
    view.page.click("#requests [data-request='1'] .pick")
    assert "sel=request:holder" in view.page.url
    view.page.mouse.move(700, 400)
    view.until(f"{SPOT}.length", 60)
    view.page.reload()
    view.wait(6)
    view.until(f"{SPOT}.length", 60)
    view.page.keyboard.press("Escape")
    view.until(SPOT, [])
    assert "sel=" not in view.page.url


def test_pointing_at_a_term_outlines_what_it_counts(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    term = view.page.locator(".chosen .stage.count .term", has_text="idle hits")
    term.hover()
    for name, cells in (("pool", 6), ("tables", 6), ("queue", 6), ("hashes", 6)):
        path = view.page.locator(f"#figure-{name} .many").get_attribute("d") or ""
        assert path.count("M") == cells, name


def test_pointing_at_a_chip_points_everywhere(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.hover(".chosen .stage.pop [data-block='70']")
    assert view.page.locator(".outline.hovered").count() == 4
    assert view.page.locator(".chosen .chip.pointed").all_inner_texts() == ["70"] * 3


def test_the_foot_tells_the_blocks_and_the_run(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    facts = view.page.locator("#blocks-fact")
    assert facts.locator("[data-of=live]").inner_text() == "60 → 73"
    assert facts.locator("[data-of=cached]").inner_text() == "6 → 0"
    assert facts.locator("[data-of=empty]").inner_text() == "34 → 27"
    assert facts.locator("[data-of=slots]").inner_text() == "1142 of 1168"
    words = view.page.locator("#figure-series .words .mono").all_text_contents()
    assert words == ["0.73", "11.6 %", "27", "2, 0", "0"]
    view.press("ArrowLeft", 5)
    assert view.page.locator("#figure-series .words .mono").first.text_content() == "0.60"


def test_the_log_can_be_narrowed_and_stays_so(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    lines = view.page.locator("#log .sentences li:visible")
    everything = lines.count()
    view.page.select_option("#log-kind", label="cache lookups")
    expect(lines).to_have_count(1)
    view.page.select_option("#log-kind", label="KV events")
    expect(view.page.locator("#log .events li:visible")).to_contain_text(["BlockStored"])
    view.page.select_option("#log-kind", label="everything")
    expect(lines).to_have_count(everything)
    view.page.select_option("#log-request", label="holder")
    expect(lines).to_contain_text(["holder"])
    view.press("ArrowRight", 7)
    expect(view.page.locator("#log-request")).to_have_value("1")
    for text in lines.all_inner_texts():
        assert "holder" in text


def test_the_pool_fills_the_centre_and_zooms(look: Look) -> None:
    view = look(crowd([f"r{i}" for i in range(8)], 1000, tokens=600))
    view.open("?at=10", 10)
    assert view.ids("pool") == []
    view.page.click("#enlarge")
    for _ in range(4):
        view.page.click("#zoom-in")
    expect(view.page.locator("#figure-pool .words .mono").nth(1)).to_have_text("1")
    assert view.page.locator("#figure-queue").is_hidden()
    assert len(view.ids("pool")) < 500  # only what is in sight
    view.page.click("#enlarge")
    expect(view.page.locator("#figure-queue")).to_be_visible()


def test_on_a_phone_one_panel_at_a_time(view: Watched) -> None:
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.open("/story/one-call?at=6", 6)
    for tab, place in {
        "tables": "#figure-tables",
        "log": "#log",
        "time": "#figure-series",
        "requests": "#requests",
    }.items():
        view.page.click(f"[data-tab={tab}]")
        expect(view.page.locator(place)).to_be_visible()
        expect(view.page.locator("#figure-queue")).to_be_hidden()
    for name in ("first", "back", "step", "run", "last"):
        box = view.page.locator(f"#go-{name}").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44


def test_the_composer_opens_from_the_strip(view: Watched) -> None:
    view.page.set_viewport_size({"width": 1024, "height": 768})
    view.open(f"/story/one-call?at={END}", END)
    expect(view.page.locator("#add-id")).to_be_hidden()
    view.page.click("#open-composer")
    expect(view.page.locator("#add-id")).to_be_focused()
    view.page.fill("#add-tokens", "48")
    expect(view.page.locator("#draft")).to_contain_text("48 tokens, 3 blocks")


def test_hostile_and_foreign_ids_are_text(look: Look) -> None:
    view = look(crowd(HOSTILE, 200))
    view.page.on("dialog", lambda dialog: view.wrong.append(f"a dialog opened: {dialog.message}"))
    view.open("?at=8", 8)
    assert view.page.locator("main img").count() == 0
    rows = view.page.locator("#requests .pick")
    assert rows.all_inner_texts() == HOSTILE
    for number, name in enumerate(HOSTILE):
        rows.nth(number).click()
        assert view.page.evaluate("new URLSearchParams(location.search).get('sel')") == f"request:{name}"
    view.page.reload()
    view.wait(8)
    expect(view.page.locator(".row.picked .pick")).to_have_text(HOSTILE[-1])


def test_a_pool_of_one_usable_block(look: Look) -> None:
    view = look(crowd(["only"], 2, tokens=8))
    view.open("?", 0)
    for at in range(1, 6):
        view.press("ArrowRight", at)
    expect(view.page.locator("article.call.chosen .verdict")).to_contain_text("can never fit in a pool of 1")
    assert view.ids("pool") == ["0", "1"]


def test_two_hundred_requests(look: Look) -> None:
    view = look(crowd([f"r{i}" for i in range(200)], 2000, tokens=300))
    view.open("?at=201", 201)
    view.press("ArrowRight", 202)
    assert view.page.locator("#requests .row").count() <= 200
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 1440


def test_what_was_hit_and_what_is_new_stand_apart_in_a_table(view: Watched) -> None:
    view.open("?at=6", 6)
    assert [text for text in view.notes("tables") if "reused" in text or "to write" in text] == [
        "8 hits, 128 tokens reused",
        "7 new, 100 tokens to write",
    ]
    # What left the queue is lifted out at the end where it lay, in the order in which it lay there.
    assert view.ids("queue")[-13:] == [*map(str, range(8, 2, -1)), *map(str, range(67, 74))]
    assert view.shape("queue", "lifted cached")["path"] != "M-9,-9L-9,-9"
    view.press("ArrowRight", 7)
    assert not [text for text in view.notes("tables") if "reused" in text]


def test_an_id_from_right_to_left_turns_nothing_else(look: Look) -> None:
    view = look(crowd(["a\u202eb"], 40, steps=1))
    view.open("?at=2", 2)
    verdict = view.page.locator("article.call.chosen .verdict")
    assert "takes 8 new blocks" in verdict.inner_text()
    # The words behind the id start right of it.
    script = """verdict => {
      const [name, rest] = [verdict.querySelector('.name'), document.createRange()];
      rest.selectNodeContents(name.nextSibling);
      return [name.getBoundingClientRect().right, rest.getClientRects()[0].left];
    }"""
    right, left = verdict.evaluate(script)
    assert left >= right - 1


def test_all_rows_of_many_requests_stay_until_fewer_are_asked_for(look: Callable[[Scenario], Watched]) -> None:
    view = look(crowd([f"r{i}" for i in range(50)], 600, tokens=4))
    view.open("?at=51", 51)
    rows = view.page.locator("#requests .row")
    expect(rows).to_have_count(40)
    view.page.click("[data-rows=all]")
    expect(rows).to_have_count(50)
    view.click("#go-step", 52)
    expect(rows).to_have_count(50)
    assert "rows=all" in view.page.url
    view.page.reload()
    view.wait(52)
    expect(rows).to_have_count(50)
    view.page.click("[data-rows='']")
    expect(rows).to_have_count(40)
    view.click("#go-step", 53)
    expect(rows).to_have_count(40)
    assert "rows" not in view.page.url


def test_a_pool_without_a_usable_block_divides_nothing(look: Look) -> None:
    view = look(crowd(["a"], 1, steps=1))
    view.open("?at=2", 2)
    assert view.page.locator("[data-of=slots]").inner_text() == "0 of 0"
    assert view.page.locator("[data-of=occupancy]").inner_text() == "\u2013"
    assert "NaN" not in view.page.locator("body").inner_text()
