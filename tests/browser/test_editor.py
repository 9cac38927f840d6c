"""The editor in a browser: mistakes marked while one types, files chosen and dropped, keys; and without JavaScript."""

import base64
import gzip
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.routes.edit import EXAMPLE
from tests.browser.test_accessible import violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

FINE = "Fine. 8 actions, 21 blocks; replays to: 1 running, 0 waiting, 8 of 20 blocks held."
HOSTILE = "</textarea><img src=x onerror=alert(1)>"


def open_editor(view: Watched, path: str = "/edit") -> Page:
    view.page.goto(path)
    expect(view.page.locator("#verdict .fine")).to_be_visible()
    return view.page


def selected(page: Page) -> str:
    words: str = page.evaluate(
        "() => { const a = document.getElementById('text'); return a.value.slice(a.selectionStart, a.selectionEnd); }"
    )
    return words


def drop(page: Page, target: str, name: str, data: bytes) -> None:
    """Drop a file, as a browser tells of it."""
    transfer = page.evaluate_handle(
        "([name, bytes]) => { const files = new DataTransfer();"
        " files.items.add(new File([Uint8Array.from(atob(bytes), one => one.charCodeAt(0))], name)); return files; }",
        [name, base64.b64encode(data).decode()],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event(target, event, {"dataTransfer": transfer})


def lines_of(marks: Locator) -> list[str | None]:
    return [mark.get_attribute("data-line") for mark in marks.all()]


def test_a_mistake_is_marked_in_its_line_and_linked(view: Watched) -> None:
    page = open_editor(view)
    expect(page.locator("#verdict")).to_contain_text(FINE)
    expect(page.locator(".line-numbers span")).to_have_count(15)
    page.fill("#text", EXAMPLE.replace('"tokens": 20', '"tokens": true').replace('"step"}\n', '"stop😀"}\n'))
    expect(page.locator("#verdict .count")).to_have_text("2 things are wrong.")
    assert lines_of(page.locator(".marks p")) == ["6", "13"]
    expect(page.locator(".marks u")).to_have_text(["true", '"stop😀"'])
    expect(page.locator(".line-numbers b")).to_have_text(["6", "13"])
    expect(page.locator("#text")).to_have_attribute("aria-invalid", "true")
    # The mark lies where its word stands.
    page.click("#verdict .place >> nth=1")
    assert selected(page) == '"stop😀"'
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type('"step"')
    expect(page.locator("#verdict .count")).to_have_text("One thing is wrong.")
    page.click("#verdict .place")
    assert selected(page) == "true"
    page.keyboard.type("20")
    expect(page.locator("#verdict .fine")).to_have_text(FINE)
    expect(page.locator(".marks p")).to_have_count(0)
    page.click("#open")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=0"))
    view.wait(0)
    expect(page.locator("h1")).to_have_text("A second turn hits the first")


def test_a_mark_far_away_is_brought_into_view(view: Watched) -> None:
    page = open_editor(view)
    lines = [f'{{"do": "add_request", "id": "{n}", "prompt": [[{n}, 3]], "max_tokens": 1}}' for n in range(2000)]
    lines[1500] = lines[1500].replace('"max_tokens": 1', f'"cache_salt": "{"日本" * 90}", "max_tokens": "x"')
    head = '{"version": 1, "config": {"num_blocks": 9},\n"actions": [\n'
    # Typing so much takes Chromium half a minute, pasting it nothing.
    script = (
        "text => { const a = document.getElementById('text'); a.value = text; a.dispatchEvent(new Event('input')); }"
    )
    page.evaluate(script, head + ",\n".join(lines) + "]}")
    expect(page.locator("#verdict .place")).to_contain_text("line 1503")
    page.click("#verdict .place")
    assert selected(page) == '"x"'
    mark, field = page.locator(".marks u").bounding_box(), page.locator("#text").bounding_box()
    assert mark is not None
    assert field is not None
    assert field["x"] < mark["x"] < field["x"] + field["width"] - 20
    assert field["y"] < mark["y"] < field["y"] + field["height"] - 20
    expect(page.locator(".line-numbers b")).to_have_text("1503")


def test_a_refused_opening_shows_its_mistake_at_once(view: Watched) -> None:
    view.allowed.append("422")
    page = open_editor(view)
    page.fill("#text", EXAMPLE.replace('"id": "other"', '"id": "turn 1"'))
    page.focus("#text")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#verdict .problems")).to_contain_text("Request 'turn 1' is still alive.")
    expect(page.locator(".marks u")).to_have_text('"turn 1"')
    assert selected(page) == '"turn 1"'
    assert page.input_value("#text").count("turn 1") == 4


def test_keys_indent_and_never_hold_who_passes_through(view: Watched) -> None:
    page = open_editor(view)
    page.focus("#text")
    page.keyboard.press("Tab")
    expect(page.locator("#open")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("{")
    page.keyboard.press("Enter")
    page.keyboard.type('"a": [')
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("1")
    assert page.input_value("#text") == '{\n  "a": [\n      1'
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    assert page.input_value("#text") == '{\n  "a": [\n  1'
    page.keyboard.press("Control+z")
    assert page.input_value("#text") == '{\n  "a": [\n    1'
    expect(page.locator("#caret")).to_have_text(re.compile(r"line 3, column \d"))
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.locator("#open")).to_be_focused()


def test_tidy_can_be_undone(view: Watched) -> None:
    page = open_editor(view)
    crowded = re.sub(r"\s*\n\s*", " ", EXAMPLE)
    page.fill("#text", crowded)
    page.click("#tidy")
    expect(page.locator("#text")).to_have_value(EXAMPLE)
    page.focus("#text")
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_value(crowded)
    page.fill("#text", "{")
    view.allowed.append("400")
    page.click("#tidy")
    expect(page.locator("#verdict .problems")).to_contain_text("Not JSON")


def test_a_chosen_file_comes_into_the_text(view: Watched, tmp_path: Path) -> None:
    page = open_editor(view)
    file = tmp_path / "mine.json"
    file.write_bytes(b"\xef\xbb\xbf" + EXAMPLE.replace("turn 2", "next").replace("\n", "\r\n").encode())
    page.set_input_files("#file", file)
    expect(page.locator("#text")).to_have_value(EXAMPLE.replace("turn 2", "next"))
    expect(page.locator("#verdict")).to_contain_text("A byte order mark at its start was left out.")
    assert page.evaluate("document.getElementById('file').files.length") == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(EXAMPLE.encode()), '"f.json" is compressed (gzip).'),
        (b"", '"f.json" is empty.'),
        (b'{"a": "\xe4"}', '"f.json" is not text in UTF-8: byte 7, in line 1, can\'t be read.'),
        (b"x" * 10_000_000, "“f.json” is too large: it has 10 MB, and Poolscope takes 2.0 MB."),
    ],
)
def test_a_file_that_is_none_leaves_the_text_alone(view: Watched, tmp_path: Path, data: bytes, words: str) -> None:
    page = open_editor(view)
    file = tmp_path / "f.json"
    file.write_bytes(data)
    page.set_input_files("#file", file)
    expect(page.locator("#verdict")).to_contain_text(words)
    expect(page.locator("#text")).to_have_value(EXAMPLE)


def test_a_file_is_dropped_anywhere_on_the_editor(view: Watched) -> None:
    page = open_editor(view)
    for target in ("#text", ".beside"):
        drop(page, target, "f.json", EXAMPLE.replace("turn 1", target).encode())
        expect(page.locator("#text")).to_have_value(EXAMPLE.replace("turn 1", target))
    drop(page, "#text", f"{HOSTILE}.json", HOSTILE.encode())
    expect(page.locator("#text")).to_have_value(HOSTILE)
    expect(page.locator("#verdict .problems")).to_contain_text("This is a page, not a scenario.")
    assert page.locator("#verdict img").count() == 0
    drop(page, "#text", f"{HOSTILE}.json", b"\xff")
    expect(page.locator("#verdict .problems")).to_contain_text(HOSTILE)
    assert page.locator("#verdict img").count() == 0
    expect(page.locator("body.dragged")).to_have_count(0)


def test_a_file_dropped_on_the_workspace_is_opened(view: Watched) -> None:
    view.open("/story/one-call?at=3", 3)
    drop(view.page, "#figure-pool", "f.json", EXAMPLE.encode())
    expect(view.page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=0"))
    view.wait(0)
    expect(view.page.locator("h1")).to_have_text("A second turn hits the first")
    drop(view.page, "#figure-pool", "f.json", b"x" * 2_000_001)
    expect(view.page.locator("#notice")).to_contain_text("“f.json” is too large")
    view.allowed.append("400")
    drop(view.page, "body", "f.json", b"{")
    expect(view.page.locator("#verdict .problems")).to_contain_text("line 1, column 2")
    expect(view.page.locator("#text")).to_have_value("{")


def test_a_session_is_edited_from_its_page(view: Watched) -> None:
    page = view.page
    view.open("/story/one-call?at=15", 15)
    expect(page.locator(".top .to-open")).to_have_attribute("href", "../edit")
    view.click("#go-step", 16)
    page.click("#to-config a >> text=Edit")
    expect(page.locator("#verdict .fine")).to_contain_text("16 actions, 101 blocks")
    expect(page.locator(".download a")).to_have_attribute("href", "scenario.json?branch=main")
    page.fill("#text", page.input_value("#text").replace('"id": "second"', '"id": "late"'))
    expect(page.locator("#verdict .fine")).to_be_visible()
    page.click("#open")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=16"))
    view.wait(16)
    expect(page.locator("#requests")).to_contain_text("late")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_it_fits_and_has_no_violation(view: Watched, scheme: str, width: int) -> None:
    page = view.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 844})
    open_editor(view)
    assert violations(page) == []
    page.fill("#text", EXAMPLE.replace('"tokens": 20', '"tokens": true'))
    expect(page.locator("#verdict .problems")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_works_without_javascript(browser: Browser, site: str, tmp_path: Path) -> None:
    context = browser.new_context(base_url=site, java_script_enabled=False)
    page = context.new_page()
    page.goto("/edit")
    expect(page.locator("#text")).to_have_value(EXAMPLE)
    page.fill("#text", EXAMPLE.replace('"tokens": 20', '"tokens": true'))
    page.click('button:has-text("Check")')
    expect(page.locator("#verdict .problems")).to_contain_text("Got true.")
    expect(page.locator("#verdict mark")).to_have_text("true")
    file = tmp_path / "f.json"
    file.write_text(EXAMPLE.replace("turn 2", "next"))
    page.set_input_files("#file", file)
    page.click("#open")
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=0"))
    page.click("#to-config a >> text=Edit")
    expect(page.locator("#text")).to_have_value(EXAMPLE.replace("turn 2", "next"))
    file.write_bytes(b"x" * 10_000_000)
    page.set_input_files("#file", file)
    page.click("#open")
    expect(page.locator("h1")).to_have_text("That is too large")
    context.close()


@pytest.mark.parametrize("path", ["/", "/words", "/edit", "/new/config"])
def test_the_theme_is_switched_there_and_back(view: Watched, path: str) -> None:
    view.page.emulate_media(color_scheme="light")
    view.page.goto(path)
    for theme in ("dark", "light", "dark"):
        view.page.click("#theme")
        expect(view.page.locator("html")).to_have_attribute("data-theme", theme)


@pytest.mark.parametrize("where", ["", "config", "branches", "compare", "why", "words", "share", "none"])
def test_a_file_dropped_on_any_page_is_opened(view: Watched, where: str) -> None:
    page = view.page
    query = "?branch=main&at=15"
    page.goto(
        {
            "": "/",
            "words": "/words",
            "none": "/none",
            "config": f"/story/one-call/config{query}",
            "branches": f"/story/one-call/branches{query}",
            "compare": "/story/one-call/compare?a=main&b=main&at=15",
            "why": f"/story/one-call/why{query}&about=waiting&id=second",
            "share": f"/story/one-call/share{query}",
        }[where]
    )
    view.allowed += ["404", "409", "422", "400"]
    drop(page, "body", "f.json", b"x" * 2_000_001)
    expect(page.locator("#notice")).to_contain_text("“f.json” is too large")
    drop(page, "body", "f.json", EXAMPLE.encode())
    expect(page).to_have_url(re.compile(r"/s/[^/?]+\?branch=main&at=0"))
    expect(page.locator("h1")).to_have_text("A second turn hits the first")
