"""A page that is looked at: how to get about on it, and what it must never do."""

from typing import Any

from playwright.sync_api import ConsoleMessage, Page, Request, expect

SLOW = 15_000
"""Milliseconds: other tests may run beside this one."""


class Watched:
    """The workspace in a browser."""

    def __init__(self, page: Page, site: str, home: str = "/story/one-call") -> None:
        self.page = page
        self.site = site
        self.home = home
        """The address that `open` adds a bare query to."""
        self.wrong: list[str] = []
        self.allowed: list[str] = []
        """Parts of console messages that this test causes on purpose."""
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.site}/", "data:", "blob:")):
            self.wrong.append(f"request to {request.url}")

    def check(self) -> None:
        """No console message (a CSP report is one), no error, no request to another host."""
        left = [text for text in self.wrong if not any(part in text for part in self.allowed)]
        assert not left, left

    def open(self, path: str, at: int | None = None) -> None:
        """Go to an address, a bare query being one of the home's, and wait until its pictures are drawn."""
        self.page.goto(f"{self.home}{path}" if path.startswith("?") else path)
        self.wait(at)

    def wait(self, at: int | None = None) -> None:
        """Wait until a moment is painted: this one, or any."""
        # A locator, for waiting on an expression needs eval, which the page's policy forbids.
        shown = "html[data-shown]" if at is None else f"html[data-shown='{at}']"
        expect(self.page.locator(shown)).to_be_attached(timeout=SLOW)

    def moved(self, at: int) -> None:
        """Wait until another moment than this one is painted."""
        expect(self.page.locator(f"html[data-shown]:not([data-shown='{at}'])")).to_be_attached(timeout=SLOW)

    def press(self, key: str, at: int) -> None:
        """Press a key and wait until the moment that it leads to is painted."""
        self.page.keyboard.press(key)
        self.wait(at)

    def click(self, selector: str, at: int) -> None:
        """Click and wait until the moment that it leads to is painted."""
        self.page.click(selector)
        self.wait(at)

    def until(self, expression: str, value: object) -> None:
        """Wait until a JavaScript expression has this value."""
        for _ in range(200):
            found = self.page.evaluate(expression)
            if found == value:
                return
            # A frame of the browser, for waiting on an expression needs eval, which the page's policy forbids.
            self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        raise AssertionError(f"{expression} is {found}, not {value}")

    def model(self) -> dict[str, Any]:
        """What the figures show, as plain data."""
        plain: dict[str, Any] = self.page.evaluate("window.poolscope.model.plain()")
        return plain

    def figure(self, name: str) -> dict[str, Any]:
        """What Plotly was given for a figure, and the types it made of its traces."""
        script = """name => {
          const gd = document.querySelector(`#figure-${name} .plot`);
          return JSON.parse(JSON.stringify({data: gd.data, layout: gd.layout, types: gd._fullData.map(t => t.type)}));
        }"""
        given: dict[str, Any] = self.page.evaluate(script, name)
        return given

    def shape(self, figure: str, name: str) -> dict[str, Any]:
        """One shape of a figure by its name: all cells in one state."""
        return next(shape for shape in self.figure(figure)["layout"]["shapes"] if shape["name"] == name)

    def ids(self, figure: str) -> list[str]:
        """The ids that stand over a figure, in order."""
        return self.page.locator(f"#figure-{figure} .words .mono").all_text_contents()

    def notes(self, figure: str) -> list[str]:
        """The words that stand over a figure."""
        return self.page.locator(f"#figure-{figure} .words text:not(.mono)").all_text_contents()
