"""Records as JSON lines: of a session's branch, and of a scenario that nobody keeps."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.routes.answers import json_lines, parts_of
from app.routes.api.asked import Query
from app.services.errors import BadValueError

router = APIRouter(prefix="/api")


@router.get("/sessions/{session_id}/records")
async def records(request: Request, session_id: str) -> Response:
    """The records of a branch's actions, `from` inclusive, `to` exclusive."""
    query = Query.of(request, "branch", "from", "to")
    first, end = query.number("from") or 0, query.number("to")
    if end is not None and end < first:
        raise BadValueError(f'"to" is {end}, before "from", {first}.', "to", f"a whole number, {first} or more")
    return await json_lines(parts_of(request).replays.of_branch(session_id, query.text("branch", ""), first, end))


@router.post("/replay")
async def replay(request: Request) -> Response:
    """The records of a scenario's actions; nothing is stored."""
    Query.of(request)
    return await json_lines(parts_of(request).replays.of_scenario(await request.body()))
