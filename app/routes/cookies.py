"""The owner's secret: a cookie for one session's pages alone, or a Bearer token."""

from __future__ import annotations

from typing import Final

from fastapi import Request
from starlette.responses import Response

from app.routes.answers import parts_of

COOKIE: Final = "poolscope_owner"
MAX_AGE: Final = 365 * 24 * 3600


def secret_of(request: Request) -> str | None:
    """The secret that came along, whatever it is worth."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE)


def give_secret(request: Request, answer: Response, session_id: str, secret: str) -> None:
    """Make the reader the owner of a session. The cookie goes to that session's addresses only."""
    public = parts_of(request).settings.public_url or ""
    secure = request.url.scheme == "https" or public.startswith("https:")
    path = f"{request.scope.get('root_path', '')}/s/{session_id}"
    answer.set_cookie(COOKIE, secret, max_age=MAX_AGE, path=path, secure=secure, httponly=True, samesite="lax")
