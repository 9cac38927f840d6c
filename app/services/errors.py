"""What can be wrong with a request to the server, beside what the engine finds wrong with what was typed.

::

    ServiceError
    ├── UnknownSessionError, UnknownStoryError, UnknownLinkError      404
    ├── NoSecretError            401  a program sent no secret
    ├── NoAnswerError            404  a question that makes no sense at this moment
    ├── NotOwnerError            403  whoever lacks the secret looks only
    ├── StaleMomentError         409  an unknown branch, an `at` that isn't there
    ├── TooLongError             413  it takes longer than one request may
    ├── BadValueError            422  a field or a parameter; `where` names it
    └── UnavailableError         503  nothing can be stored now
        └── FullError            503  as many are stored, or do the same at once, as there may be
"""

from __future__ import annotations

from engine.errors import InputError


class ServiceError(Exception):
    """Base; carries what the one error shape needs."""

    status = 500
    code = "error"

    def __init__(self, message: str, where: str = "", expected: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected


class UnknownSessionError(ServiceError):
    """There is no session of this id."""

    status, code = 404, "unknown_session"


class NoSecretError(ServiceError):
    """A program that wants to act has to send the session's secret."""

    status, code = 401, "no_secret"


class NoAnswerError(ServiceError):
    """The question makes no sense here."""

    status, code = 404, "no_answer"


class UnknownStoryError(ServiceError):
    """There is no story of this name."""

    status, code = 404, "unknown_story"


class UnknownLinkError(ServiceError):
    """There is no short link of this key."""

    status, code = 404, "unknown_link"


class NotOwnerError(ServiceError):
    """Only the owner can act."""

    status, code = 403, "not_owner"


class StaleMomentError(ServiceError):
    """The branch or the moment isn't there."""

    status, code = 409, "stale"


class TooLongError(ServiceError):
    """It takes more CPU than one request may; asking again doesn't help."""

    status, code = 413, "too_long"


class BadValueError(ServiceError):
    """A parameter or a field has an impossible value."""

    status, code = 422, "invalid"


class UnavailableError(ServiceError):
    """Nothing can be stored now."""

    status, code = 503, "unavailable"


class FullError(UnavailableError):
    """As many are stored, or do the same at once, as there may be."""

    code = "full"


def error_body(error: InputError | ServiceError) -> dict[str, dict[str, str]]:
    """The one error shape."""
    return shaped(error.code, error.message, error.where, error.expected)


def shaped(code: str, message: str, where: str, expected: str) -> dict[str, dict[str, str]]:
    """The one error shape from its parts."""
    return {"error": {"code": code, "message": message, "where": where, "expected": expected}}
