"""`/docs`: Swagger UI from our own files, under the content security policy, and it works."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.test_accessible import PHONE, WIDE
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_operation_is_shown(view: Watched, scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.goto("/docs")
    shown = view.page.locator("#docs .opblock")
    expect(shown).to_have_count(8)
    assert view.page.locator("#docs .opblock-summary-path").first.text_content() == "/api/sessions"
    dark = view.page.evaluate("document.documentElement.classList.contains('dark-mode')")
    assert dark is (scheme == "dark")


@pytest.mark.parametrize("size", [WIDE, PHONE])
def test_nothing_is_wider_than_the_page(view: Watched, size: tuple[int, int]) -> None:
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    view.page.goto("/docs")
    expect(view.page.locator("#docs .opblock")).to_have_count(8)
    assert view.page.evaluate("document.documentElement.scrollWidth") <= size[0]


def test_an_operation_can_be_tried(view: Watched) -> None:
    view.page.goto("/docs#/sessions/createSession")
    block = view.page.locator("#operations-sessions-createSession")
    block.locator(".try-out__btn").click()
    block.locator(".execute").click()
    answer = block.locator(".live-responses-table .response .highlight-code code").first
    expect(answer).to_contain_text("secret")
    made = json.loads(answer.text_content() or "")
    assert view.page.request.get(f"/api/sessions/{made['id']}").json()["at"] == 2
