"""Acting on the page: a session is made, requests are added and aborted, mistakes are told beside their field."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

END = 15


def add(view: Watched, name: str, tokens: str, **more: str) -> None:
    view.page.fill("#add-id", name)
    view.page.fill("#add-tokens", tokens)
    for field, value in more.items():
        view.page.fill(f"#add-{field}", value)
    view.page.click("#add-send")


def test_the_first_action_makes_a_session(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.click("#go-step", END + 1)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=16$"))
    view.press("ArrowLeft", END)
    view.press("ArrowRight", END + 1)
    add(view, "late", "32")
    view.wait(END + 2)
    expect(view.page.locator("#requests")).to_contain_text("late")
    view.page.reload()
    view.wait(END + 2)
    expect(view.page.locator("#requests")).to_contain_text("late")


def test_run_goes_on_until_nothing_is_left(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.page.click("#go-run")
    view.moved(END)
    expect(view.page.locator("#notice p")).not_to_be_empty()
    assert view.model()["tables"] == []


def test_a_mistake_is_told_beside_its_field_and_what_was_typed_stays(view: Watched) -> None:
    view.allowed.append("422")
    view.open(f"/story/one-call?at={END}", END)
    add(view, "mine", "many")
    field = view.page.locator(".field", has=view.page.locator("#add-tokens"))
    expect(field.locator(".says")).to_contain_text("whole number")
    expect(view.page.locator("#add-tokens")).to_have_value("many")
    expect(view.page.locator("#add-id")).to_have_value("mine")
    assert "/s/" not in view.page.url


def test_acting_on_the_past_makes_a_branch_with_a_way_back(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    both = "This makes a session of your own, with a branch from action 5."
    expect(view.page.locator("#add-makes")).to_have_text(both)
    add(view, "mine", "32")
    view.wait(6)
    expect(view.page.locator("#add-makes")).to_have_count(0)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=b2&at=6$"))
    expect(view.page.locator("#requests")).to_contain_text("mine")
    view.page.click("#notice >> text=Back to main")
    view.wait(5)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=5$"))
    expect(view.page.locator("#time-where b")).to_have_text("after 5 of 15")


def test_abort_and_reset_in_the_past_make_branches_too(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    view.page.click("#abort summary")
    both = "This makes a session of your own, with a branch from action 5."
    expect(view.page.locator("#abort-makes")).to_have_text(both)
    gone = view.page.locator("#abort-id").input_value()
    view.page.click("#abort-now")
    view.wait(6)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=b2&at=6$"))
    assert gone not in [table["id"] for table in view.model()["tables"]]
    expect(view.page.locator("#abort-makes")).to_have_text("")
    view.page.click("#notice >> text=Back to main")
    view.wait(5)
    view.page.click("#reset-now")
    view.wait(6)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=b3&at=6$"))
    expect(view.page.locator("#notice p")).to_contain_text("This is b3 now, a branch that leaves main after 5.")


def test_what_is_typed_stays_on_the_way_to_the_end(view: Watched) -> None:
    view.open("/story/one-call?at=5", 5)
    view.page.fill("#add-id", "mine")
    view.page.fill("#add-tokens", "32")
    view.click("#go-last", END)
    expect(view.page.locator("#add-makes")).to_have_text("This makes a session of your own.")
    expect(view.page.locator("#add-id")).to_have_value("mine")
    view.page.click("#add-send")
    view.wait(END + 1)
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=16$"))
    expect(view.page.locator("#requests")).to_contain_text("mine")


def test_stepping_keeps_what_is_being_typed(view: Watched) -> None:
    view.open("/story/one-call", 0)
    view.page.fill("#add-id", "half-typed")
    view.click("#go-step", 1)
    expect(view.page.locator("#add-id")).to_have_value("half-typed")
    expect(view.page.locator("#composer input[name=at]")).to_have_value("1")


def test_abort_now_and_while_a_step_runs(view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.page.click("#abort summary")
    view.page.select_option("#abort-id", "second")
    view.page.click("text=Abort now")
    view.wait(END + 1)
    expect(view.page.locator("#requests")).not_to_contain_text("second600")
    expect(view.page.locator("#abort details")).to_have_attribute("open", "")
    expect(view.page.locator("#live")).to_contain_text(f"after {END + 1} of {END + 1}")
    view.page.select_option("#abort-id", "holder")
    view.page.click("text=Abort while the next step runs")
    view.wait(END + 2)
    assert [table["id"] for table in view.model()["tables"]] == ["R"]


def test_hostile_ids_are_text_everywhere(view: Watched) -> None:
    hostile = "<b>x</b><img src=x onerror=alert(1)></script>"
    view.page.on("dialog", lambda dialog: view.wrong.append(f"a dialog opened: {dialog.message}"))
    view.open(f"/story/one-call?at={END}", END)
    view.page.click("#go-run")
    view.moved(END)
    at = view.model()["at"]
    add(view, hostile, "40")
    view.wait(at + 1)
    view.click("#go-step", at + 2)
    view.page.reload()
    view.wait(at + 2)
    assert view.page.locator("main img").count() == 0
    assert any(text.startswith(hostile[:5]) for text in view.notes("tables"))


def test_everything_works_without_javascript(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/story/one-call")
    page.click("#go-step")
    expect(page.locator("#transport .where b")).to_have_text("after 1 of 15")
    page.goto(f"/story/one-call?at={END}")
    page.click("#go-step")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=16$"))
    session = page.url.partition("?")[0]
    page.fill("#add-tokens", "many")
    page.fill("#add-id", "plain")
    page.click("#add-send")
    expect(page.locator(".field.wrong .says")).to_contain_text("whole number")
    expect(page.locator("#add-id")).to_have_value("plain")
    page.fill("#add-tokens", "20")
    page.click("#add-send")
    expect(page).to_have_url(re.compile(re.escape(session)))
    expect(page.locator("#requests")).to_contain_text("plain")
    page.click("#go-back")
    expect(page.locator("#transport .where b")).to_have_text("after 16 of 17")
    page.click("#stop-6")
    page.locator("#call .chip:visible").first.click()
    expect(page.locator("h2").first).to_contain_text("Block")
    page.click("text=Back to the workspace")
    expect(page.locator("#transport .where b")).to_have_text("after 6 of 17")
    context.close()


def test_others_look_and_cannot_act(browser: Browser, view: Watched) -> None:
    view.open(f"/story/one-call?at={END}", END)
    view.click("#go-step", END + 1)
    context = browser.new_context(base_url=view.site)
    other = Watched(context.new_page(), view.site)
    other.open(view.page.url, END + 1)
    expect(other.page.locator(".badge")).to_have_text("looking only")
    assert other.page.locator("#composer").count() == 0
    other.press("ArrowLeft", END)
    other.press("ArrowRight", END + 1)
    other.check()
    context.close()
