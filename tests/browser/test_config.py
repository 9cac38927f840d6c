"""The config form in a browser: a hybrid session is made, a request added and stepped, both groups' tables read."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.watched import Watched

pytestmark = pytest.mark.browser


def test_a_hybrid_session_is_made_and_stepped(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=3", 3)
    page.click("#to-config a")
    expect(page).to_have_url(re.compile(r"/config\?branch=main&at=3$"))
    expect(page.locator(".group:visible")).to_have_count(1)
    page.fill('[name="num_blocks"]', "33")
    page.fill('[name="block_size"]', "4")
    page.click("#add-group")
    expect(page.locator(".group:visible")).to_have_count(2)
    page.select_option('[name="groups.1.kind"]', "sliding_window")
    page.fill('[name="groups.1.sliding_window"]', "6")
    page.click("#make")
    view.wait(0)
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=0$"))
    expect(page.locator(".top .summary")).to_contain_text("33 blocks of 4 tokens, full attention and sliding window")
    page.fill("#add-tokens", "14")
    page.click("#add-send")
    view.wait(1)
    view.click("#go-step", 2)
    view.click("#go-step", 3)
    tables = view.model()["tables"]
    assert [(table["id"], table["group"], [cell[1:3] for cell in table["cells"]]) for table in tables] == [
        ("A", 0, [[1, "new"], [2, "new"], [3, "new"], [4, "new"]]),
        ("A", 1, [[0, "null"], [0, "null"], [7, "new"], [8, "new"]]),
    ]
    notes = view.notes("tables")
    assert [text for text in notes if "·" in text] == ["full attention · 4", "sliding window · 4"]
    expect(page.locator("#log")).to_contain_text("2 blocks of A fell out of the sliding window: 6, 5.")
    expect(page.locator("#call .chosen .stage.release")).to_contain_text("sliding window: fell out of the window")
    assert page.locator("#add-external_tokens").count() == 0
    href = page.locator("#to-config a").first.get_attribute("href")
    assert href == page.url.rpartition("/")[2].replace("?", "/config?")


def test_a_mistake_stands_beside_its_field_and_rows_come_and_go(view: Watched) -> None:
    view.allowed.append("422")
    page = view.page
    page.goto("/story/one-call/config")
    for row, kind in ((1, "mamba"), (2, "sliding_window"), (3, "full_attention"), (4, "chunked_local_attention")):
        page.click("#add-group")
        page.select_option(f'[name="groups.{row}.kind"]', kind)
    expect(page.locator(".group:visible .nth")).to_have_text(["0", "1", "2", "3", "4"])
    page.locator(".group:visible").nth(3).locator(".remove").click()
    page.fill('[name="groups.4.attention_chunk_size"]', "8")
    page.click("#make")
    wrong = page.locator(".option.wrong")
    expect(wrong).to_have_count(1)
    expect(wrong).to_contain_text('The key "sliding_window" is missing.')
    expect(page.locator('[name="groups.2.sliding_window"]')).to_be_focused()
    expect(page.locator('[name="groups.4.attention_chunk_size"]')).to_have_value("8")
    expect(page.locator(".group:visible .nth")).to_have_text(["0", "1", "2", "3"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_form_is_never_wider_than_the_window(view: Watched, scheme: str, width: int) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": width, "height": 844})
    view.page.goto("/story/one-call/config")
    view.page.click("#add-group")
    view.page.select_option('[name="groups.1.kind"]', "mamba")
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_connector_that_comes_later_is_told(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=15", 15)
    page.click("#composer summary")
    page.fill("#add-id", "far")
    page.fill("#add-tokens", "64")
    page.fill("#add-external_tokens", "32")
    page.check("#add-external_async")
    page.fill("#add-external_steps", "3")
    page.click("#add-send")
    view.wait(16)
    expect(page.locator("#notice")).to_contain_text("This scenario has a connector now.")
    page.click("#go-step")
    view.wait(17)


def test_the_form_works_without_javascript(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/story/one-call/config")
    expect(page.locator(".group:visible")).to_have_count(4)
    page.select_option('[name="groups.2.kind"]', "mamba")
    page.check('[name="keep"]')
    page.fill('[name="num_blocks"]', "500")
    page.click("#make")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=15$"))
    expect(page.locator(".top .summary")).to_contain_text("500 blocks of 16 tokens, full attention and Mamba")
    context.close()
