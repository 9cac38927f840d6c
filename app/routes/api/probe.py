"""The probe: `allocate_slots` with any arguments, on a copy of the engine. It only looks, so it needs no secret."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.rendering.call_json import call_json
from app.rendering.moment import Moment
from app.routes.answers import parts_of
from app.routes.api.asked import PLACE_KEYS, Query, place_in_body, read_object
from app.routes.api.sessions import answer
from app.services.sessions import check_arrived
from engine.probe import MOST, Arguments, probed
from engine.record import dumps
from engine.strict_json import flag, text, whole_number

router = APIRouter(prefix="/api/sessions")
NUMBERS: Final = ("new", "new_comp", "ext_comp", "lookahead", "reserved_blocks")
FLAGS: Final = ("full_sequence_must_fit", "has_scheduled_reqs")


@router.post("/{session_id}/probe")
async def probe(request: Request, session_id: str) -> Response:
    """The call that a request would get, with whatever isn't given as the scheduler would pass it."""
    Query.of(request)
    sessions = parts_of(request).sessions
    async with sessions.opened(session_id, None):
        pass  # an unknown session is told so before anything else
    written = await read_object(request, (*PLACE_KEYS, "request", *NUMBERS, *FLAGS), ("request",))
    place, name, arguments = place_in_body(written), text(written["request"], "request"), _arguments(written)
    async with sessions.opened(session_id, place.branch) as session:
        at = place.moment(session)
        cursor = await sessions.seek(session, at)
        check_arrived(cursor, at)

        def told() -> str:
            return dumps(call_json(Moment.of(session, cursor), probed(cursor.simulation, name, arguments).call))

        return answer(await sessions.in_thread(told))


def _arguments(written: dict[str, Any]) -> Arguments:
    """What is given of the call's arguments; null is as good as not given."""
    given: dict[str, Any] = {}
    given |= {key: whole_number(written[key], key, 0, MOST) for key in NUMBERS if written.get(key) is not None}
    given |= {key: flag(written[key], key) for key in FLAGS if written.get(key) is not None}
    return Arguments(**given)
