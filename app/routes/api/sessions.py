"""Sessions: making one from a scenario, looking at a moment, acting, the permalink, deleting."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.routes.answers import address_of, parts_of
from app.routes.api.asked import PLACE_KEYS, Query, actions_in_body, owned, place_in_body, read_object
from app.services import appending, storing
from app.services.batch import Done, act_all
from app.services.links import encode
from app.services.public_url import PublicUrl
from app.services.record_text import record_text
from app.services.scenarios import scenario_of
from app.services.session import MAIN
from app.services.sessions import check_arrived
from app.tokenizer import tokenize
from engine.record import current_state, dumps
from engine.scenario import read_scenario

router = APIRouter(prefix="/api/sessions")


@router.post("")
async def create(request: Request) -> Response:
    """A new session from a scenario, all of whose actions are executed, or none."""
    Query.of(request)
    parts, body = parts_of(request), await request.body()
    scenario = await parts.sessions.in_thread(lambda: read_scenario(body, tokenize))
    acted = await appending.start(parts.sessions, scenario.title, scenario.config, scenario.actions)
    links = links_of(address_of(request), acted.session.id, acted.at)
    told = {"id": acted.session.id, "secret": acted.secret, "branch": MAIN, "at": acted.at, "links": links}
    return answer(dumps(told), 201, {"location": links["session"], "cache-control": "no-store"})


@router.get("/{session_id}")
async def look(request: Request, session_id: str) -> Response:
    """The state at a moment of a branch, and the branch's actions."""
    sessions, place = parts_of(request).sessions, Query.of(request, "branch", "at").place
    async with sessions.opened(session_id, place.branch) as session:
        at = place.moment(session)
        cursor = await sessions.seek(session, at)
        check_arrived(cursor, at)

        def told() -> str:
            head = dumps({"branch": session.chosen, "at": at})[:-1]
            actions = dumps([action.to_json() for action in session.branch.actions])
            return f'{head},"actions":{actions},"state":{record_text(current_state(cursor.simulation))}}}'

        return answer(await sessions.in_thread(told))


@router.post("/{session_id}/actions")
async def act(request: Request, session_id: str) -> Response:
    """One action or several, all or none; the records of what they did."""
    Query.of(request)
    parts = parts_of(request)
    async with owned(request, session_id, None):
        pass  # who may not act is told so before anything else
    written = await read_object(request, (*PLACE_KEYS, "actions"), ("actions",))
    place, limits = place_in_body(written), parts.settings.limits
    actions = await parts.sessions.in_thread(lambda: actions_in_body(written["actions"], limits))
    async with owned(request, session_id, place.branch) as session:
        alone = isinstance(written["actions"], dict)
        done = await act_all(parts.sessions, session, place.branch, place.moment(session), actions, alone=alone)
    return answer(await parts.sessions.in_thread(lambda: _told(done)))


@router.get("/{session_id}/permalink")
async def permalink(request: Request, session_id: str) -> Response:
    """The link that holds a branch, a moment and a selection, and needs no stored state."""
    parts, query = parts_of(request), Query.of(request, "branch", "at", "select")
    place, select = query.place, query.text("select", "")
    async with parts.sessions.opened(session_id, place.branch) as session:
        branch, at = session.chosen, place.moment(session)
        scenario = scenario_of(session)
    code = await parts.sessions.in_thread(lambda: encode(scenario, at, select))
    address = address_of(request)
    told = {"branch": branch, "at": at, "select": select, "code": code}
    return answer(dumps({**told, "url": address.link(f"p/{code}/"), "loopback": address.is_loopback}))


@router.delete("/{session_id}")
async def delete(request: Request, session_id: str) -> Response:
    """Delete a session for good."""
    Query.of(request)
    async with owned(request, session_id, None) as session:
        await storing.delete(parts_of(request).sessions, session)
    return Response(status_code=204)


def answer(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON text as an answer."""
    return Response(text, status, headers, "application/json")


def links_of(address: PublicUrl, session_id: str, at: int) -> dict[str, str]:
    """Where a session is found: its page, and what the API has of it."""
    api = address.link(f"api/sessions/{session_id}")
    page = address.link(f"s/{session_id}?branch={quote(MAIN)}&at={at}")
    return {"page": page, "session": api, "records": f"{api}/records", "permalink": f"{api}/permalink"}


def _told(done: Done) -> str:
    """The answer to actions; their records are JSON already."""
    head = dumps({"branch": done.branch, "at": done.at})[:-1]
    connector = f',"replayed_with_connector":"{done.connector}"' if done.connector else ""
    return f'{head}{connector},"records":[{",".join(done.records)}]}}'
