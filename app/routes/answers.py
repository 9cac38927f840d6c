"""Answers in the shape that the reader asked for: a page, a frame, JSON."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.responses import Response

from app.contexts import ErrorContext
from app.services.branching import Branching
from app.services.errors import BadValueError, shaped
from app.services.exporting import Exports
from app.services.public_url import PublicUrl, public_url
from app.services.recording import Replays
from app.services.runs import Runs
from app.services.sessions import Sessions
from app.services.sources import source_in
from app.settings import Settings
from app.store import Store
from app.templating import Templates, to_root

JSON_LINES: Final = "application/jsonl"
NUMBER: Final = re.compile(r"[0-9]{1,9}\Z")
DIGITS: Final = re.compile(r"[0-9]+\Z")
MOST: Final = 999_999_999
"""The largest number that an address may hold."""
TITLES: Final = {
    400: "That can't be read",
    401: "You can look, not act",
    403: "You can look, not act",
    404: "There is nothing here",
    405: "That isn't done this way",
    409: "That moment isn't there",
    413: "That is too large",
    422: "That isn't right",
    500: "Something broke",
    503: "Not now",
}


LINK_TITLES: Final = {
    "malformed_link": "This link is broken",
    "malformed_link_cut_short": "This link is cut short",
    "newer_link": "This link is from the future",
    "unknown_link": "This link leads nowhere",
    "unknown_story": "There is no such story",
}
"""The error's code -> the title of its page."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the routes work with; kept in `app.state.parts`."""

    settings: Settings
    store: Store
    sessions: Sessions
    runs: Runs
    branching: Branching
    replays: Replays
    exports: Exports
    templates: Templates


def parts_of(request: Request) -> Parts:
    """The parts of the app that serves this request."""
    return cast(Parts, request.app.state.parts)


def address_of(request: Request) -> PublicUrl:
    """What links start with."""
    return public_url(parts_of(request).settings, str(request.base_url))


def wants_frame(request: Request) -> bool:
    """Whether htmx asks."""
    return request.headers.get("hx-request") == "true"


def is_api(request: Request) -> bool:
    """Whether an address is one for programs only, be there something or not."""
    return (path_of(request) + "/").startswith(("/api/", "/openapi.json/"))


def wants_json(request: Request) -> bool:
    """Whether a program asks."""
    if is_api(request):
        return True
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def path_of(request: Request) -> str:
    """The path below the server's root."""
    root: str = request.scope.get("root_path", "")
    path: str = request.scope["path"]
    return path.removeprefix(root) or "/"


def html(
    request: Request, template: str, context: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """A template as an answer; what it looks like depends on who asks."""
    text = parts_of(request).templates.render(template, context, path_of(request))
    return HTMLResponse(text, status, {"vary": "HX-Request, Accept, Cookie", **(headers or {})})


def whole_number(text: str | None, where: str, default: int) -> int:
    """A parameter that is a whole number, 0 or more.

    Raises:
        BadValueError: it is something else.
    """
    if text is None or text == "":
        return default
    if not DIGITS.match(text):
        raise BadValueError(f'"{where}" is not a whole number.', where, "a whole number, 0 or more")
    if not NUMBER.match(text):
        wrong = "is too large" if len(text.lstrip("0")) > 9 else "has too many digits"
        raise BadValueError(f'"{where}" {wrong}.', where, f"at most {MOST}")
    return int(text)


def error_body(code: str, message: str, where: str, expected: str) -> dict[str, Any]:
    """The one error shape."""
    return shaped(code, message, where, expected)


def json_answer(content: object, status: int = 200) -> Response:
    """JSON as an answer."""
    return JSONResponse(content, status)


async def json_lines(lines: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """Lines as they come; what goes wrong before the first one is raised here, and so has a status of its own."""
    first = await anext(lines, b"")

    async def chunks() -> AsyncIterator[bytes]:
        yield first
        async for some in lines:
            yield some

    return StreamingResponse(chunks(), headers=headers, media_type=JSON_LINES)


def error_answer(
    request: Request, status: int, code: str, message: str, where: str = "", expected: str = ""
) -> Response:
    """What is wrong, as JSON for programs and as a page with a way on for people."""
    if wants_json(request):
        return json_answer(error_body(code, message, where, expected), status)
    path = path_of(request)
    source = source_in(path)
    href, link = to_root(path), "Go to the start"
    if source is not None and status == 409 and not source.is_stored:
        href, link = href + source.page, "Open it at its beginning"
    elif source is not None and source.is_stored and status not in (404, 405):
        href, link = href + source.page, "Go to the end of this session"
    title = LINK_TITLES.get(code) or TITLES.get(status, "That did not work")
    embedded = source is not None and source.embedded
    place = where if where.startswith(("actions", "config")) else ""
    context = ErrorContext(status, title, sentence(message), place, expected, link, href or "./", embedded)
    return html(request, "error.html", context, status)


def sentence(text: str) -> str:
    """A message as a sentence: what the engine says begins small and ends without a dot."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"
