"""Branches on the page: made, named, switched, deleted, compared, forked; what if."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15


def branch(view: Watched) -> None:
    """A branch that leaves main after 5, with a request of its own."""
    view.open("/story/one-call?at=5", 5)
    view.page.fill("#add-id", "mine")
    view.page.fill("#add-tokens", "32")
    view.page.click("#add-send")
    view.wait(6)


def open_list(view: Watched) -> None:
    view.page.click("#go-branches")
    expect(view.page.locator(".branch-list")).to_be_visible()


def test_named_switched_deleted(view: Watched) -> None:
    branch(view)
    open_list(view)
    view.page.fill("#branch-name", "with mine <b>")
    view.page.click("text=Rename")
    expect(view.page.locator("#go-branches")).to_have_text("with mine <b>")
    expect(view.page.locator(".branch-list")).to_have_count(0)
    open_list(view)
    view.page.click(".branch-list >> text=main")
    expect(view.page.locator("#time-where b")).to_have_text("after 6 of 15")
    expect(view.page).to_have_url(re.compile(r"\?branch=main&at=6$"))
    expect(view.page.locator("#requests")).not_to_contain_text("mine")
    open_list(view)
    view.page.fill("#branch-name", "with mine <b>")
    view.allowed.append("422")
    view.page.click("text=Rename")
    expect(view.page.locator(".branches .error")).to_contain_text("Another branch has, or had, this name.")
    view.page.click("#branch-delete")
    expect(view.page.locator("#go-branches")).to_have_text("with mine <b>")
    expect(view.page.locator("#requests")).to_contain_text("mine")
    view.page.reload()
    view.wait(6)
    expect(view.page.locator("#requests")).to_contain_text("mine")


@pytest.mark.parametrize("asks", ["#go-step", "#go-share"])
def test_a_page_on_a_branch_that_is_gone_leads_on(view: Watched, asks: str) -> None:
    branch(view)
    session = view.page.url.partition("?")[0]
    view.allowed.append("409")
    elsewhere = view.page.context.request
    elsewhere.post(f"{session}/delete", form={"branch": "b2"}, headers={"Origin": view.site, "Accept": "text/html"})
    view.page.click(asks)
    expect(view.page.locator("#notice p")).to_contain_text("The branch b2 was deleted.")
    expect(view.page.locator("#notice a")).to_have_attribute("href", session)
    view.page.click("#notice a")
    view.wait(END)
    expect(view.page.locator("#requests")).not_to_contain_text("mine")


def test_a_page_of_a_session_that_is_gone_leads_to_the_start(view: Watched) -> None:
    branch(view)
    session = view.page.url.partition("?")[0]
    secret = next(one["value"] for one in view.page.context.cookies(session) if one["name"] == "poolscope_owner")
    view.allowed.append("404")
    api = session.replace("/s/", "/api/sessions/")
    gone = view.page.context.request.delete(api, headers={"Origin": view.site, "Authorization": f"Bearer {secret}"})
    assert gone.status == 204
    view.page.click("#go-step")
    expect(view.page.locator("#notice p")).to_contain_text("There is no session of this name.")
    expect(view.page.locator("#notice a")).to_have_text("Go to the start")
    expect(view.page.locator("#notice a")).to_have_attribute("href", f"{view.site}/")


def test_a_click_on_the_builtin_page_asks_what_if(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    open_list(view)
    view.page.fill("#vary-watermark", "0.5")
    view.page.click("li:has(#vary-watermark) button")
    expect(view.page.locator("#notice")).to_contain_text("What if: watermark 0.5")
    expect(view.page.locator("#call")).to_contain_text("and 50 must stay behind")
    view.page.click("#notice >> text=Compare")
    view.wait(END)
    expect(view.page.locator("#parting")).to_have_text(
        "They part in step 3: R is refused in watermark 0.5; in main it gets 15 blocks, 8 of them hits."
    )
    view.click("#go-parting", 6)
    expect(view.page).to_have_url(re.compile(r"compare\?a=main&b=b2&at=6$"))
    expect(view.page.locator("[data-row=R] .what >> nth=0")).to_contain_text("100 tokens scheduled")
    expect(view.page.locator("[data-row=R] .what >> nth=1")).to_contain_text(
        "refused: 27 more free blocks needed (differs)"
    )
    view.press("ArrowLeft", 5)
    expect(view.page.locator("tr.differs")).to_have_count(0)
    view.click("#go-next", 6)
    view.press("End", END)
    view.page.click("#head-b a")
    view.wait(END)
    expect(view.page.locator("#go-branches")).to_have_text("watermark 0.5")


def test_the_header_tells_the_config_of_the_branch_and_back_leads_to_the_one_before(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    view.click("#go-step", 6)
    open_list(view)
    view.page.fill("#vary-num_blocks", "202")
    view.page.click("li:has(#vary-num_blocks) button")
    words = view.page.locator("#config-words")
    expect(words).to_have_text("202 blocks of 16 tokens, watermark 10 blocks")
    view.page.click("#go-first")
    view.wait(0)
    view.page.go_back()
    expect(words).to_have_text("101 blocks of 16 tokens, watermark 5 blocks")
    expect(view.page).to_have_url(re.compile(r"/story/one-call\?.*at=6"))


def test_an_impossible_value_is_told_in_the_list(view: Watched) -> None:
    view.allowed.append("422")
    view.open("/story/one-call?at=3", 3)
    open_list(view)
    view.page.fill("#vary-watermark", "7")
    view.page.click("li:has(#vary-watermark) button")
    expect(view.page.locator(".branches .error")).to_contain_text("watermark")
    assert "/s/" not in view.page.url


def test_a_stranger_forks_a_copy_and_acts_on_it(browser: Browser, view: Watched) -> None:
    branch(view)
    context = browser.new_context(base_url=view.site, viewport={"width": 390, "height": 844})
    other = Watched(context.new_page(), view.site)
    other.open(view.page.url, 6)
    open_list(other)
    other.page.click("#branch-fork")
    other.wait(6)
    assert other.page.url.partition("?")[0] != view.page.url.partition("?")[0]
    expect(other.page.locator(".badge")).to_have_count(0)
    other.click("#go-step", 7)
    other.check()
    context.close()


def test_branches_without_javascript(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/story/one-call?at=5")
    page.fill("#add-tokens", "20")
    page.click("#add-send")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=b2&at=6&left=main$"))
    expect(page.locator("#notice")).to_contain_text("leaves main after 5")
    page.click("#go-branches")
    page.fill("#branch-name", "plain")
    page.click("text=Rename")
    expect(page.locator("#go-branches")).to_have_text("plain")
    page.click("#go-branches")
    page.fill("#vary-watermark", "7")
    page.click("li:has(#vary-watermark) button")
    expect(page.locator(".error")).to_contain_text("watermark")
    page.click("text=Back to the workspace")
    page.click("#go-branches")
    page.click("text=compare")
    expect(page.locator("#parting")).to_contain_text("They part after 5 actions: plain goes on with")
    page.click("#go-back")
    expect(page.locator("tr.differs")).to_have_count(0)
    page.click("#head-b a")
    expect(page.locator("#time-where b")).to_have_text("after 5 of 15")
    page.click("#go-until")
    page.click("[data-until=finish]")
    expect(page.locator("#notice")).to_contain_text("finished.")
    context.close()
