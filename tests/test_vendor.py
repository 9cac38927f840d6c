"""The vendored scripts, in a real Chromium under the content security policy that the app sends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser

VENDOR = Path(__file__).resolve().parent.parent / "app" / "static" / "vendor"
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PAGE = """<!doctype html><title>vendor</title>
<script src="htmx.js" defer></script><script src="plotly.js" defer></script>
<p id="a">old a</p><p id="b">old b</p><button hx-get="both" hx-swap="none">get</button>
<div hx-sse:connect="stream" hx-swap="none"></div>
<div id="figure"></div>"""
ANSWERS = {
    "both": ("text/html", '<hx-partial hx-target="#a">new a</hx-partial><hx-partial id="b">new b</hx-partial>'),
    "stream": ("text/event-stream", "event: note\ndata: from the stream\n\n"),
}
FIGURE = """async () => {
    const traces = [
        {type: "scatter", x: [1, 2], y: [2, 1]},
        {type: "heatmap", z: [[1, 2], [3, 4]], xgap: 2},
        {type: "bar", x: [1, 2], y: [1, 2], marker: {pattern: {shape: "/"}}},
        {type: "indicator", mode: "gauge+number", value: 0.4},
    ];
    const figure = document.getElementById("figure");
    await Plotly.newPlot(figure, traces, {}, {displaylogo: false});
    return {
        version: Plotly.version,
        types: figure._fullData.map((trace) => trace.type),
        drawn: [".scatterlayer .trace", ".heatmaplayer image", ".barlayer .point", ".indicatorlayer .trace"]
            .map((layer) => figure.querySelectorAll(layer).length),
    };
}"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """PAGE, loaded, with `window.notes` collecting the stream's events; fails on any error or foreign request."""

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        kind, body = ANSWERS.get(name, ("text/javascript", ""))
        if name in ANSWERS:
            route.fulfill(content_type=kind, body=body)
        elif name:
            route.fulfill(path=VENDOR / name)
        else:
            route.fulfill(content_type="text/html", body=PAGE, headers={"Content-Security-Policy": POLICY})

    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: errors.append(request.url) if "//pool.test/" not in request.url else None)
    page.add_init_script("window.notes = []; addEventListener('note', (event) => notes.push(event.detail.data))")
    page.route("**/*", answer)
    page.goto("http://pool.test/")
    yield page
    page.close()
    assert [error for error in errors if not error.startswith(("data:", "blob:"))] == []


def test_plotly_draws_the_four_traces_we_use(page: Page) -> None:
    drawn: dict[str, Any] = page.evaluate(FIGURE)
    assert drawn["types"] == ["scatter", "heatmap", "bar", "indicator"]
    assert drawn["drawn"] == [1, 1, 2, 1]
    assert f"plotly.js {drawn['version']} " in (VENDOR / "plotly.js").read_text(encoding="utf-8")


def test_htmx_puts_partials_in_place(page: Page) -> None:
    page.click("button")
    page.wait_for_function("document.getElementById('b').textContent === 'new b'")
    assert page.text_content("#a") == "new a"


def test_htmx_opens_event_streams(page: Page) -> None:
    page.wait_for_function("notes.length > 0")
    assert page.evaluate("notes[0]") == "from the stream"
