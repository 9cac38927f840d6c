"""Errors that no route answers itself, each in the one shape; never a stack trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from app.routes.answers import error_answer, parts_of
from app.routes.cookies import secret_of
from app.services.errors import NotOwnerError, ServiceError
from engine.errors import InputError, LimitError, ScenarioError

RETRY_SECONDS = 5
NO_COOKIE: Final = (
    "Only the owner can act: whoever has the cookie that came with this session. Your browser sent none; you can look.",
    "cookies to be allowed for this site if the session is yours, else a copy of your own",
)
MESSAGES = {
    400: ("bad_request", "This request can't be read."),
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address doesn't take this kind of request."),
    413: ("body_too_large", "What was sent is larger than Poolscope takes."),
}


def status_of(error: InputError | ServiceError) -> int:
    """The HTTP status of something that is wrong."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, LimitError):
        return 413
    return 400 if isinstance(error, ScenarioError) and error.code.startswith("malformed") else 422


def add_handlers(app: FastAPI) -> None:
    """Register the handlers of this module."""

    @app.exception_handler(ServiceError)
    async def service_error(request: Request, error: ServiceError) -> Response:
        message, expected = error.message, error.expected
        if isinstance(error, NotOwnerError) and secret_of(request) is None:
            message, expected = NO_COOKIE  # a stranger, or the owner's own browser keeps no cookies
        answer = error_answer(request, error.status, error.code, message, error.where, expected)
        if error.status == 401:
            answer.headers["www-authenticate"] = "Bearer"
        if error.status == 503:
            answer.headers["retry-after"] = str(RETRY_SECONDS)
        return answer

    @app.exception_handler(InputError)
    async def input_error(request: Request, error: InputError) -> Response:
        return error_answer(request, status_of(error), error.code, error.message, error.where, error.expected)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        code, message = MESSAGES.get(error.status_code, ("error", str(error.detail)))
        allowed = ", ".join(_methods(request)) if error.status_code == 405 else ""
        size = f"at most {parts_of(request).settings.max_body} bytes" if error.status_code == 413 else ""
        answer = error_answer(request, error.status_code, code, message, "", allowed or size)
        answer.headers.update({**(error.headers or {}), **({"allow": allowed} if allowed else {})})
        return answer

    @app.exception_handler(RequestValidationError)
    async def validation_error(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0] if error.errors() else {}
        where = ".".join(str(part) for part in first.get("loc", ()))
        return error_answer(request, 422, "invalid", "A parameter has an impossible value.", where)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, _error: Exception) -> Response:
        message = "Poolscope made a mistake. What was stored is safe; going back to the page may help."
        return error_answer(request, 500, "internal", message)


def _methods(request: Request) -> list[str]:
    """Everything that an address takes, whichever route takes it."""
    scopes = ({**request.scope, "method": method} for method in ("GET", "POST", "DELETE"))
    taken = [
        scope["method"] for scope in scopes if any(one.matches(scope)[0] is Match.FULL for one in _routes(request))
    ]
    return ["GET", "HEAD", *taken[1:]] if "GET" in taken else taken


def _routes(request: Request) -> Sequence[BaseRoute]:
    app: FastAPI = request.app
    return app.routes
