"""Records as JSON lines: of a session's branch, and of a scenario that nobody keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from app.routes.answers import parts_of
from app.routes.api.asked import Query
from app.services.errors import BadValueError
from app.services.session import MAIN

router = APIRouter(prefix="/api")
JSON_LINES = "application/jsonl"


@router.get("/sessions/{session_id}/records")
async def records(request: Request, session_id: str) -> Response:
    """The records of a branch's actions, `from` inclusive, `to` exclusive."""
    query = Query.of(request, "branch", "from", "to")
    first, end = query.number("from") or 0, query.number("to")
    if end is not None and end < first:
        raise BadValueError(f"to is {end}, before from, {first}.", "to", f"a whole number, {first} or more")
    return await _stream(parts_of(request).replays.of_session(session_id, query.text("branch", MAIN), first, end))


@router.post("/replay")
async def replay(request: Request) -> Response:
    """The records of a scenario's actions; nothing is stored."""
    Query.of(request)
    return await _stream(parts_of(request).replays.of_scenario(await request.body()))


async def _stream(lines: AsyncIterator[bytes]) -> Response:
    """Lines as they come; what goes wrong before the first one is raised here, and so has a status of its own."""
    first = await anext(lines, b"")

    async def chunks() -> AsyncIterator[bytes]:
        yield first
        async for some in lines:
            yield some

    return StreamingResponse(chunks(), media_type=JSON_LINES)
