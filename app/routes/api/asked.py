"""What a program asked for: JSON bodies and query parameters, read strictly, and the secret that came along."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from app.routes.answers import parts_of
from app.routes.answers import whole_number as number_in
from app.services.errors import BadValueError, NoSecretError, NotOwnerError
from app.services.session import Session
from engine.actions import Action
from engine.errors import ScenarioError, shown
from engine.scenario import Limits, loads, parse_action
from engine.strict_json import record, text, whole_number

PLACE_KEYS = ("branch", "at")


@dataclass(frozen=True, slots=True)
class Place:
    """A branch and a moment; None: its end."""

    branch: str
    at: int | None

    def moment(self, session: Session) -> int:
        """The moment in a session where the branch is chosen.

        Raises:
            StaleMomentError: it isn't there.
        """
        at = session.branch.end if self.at is None else self.at
        session.check_place(self.branch, at)
        return at


async def read_object(request: Request, known: Collection[str], required: Collection[str] = ()) -> dict[str, Any]:
    """The body, an object with only known keys.

    Raises:
        InputError: it is something else.
    """
    body = await request.body()
    return record(await parts_of(request).sessions.in_thread(lambda: loads(body)), "", known, required)


def place_in_body(written: dict[str, Any]) -> Place:
    """`branch` and `at` of a body.

    Raises:
        InputError: one of them can't be one.
    """
    at = written.get("at")
    return Place(text(written.get("branch", ""), "branch"), None if at is None else whole_number(at, "at", 0))


def actions_in_body(written: object, limits: Limits) -> list[Action]:
    """One action, or a list of them.

    Raises:
        InputError: with the place as `actions.id` or `actions[3].id`.
    """
    if isinstance(written, dict):
        return [parse_action(written, "actions")]
    if not isinstance(written, list) or not written:
        expected = "an action, or a list of at least one"
        raise ScenarioError("wrong_type", f"got {shown(written)}", "actions", expected)
    limits.check_counts(len(written), 0)
    return [parse_action(one, f"actions[{index}]") for index, one in enumerate(written)]


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters in the address, each at most once."""

    given: dict[str, str]

    @classmethod
    def of(cls, request: Request, *known: str) -> Query:
        """Read them.

        Raises:
            BadValueError: one isn't known, or comes twice.
        """
        given: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            if name not in known:
                expected = f"one of {', '.join(known)}" if known else "no parameter"
                raise BadValueError(f"There is no parameter {shown(name)}.", "query", expected)
            if name in given:
                raise BadValueError(f'"{name}" is given twice.', name, "each parameter once")
            given[name] = value
        return cls(given)

    def text(self, name: str, default: str) -> str:
        """A parameter as it is written."""
        return self.given.get(name, default)

    def number(self, name: str) -> int | None:
        """A parameter that is a whole number, 0 or more; None where it isn't given.

        Raises:
            BadValueError: it is something else.
        """
        written = self.given.get(name)
        if written is None:
            return None
        if not written:
            raise BadValueError(f'"{name}" is empty.', name, "a whole number, 0 or more")
        return number_in(written, name, 0)

    @property
    def place(self) -> Place:
        """`branch` and `at`."""
        return Place(self.text("branch", ""), self.number("at"))


@asynccontextmanager
async def owned(request: Request, session_id: str, branch: str | None) -> AsyncIterator[Session]:
    """A session to act on, its lock held and a branch chosen (None: whichever it was).

    Raises:
        UnknownSessionError: there is none of this id.
        NoSecretError: there is no Bearer token.
        NotOwnerError: it isn't this session's secret.
        StaleMomentError: it has no such branch.
    """
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    is_given = scheme.lower() == "bearer"
    try:
        async with parts_of(request).sessions.acting_on(session_id, secret.strip() if is_given else "", branch) as one:
            yield one
    except NotOwnerError:
        if is_given:
            raise
        expected = "Authorization: Bearer SECRET"
        message = "Only the owner can act: the session's secret is missing."
        raise NoSecretError(message, "header Authorization", expected) from None
