"""What surrounds every request, as plain ASGI: security headers, the Origin check, the limit on bodies."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

SECURITY_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


FRAMED: Final = SECURITY_HEADERS["content-security-policy"].replace("frame-ancestors 'none'", "frame-ancestors *")
"""What is below `/embed/` may stand in a frame on any page: nothing can be done there."""


class SecurityHeaders:
    """Adds the headers to every answer; a page is asked for again each time unless it says otherwise."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; add to the head of its answer."""
        path: str = scope.get("path", "")
        framed = path.removeprefix(scope.get("root_path", "")).startswith("/embed/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if framed:
                    headers["content-security-policy"] = FRAMED
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class HeadAsGet:
    """Answers HEAD wherever GET is answered: with the same head, and without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; of the answer to HEAD only the head."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        ended = False

        async def send_head(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self.app({**scope, "method": "GET"}, receive, send_head)


class OriginCheck:
    """Refuses requests that change something and come from another site's page.

    A browser says where an unsafe request comes from: `Sec-Fetch-Site`, `Origin`, or at least `Referer`; what it says
    must be this host. A request that says nothing comes from no browser, as curl's; it is let in as long as it carries
    no cookie, for then it has no rights that another site could borrow: it needs the secret itself, as a Bearer token.
    """

    def __init__(self, app: ASGIApp, own_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.own_hosts = frozenset(own_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403, or pass the request on."""
        if scope["type"] == "http" and scope["method"] not in SAFE and not self._comes_from_here(Headers(scope=scope)):
            await refuse(send, 403, "cross_origin", "This request comes from another site.", "a request from this page")
            return
        await self.app(scope, receive, send)

    def _comes_from_here(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        source = headers.get("origin") or headers.get("referer")
        if source is None:
            return "cookie" not in headers
        try:
            host = urlsplit(source).netloc.lower()
        except ValueError:
            return False
        return bool(host) and (host == headers.get("host", "").lower() or host in self.own_hosts)


class BodyLimit:
    """Answers 413 to a body over the limit: before reading it where its length is said, else as soon as it is over.

    Whoever hangs up while sending a body gets no answer, and the log no complaint.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body that can't grow too large."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        too_large = not (length.isascii() and length.isdecimal()) or int(length[:20]) > self.limit
        if too_large and "text/html" not in headers.get("accept", ""):
            await refuse(send, 413, "body_too_large", self._message(), self._expected())
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            if too_large:  # people get a page, which the app makes as soon as it asks for the body
                raise HTTPException(413, self._message())
            message = await receive()
            received += len(message.get("body", b""))
            if received > self.limit:
                raise HTTPException(413, self._message())
            return message

        with suppress(ClientDisconnect):
            await self.app(scope, receive_limited, send)

    def _message(self) -> str:
        return "What was sent is larger than Poolscope takes."

    def _expected(self) -> str:
        return f"at most {self.limit} bytes"


async def refuse(send: Send, status: int, code: str, message: str, expected: str) -> None:
    """Answer in the one error shape, without having read the body."""
    body = orjson.dumps({"error": {"code": code, "message": message, "where": "", "expected": expected}})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
