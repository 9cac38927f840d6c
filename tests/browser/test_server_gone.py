"""A server that goes away under an open page, two tabs on one session, a double click."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import serving
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15


def test_a_restart_is_told_and_the_page_comes_back(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        context = browser.new_context(base_url=site)
        view = Watched(context.new_page(), site)
        view.allowed += ["ERR_CONNECTION_REFUSED", "Failed to fetch"]
        view.open(f"/story/one-call?at={END}", END)
        view.click("#go-step", END + 1)
    view.page.keyboard.press("ArrowLeft")
    notice = view.page.locator("#notice")
    expect(notice).to_contain_text("does not answer")
    with serving(tmp_path, int(site.rpartition(":")[2])):
        expect(notice).to_contain_text("is back", timeout=15_000)
        view.press("ArrowLeft", END)
        view.press("ArrowRight", END + 1)
        view.click("#go-step", END + 2)
        view.check()
        context.close()


def test_a_double_click_is_one_step(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.page.dblclick("#go-step")
    view.wait(END + 1)
    expect(view.page).to_have_url(re.compile(r"at=16$"))


def test_two_tabs_on_one_session_go_the_same_way(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.click("#go-step", END + 1)
    other = Watched(view.page.context.new_page(), view.site)
    other.open(view.page.url, END + 1)
    view.click("#go-step", END + 2)
    other.click("#go-step", END + 2)  # the same action: it only moves there
    expect(other.page.locator("#transport .where b")).to_have_text("after 17 of 17")
    assert other.model() == view.model()
    other.check()
