"""The gallery in a real browser: it fits every window, keys reach everything, a card opens what it draws."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from app.gallery import TOPICS
from tests.browser.test_accessible import FOLD, PHONE, WIDE, violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

SHOWN = "[...document.querySelectorAll('.story')].filter(one => one.offsetParent).length"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, FOLD, PHONE])
def test_it_has_no_violation_and_nothing_sticks_out(view: Watched, size: tuple[int, int], scheme: str) -> None:
    view.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    view.page.goto("/")
    assert violations(view.page) == []
    assert view.page.evaluate("document.documentElement.scrollWidth") == size[0]
    assert view.page.evaluate(SHOWN) == 24


def test_a_topic_is_chosen_without_asking_the_server(view: Watched) -> None:
    page = view.page
    page.goto("/", wait_until="networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.resource_type))
    for name, slugs in TOPICS.items():
        page.get_by_role("navigation", name="Topics").get_by_role("link", name=name).click()
        assert page.evaluate(SHOWN) == len(slugs)
    assert page.url.endswith("/?topic=windows-and-mamba")
    assert set(asked) <= {"other"}  # Chromium asks for the icon again
    page.reload()
    assert page.evaluate(SHOWN) == len(TOPICS["Windows and Mamba"])
    page.get_by_role("link", name="All").click()
    assert page.evaluate(SHOWN) == 24


def test_a_card_opens_the_moment_that_it_draws(view: Watched) -> None:
    page = view.page
    page.goto("/")
    card = page.locator(".story", has_text="The watermark")
    drawn = card.locator("text").all_text_contents()
    card.click(position={"x": 20, "y": 20})  # anywhere on it
    view.wait(7)
    assert page.url.endswith("/story/watermark?branch=main&at=7&sel=request:cy")
    expect(page.locator("#tour-where")).to_have_text("2 of 4")
    assert drawn == [str(block) for block in range(1, 9)]
    assert view.page.evaluate("window.poolscope.model.pool.isChanged(4)") is True


def test_keys_reach_the_lesson_the_blank_session_the_topics_and_every_story(view: Watched) -> None:
    page = view.page
    page.goto("/")
    reached = []
    for _ in range(36):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.id"))
    assert reached[:4] == ["#stories", "theme", "story/one-call", "new"]
    assert sum(one.startswith("story/") for one in reached) == 25
    page.locator("#open-blank").focus()
    page.keyboard.press("Enter")
    view.wait(0)
    assert page.url.endswith("/new")


def test_the_theme_can_be_switched(view: Watched) -> None:
    page = view.page
    page.goto("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    before = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.evaluate(ground) != before
    page.reload()
    assert page.evaluate(ground) != before


@pytest.fixture
def plain(browser: Browser, site: str) -> Iterator[Watched]:
    """A page without JavaScript."""
    context = browser.new_context(base_url=site, java_script_enabled=False)
    yield Watched(context.new_page(), site)
    context.close()


def test_without_javascript_topics_stories_and_stops_are_links(plain: Watched) -> None:
    page = plain.page
    page.goto("/")
    page.get_by_role("link", name="Eviction").click()
    expect(page.locator(".story:not([hidden])")).to_have_count(3)
    page.get_by_role("link", name="A chain eaten from its tail").click()
    expect(page.locator("#tour-where")).to_have_text("3 of 3")
    page.locator("#tour-back").click()
    expect(page.locator("#tour-words li:not([hidden])")).to_contain_text("bo was given 5, 4 and 3")
    page.locator("#go-share").click()
    expect(page.locator("#share-permalink")).to_be_visible()
    page.locator("#make-short").click()
    expect(page.locator("#share-short")).to_be_visible()
    page.get_by_role("link", name="Back to the workspace").click()
    expect(page.locator("#tour-where")).to_have_text("2 of 3")
