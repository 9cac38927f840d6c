"""The composer in a browser: text and JSON, the line that says which of them counts, and without JavaScript."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15
COLD = 20_000
"""Milliseconds: the first text loads the tokenizer, and a long one is laid out slowly."""


def open_more(view: Watched) -> Page:
    view.open(f"/story/one-call?at={END}", END)
    view.page.click("#composer summary")
    return view.page


def test_a_text_is_counted_while_it_is_typed_and_added(view: Watched) -> None:
    page = open_more(view)
    draft, tokens = page.locator("#draft"), page.locator("#add-tokens")
    expect(tokens).to_have_value("100")
    page.focus("#add-text")
    page.keyboard.type("Hello")
    page.keyboard.press("Enter")
    page.keyboard.type("world")
    expect(draft).to_have_text(
        "The text counts, with 3 tokens. 3 tokens, 1 block; a lookup now hits none of them.", timeout=COLD
    )
    expect(tokens).to_have_value("")
    expect(tokens).to_have_attribute("placeholder", "the text counts")
    page.fill("#add-text", "")
    expect(draft).to_have_text("100 tokens, 7 blocks; a lookup now hits none of them.")
    expect(tokens).to_have_value("100")
    page.fill("#add-text", "Hello\nworld")
    page.fill("#add-shared", "system")
    page.fill("#add-shared_tokens", "64")
    expect(draft).to_contain_text("67 tokens, 5 blocks")
    page.click("#add-send")
    view.wait(END + 1)
    expect(page.locator("#log")).to_contain_text("A arrives with 67 tokens")
    expect(page.locator("#add-text")).to_have_value("")
    expect(page.locator("#add-shared")).to_have_value("system")


def test_json_is_the_whole_prompt(view: Watched) -> None:
    page = open_more(view)
    page.fill("#add-json", '[[1000, 128], {"tokens": 172}]')
    expect(page.locator("#draft")).to_have_text(
        "The JSON counts. 300 tokens, 19 blocks; a lookup now hits 128 of them in 8 blocks."
    )
    page.fill("#add-json", '[[1000, 128], {"tokens": true}]')
    expect(page.locator("#draft")).to_have_text("[1].tokens: Got true. Expected: a whole number from 1.")
    page.fill("#add-json", '[[1000, 128], {"tokens": 172}]')
    page.click("#add-send")
    view.wait(END + 1)
    expect(page.locator("#log")).to_contain_text("A arrives with 300 tokens")


def test_two_prompts_at_once_are_told_beside_the_field(view: Watched) -> None:
    view.allowed.append("422")
    page = open_more(view)
    page.fill("#add-tokens", "33")
    page.fill("#add-text", "Hi")
    expect(page.locator("#draft")).to_contain_text("so tokens can't be given too.", timeout=COLD)
    expect(page.locator("#add-tokens")).to_have_value("33")
    page.focus("#add-text")
    page.click("#add-send")
    expect(page.locator("#add-tokens-says")).to_contain_text("The text below is the prompt")
    expect(page.locator("#add-tokens")).to_be_focused()
    expect(page.locator("#add-text")).to_have_value("Hi")
    page.fill("#add-tokens", "")
    page.click("#add-send")
    view.wait(END + 1)
    expect(page.locator("#log")).to_contain_text("A arrives with 1 token")


def test_what_it_comes_to_and_the_button_stay_in_sight(view: Watched) -> None:
    page = open_more(view)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        if width == 390:
            page.click("[data-tab=requests]")
        for name in ("add-text", "add-lora", "add-external_steps"):
            page.focus(f"#{name}")
            page.keyboard.type("1")
            foot, field = page.locator(".composer-foot").bounding_box(), page.locator(f"#{name}").bounding_box()
            assert foot is not None
            assert field is not None
            assert field["y"] + field["height"] <= foot["y"] + 1, name
            expect(page.locator("#add-send")).to_be_in_viewport()


def test_a_text_over_the_limit_is_told(view: Watched) -> None:
    view.allowed.append("413")
    page = open_more(view)
    # Typing so much takes Chromium long, pasting it nothing.
    page.evaluate(
        "() => { const field = document.getElementById('add-text'); field.value = '中'.repeat(230_000);"
        " field.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(page.locator("#notice")).to_contain_text("What was sent is larger than Poolscope takes.", timeout=COLD)
    expect(page.locator("#draft")).to_be_empty()
    page.fill("#add-text", "Hi")
    expect(page.locator("#draft")).to_contain_text("The text counts, with 1 token.", timeout=COLD)


def test_hostile_text_is_text(view: Watched) -> None:
    view.allowed.append("422")
    page = open_more(view)
    hostile = "</textarea><img src=x onerror=alert(1)>"
    page.fill("#add-text", hostile)
    page.fill("#add-max_tokens", "0")
    page.click("#add-send")
    expect(page.locator("#add-max_tokens")).to_have_attribute("aria-invalid", "true", timeout=COLD)
    expect(page.locator("#add-text")).to_have_value(hostile)
    page.fill("#add-max_tokens", "1")
    page.click("#add-send")
    view.wait(END + 1)
    assert page.locator("main img").count() == 0


def test_it_checks_and_adds_without_javascript(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/story/one-call?at={END}")
    page.click("#composer summary")
    page.fill("#add-text", "Hello\nworld")
    page.click('button:has-text("Check")')
    expect(page.locator("#add-tokens-says")).to_contain_text("The text below is the prompt")
    expect(page.locator("#add-text")).to_have_value("Hello\nworld")
    page.fill("#add-tokens", "")
    page.click('button:has-text("Check")')
    expect(page.locator("#draft")).to_contain_text("The text counts, with 3 tokens. 3 tokens, 1 block")
    page.press("#add-id", "Enter")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=16"))
    expect(page.locator("#log")).to_contain_text("A arrives with 3 tokens")
    context.close()
