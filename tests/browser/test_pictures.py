"""Figures saved as PNG and SVG: what is in them, how large they are, what they are called."""

import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from engine.scenario import Scenario
from tests.browser.scenarios import HOSTILE, crowd
from tests.browser.test_accessible import violations
from tests.browser.watched import Watched

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
FIGURES = ["pool", "queue", "tables", "hashes", "usage", "blocks", "series"]


def saved(page: Page, name: str, kind: str) -> tuple[str, bytes]:
    """A figure's file from the menu in its panel's head: name and content."""
    menu = page.locator(f"details.save[data-picture={name}]")
    menu.locator("summary").click()
    with page.expect_download() as download:
        menu.locator(f"[data-save={kind}]").click()
    expect(menu).not_to_have_attribute("open", "")
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def texts(svg: bytes) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def size(svg: bytes) -> tuple[float, float]:
    root = ElementTree.fromstring(svg)
    return float(root.attrib["width"]), float(root.attrib["height"])


def png_size(png: bytes) -> tuple[int, int]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_saved_with_its_ids_and_notes(view: Watched, name: str) -> None:
    view.open("/story/one-call?at=6", 6)
    file, svg = saved(view.page, name, "svg")
    assert file == f"One-call-traced-{name}-after-6.svg"
    said = texts(svg)
    assert said[:2] == [view.page.locator(f"#{name}-head").inner_text(), "One call, traced, after 6 of 15"]
    for word in [*view.ids(name), *view.notes(name)]:
        assert word in said or word.endswith(" more"), word
    root = ElementTree.fromstring(svg)
    told = view.model()["alt"][name]
    assert root.findtext(f"{SVG}desc") == told
    assert " ".join(said).count(told.split()[0]) > 0
    ground = next(root.iter(f"{SVG}rect"))
    assert ground.attrib["fill"] == "rgb(246, 247, 247)"
    paths = [path.attrib["d"] for path in root.iter(f"{SVG}path") if len(path.attrib.get("d", "")) > 40]
    assert paths, "Plotly's part is missing"
    styles = [text.attrib["style"] for text in root.iter(f"{SVG}text")]
    assert all("fill:rgb" in style and "font-family:" in style for style in styles)
    file, png = saved(view.page, name, "png")
    assert file == f"One-call-traced-{name}-after-6.png"
    width, height = size(svg)
    assert png_size(png) == (round(2 * width), round(2 * height))


def test_a_picture_that_folds_is_saved_whole(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    assert "57 more" not in view.notes("hashes")
    assert any(note.endswith(" more") for note in view.notes("hashes"))
    _, svg = saved(view.page, "hashes", "svg")
    assert not [text for text in texts(svg) if text.endswith(" more")]
    assert {str(block) for block in range(1, 66)} <= set(texts(svg))


def test_a_picture_that_scrolls_is_saved_whole(look: Callable[[Scenario], Watched]) -> None:
    view = look(crowd([f"r{i}" for i in range(12)], 400))
    view.open("?at=14", 14)
    held = {cell[1] for table in view.model()["tables"] for cell in table["cells"]}
    assert not {str(block) for block in held} <= set(view.ids("tables")), "nothing is out of sight"
    _, svg = saved(view.page, "tables", "svg")
    assert {str(block) for block in held} <= set(texts(svg))


LEGENDS = {
    "pool": ["held by holder", "held by R", "held by two or more", "free, empty", "null block", "hashed"],
    "queue": ["free, cached", "free, empty"],
    "tables": ["held by two or more", "hashed", "partly full", "1", "prefix cache hit"],
    "hashes": None,
    "blocks": None,
}


@pytest.mark.parametrize("name", LEGENDS)
def test_a_picture_of_blocks_says_what_their_looks_mean(view: Watched, name: str) -> None:
    view.open("/story/one-call?at=6", 6)
    before = (view.figure(name), view.ids(name), view.notes(name))
    said = texts(saved(view.page, name, "svg")[1])
    legend = LEGENDS[name]
    if legend is None:
        assert "changed in this step" not in said
    else:
        assert said[-len(legend) - 1 :] == [*legend, "changed in this step"]
    assert (view.figure(name), view.ids(name), view.notes(name)) == before  # the page's own is as it was


def test_a_legend_tells_only_of_what_is_in_the_picture(look: Callable[[Scenario], Watched]) -> None:
    view = look(crowd(HOSTILE, 60))
    view.open("?at=0", 0)
    assert texts(saved(view.page, "pool", "svg")[1])[-2:] == ["free, empty", "null block"]
    view.open("?at=8", 8)
    said = texts(saved(view.page, "pool", "svg")[1])
    owners = [text for text in said if text.startswith("held by ")]
    assert "held by запрос" in owners
    assert len(owners) == len(set(owners))


def test_hostile_ids_and_titles_are_text_in_it(look: Callable[[Scenario], Watched]) -> None:
    view = look(crowd(HOSTILE, 60))
    view.open("?at=8", 8)
    _, svg = saved(view.page, "tables", "svg")
    root = ElementTree.fromstring(svg)
    assert {element.tag for element in root.iter()} & {
        f"{SVG}b",
        f"{SVG}img",
        f"{SVG}script",
        f"{SVG}foreignObject",
    } == set()
    assert "запрос" in texts(svg)
    assert saved(view.page, "pool", "png")[1][:4] == b"\x89PNG"


def test_in_the_dark_on_a_phone_and_from_the_dialog(view: Watched) -> None:
    view.page.emulate_media(color_scheme="dark")
    view.page.set_viewport_size({"width": 390, "height": 844})
    view.open("/story/one-call?at=6", 6)
    view.page.click("#go-share")
    row = view.page.locator(".pictures [data-picture=series]")  # folded away on the page
    with view.page.expect_download() as download:
        row.locator("[data-save=svg]").click()
    svg = Path(download.value.path()).read_bytes()
    assert next(ElementTree.fromstring(svg).iter(f"{SVG}rect")).attrib["fill"] == "rgb(16, 19, 21)"
    assert {"kv_cache_usage_perc", "0.73"} <= set(texts(svg))


def test_the_menu_is_reached_by_keys(view: Watched) -> None:
    view.open("/story/one-call?at=6&sel=block:3", 6)
    menu = view.page.locator("details.save[data-picture=queue]")
    menu.locator("summary").focus()
    expect(menu).to_have_css("opacity", "1")
    view.page.keyboard.press("Enter")
    expect(menu).to_have_attribute("open", "")
    view.page.keyboard.press("Escape")
    expect(menu).not_to_have_attribute("open", "")
    expect(menu.locator("summary")).to_be_focused()
    expect(view.page.locator("#card .card")).to_be_visible()  # Esc let go of the menu, not of the block
    view.page.keyboard.press("Enter")
    view.page.keyboard.press("Tab")
    with view.page.expect_download() as download:
        view.page.keyboard.press("Enter")
    assert download.value.suggested_filename == "One-call-traced-queue-after-6.png"


@pytest.mark.parametrize("width", [1440, 390])
def test_the_list_of_files_has_no_violation(view: Watched, width: int) -> None:
    view.page.set_viewport_size({"width": width, "height": 844})
    view.open("/story/one-call?at=6", 6)
    view.page.click("#go-share")
    expect(view.page.locator("#share .files")).to_be_visible()
    assert violations(view.page) == []
    view.page.goto("/story/one-call/downloads")
    assert violations(view.page) == []


def test_a_range_that_cannot_be_is_told_on_a_page(view: Watched) -> None:
    view.open("/story/one-call?at=6", 6)
    view.page.click("#go-share")
    view.page.fill("#file-from", "9")
    view.page.fill("#file-to", "3")
    view.allowed.append("422")
    view.page.click("#file-recording")
    expect(view.page.locator("#file-error")).to_contain_text("It would end before it begins.")
    assert violations(view.page) == []
    view.page.fill("#file-from", "2")
    with view.page.expect_download() as download:
        view.page.click("#file-recording")
    assert download.value.suggested_filename == "One-call-traced-recording-2-to-3.html"
