"""Comparing two branches of a session."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.rendering.compare import Seen, compare
from app.rendering.moment import Moment
from app.routes.answers import html, parts_of, wants_frame, whole_number
from app.routes.places import asked_source
from app.services.errors import StaleMomentError
from app.services.session import MAIN, Session
from app.services.sessions import Sessions

router = APIRouter()


@router.get("/{source:stored}/compare")
async def compare_page(request: Request) -> Response:
    """Two branches side by side at one moment; a branch that is shorter stays at its end."""
    sessions, asked = parts_of(request).sessions, request.query_params
    names = asked.get("a", MAIN), asked.get("b", MAIN)
    async with sessions.opened(asked_source(request), names[1]) as session:
        end = max(session.find(name).end for name in names)
        at = whole_number(asked.get("at"), "at", end)
        if at > end:
            raise StaleMomentError(f"There is no moment {at}: the longer branch has {end} actions.", "at", str(end))
        b = await _seen(sessions, session, names[1], at)
        a = b if names[0] == names[1] else await _seen(sessions, session, names[0], at)
        # A connector changes the rules from the start.
        is_alike = a.branch.has_connector == b.branch.has_connector
        start = common_start(session, *names) if is_alike else 0
        a, b = numbered_alike(a, b)
        template = "compare_frame.html" if wants_frame(request) else "compare.html"
        return await sessions.in_thread(lambda: html(request, template, compare(a, b, at, start)))


async def _seen(sessions: Sessions, session: Session, name: str, at: int) -> Seen:
    await sessions.choose(session, name)
    cursor = await sessions.seek(session, min(at, session.branch.end))
    return Seen(session.branch, Moment.of(session, cursor))


def numbered_alike(a: Seen, b: Seen) -> tuple[Seen, Seen]:
    """Both sides with one number, and so one hue, for a request: A's, and behind those what only B knows."""
    numbers = dict(a.branch.columns.numbers)
    for name in b.branch.columns.numbers:
        numbers.setdefault(name, len(numbers))
    return replace(a, moment=replace(a.moment, numbers=numbers)), replace(b, moment=replace(b.moment, numbers=numbers))


def common_start(session: Session, a: str, b: str) -> int:
    """Up to where two branches are the same because they come from the same one."""
    reach: dict[str, int] = {}
    at, shared = session.nodes[a], session.nodes[a].end
    while True:
        reach[at.id] = shared
        if at.parent is None or at.has_own_config:
            break
        shared, at = min(shared, at.left_at), session.nodes[at.parent]
    at, shared = session.nodes[b], session.nodes[b].end
    while at.id not in reach:
        if at.parent is None or at.has_own_config:
            return 0
        shared, at = min(shared, at.left_at), session.nodes[at.parent]
    return min(shared, reach[at.id])
