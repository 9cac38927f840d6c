"""The share dialog, links opened, and an embed on a page of another host, in a real browser."""

import http.server
import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from app.services.links import decode, encode
from engine.scenario import Limits
from tests.browser.scenarios import crowd
from tests.browser.test_accessible import PHONE, WIDE, violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser


def test_the_dialog_shares_what_is_seen_now(view: Watched) -> None:
    page = view.page
    view.open("/story/watermark?at=7&sel=request:cy", 7)
    view.click("#tour-next", 8)
    page.locator("#go-share").click()
    dialog = page.get_by_role("dialog", name="Share this moment")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("The watermark, after 8 of 10, with request bo selected")
    expect(dialog.locator("#loopback")).to_contain_text("open on this computer only")
    link = dialog.locator("#share-permalink").input_value()
    held = decode(link.split("/")[-2], Limits())
    assert (held.at, held.select) == (8, "request:bo")
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.goto(link)
    view.wait(8)
    expect(page.locator("#requests .picked")).to_contain_text("bo")


def test_a_short_link_is_made_in_the_dialog_and_opens(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=6&sel=block:3", 6)
    page.keyboard.press("s")
    dialog = page.get_by_role("dialog", name="Share this moment")
    code = dialog.locator(".qr path").get_attribute("d")
    page.locator("#make-short").click()
    link = page.locator("#share-short").input_value()
    assert re.fullmatch(r".*/l/[a-z2-9]{8}", link)
    expect(dialog).to_be_visible()
    assert dialog.locator(".qr path").get_attribute("d") != code
    page.goto(link)
    view.wait(6)
    expect(page.locator("#card h2")).to_have_text("Block 3")
    view.press("ArrowRight", 7)
    expect(page).to_have_url(re.compile(r"/l/[a-z2-9]{8}\?branch=main&at=7&sel=block:3$"))
    view.press("End", 15)
    view.click("#go-step", 16)
    expect(page).to_have_url(re.compile(r"/s/[a-z0-9]{12}\?branch=main&at=16"))
    page.locator("#go-share").click()
    expect(page.locator("#share-session")).to_have_value(re.compile(r"/s/[a-z0-9]{12}\?branch=main&at=16"))


def test_what_is_copied_is_what_stands_there(browser: Browser, site: str) -> None:
    context = browser.new_context(base_url=site, permissions=["clipboard-read", "clipboard-write"])
    view = Watched(context.new_page(), site)
    view.open("/story/one-call?at=6", 6)
    view.page.locator("#go-share").click()
    for name in ("share-permalink", "share-embed"):
        button = view.page.locator(f"[data-copy={name}]")
        button.click()
        expect(button).to_have_text("Copied")
        assert view.page.evaluate("navigator.clipboard.readText()") == view.page.locator(f"#{name}").input_value()
    view.check()
    context.close()


def test_the_dialog_fits_a_phone(view: Watched) -> None:
    view.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    view.open("/story/one-call?at=6", 6)
    view.page.locator("#go-share").click()
    expect(view.page.locator("#share .share")).to_be_visible()
    box = view.page.locator("#share").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE[0]
    assert view.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]


def test_a_permalink_is_stepped_through_and_acted_on(view: Watched) -> None:
    page = view.page
    view.open("/new", 0)
    page.locator("#add-id").fill("mine")
    page.locator("#add-send").click()
    view.wait(1)
    view.click("#go-step", 2)
    page.locator("#go-share").click()
    link = page.locator("#share-permalink").input_value()
    page.goto(link)
    view.wait(2)
    expect(page).to_have_url(re.compile(r"/p/[A-Za-z0-9_-]+/$"))
    view.press("Home", 0)
    view.press("ArrowRight", 1)
    expect(page).to_have_url(re.compile(r"/p/[A-Za-z0-9_-]+/\?branch=main&at=1$"))
    page.reload()
    view.wait(1)
    view.press("End", 2)
    view.click("#go-step", 3)
    expect(page).to_have_url(re.compile(r"/s/[a-z0-9]{12}\?branch=main&at=3"))
    page.go_back()
    view.wait(2)


@pytest.mark.parametrize("path", ["/p/-broken/", "/l/abcdefgh", "/story/nothing", "/embed/p/2future/"])
def test_pages_of_links_that_do_not_open_have_no_violation(view: Watched, path: str) -> None:
    view.allowed.append("Failed to load resource")
    view.page.goto(path)
    expect(view.page.get_by_role("heading", level=1)).to_contain_text(
        "his link" if "story" not in path else "no such story"
    )
    assert violations(view.page) == []


# ---- embeds


@pytest.fixture
def other_host() -> Iterator[tuple[str, list[str]]]:
    """A page of another host: its address, and the list that holds its HTML."""
    pages = [""]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>Notes</title><link rel=icon href=data:,>{pages[0]}".encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}", pages
    server.shutdown()
    server.server_close()


def test_the_snippet_works_on_a_page_of_another_host(
    browser: Browser, site: str, other_host: tuple[str, list[str]]
) -> None:
    address, pages = other_host
    context = browser.new_context(base_url=site, viewport={"width": WIDE[0], "height": WIDE[1]})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto("/story/one-call?at=5&sel=block:3")
    expect(page.locator("html[data-shown='5']")).to_be_attached()
    page.locator("#go-share").click()
    pages[0] = page.locator("#share-embed").input_value()
    page.goto(address)
    frame = page.frame_locator("iframe")
    expect(frame.locator("html[data-shown='5']")).to_be_attached()
    expect(frame.locator("#card h2")).to_have_text("Block 3")
    frame.locator("#go-step").click()
    expect(frame.locator("html[data-shown='6']")).to_be_attached()
    expect(frame.locator("#call .call.chosen .verdict")).to_contain_text("R reuses 8 cached blocks")
    expect(frame.locator("#composer")).to_have_count(0)
    expect(frame.locator("#go-run")).to_be_hidden()
    with context.expect_page() as opened:
        frame.locator("#open-in").click()
    whole = opened.value
    expect(whole.locator("html[data-shown='6']")).to_be_attached()
    expect(whole).to_have_url(re.compile(r"/p/[A-Za-z0-9_-]+/\?branch=main&at=6&sel=block"))
    expect(whole.locator("#composer")).to_be_visible()
    assert wrong == []
    assert context.cookies() == []
    context.close()


def test_a_page_that_is_no_embed_stays_out_of_frames(
    browser: Browser, site: str, other_host: tuple[str, list[str]]
) -> None:
    address, pages = other_host
    pages[0] = f'<iframe src="{site}/story/one-call"></iframe>'
    page = browser.new_page()
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto(address)
    expect(page.frame_locator("iframe").locator("#transport")).to_have_count(0)
    assert any("frame-ancestors" in text for text in messages)
    page.close()


@pytest.mark.parametrize("size", [(800, 640), WIDE, PHONE])
def test_an_embed_has_no_violation_and_fits(view: Watched, size: tuple[int, int]) -> None:
    view.page.set_viewport_size({"width": size[0], "height": size[1]})
    for at in (0, 6):
        view.open(f"/embed/story/one-call?at={at}", at)
        assert violations(view.page) == []
        assert view.page.evaluate("document.documentElement.scrollWidth") == size[0]


def test_a_crowd_of_hostile_ids_is_shared_as_text(view: Watched) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    view.page.on("dialog", lambda dialog: view.wrong.append(f"a dialog opened: {dialog.message}"))
    view.open(f"/p/{encode(crowd([hostile, 'b'], 40), 3)}/?at=3&sel=request:{hostile}", 3)
    view.page.locator("#go-share").click()
    expect(view.page.locator("#share")).to_contain_text(f"with request {hostile} selected")
    view.page.goto(view.page.locator("#share-permalink").input_value())
    view.wait(3)
    expect(view.page.locator("#requests .picked")).to_contain_text(hostile)
