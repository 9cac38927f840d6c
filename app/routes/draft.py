"""Help while composing a request: what it would be if it were added now. Nothing is stored, however it is asked for."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.rendering.composer import abort_form, composer
from app.rendering.draft import draft_context, draft_words
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.routes.add_form import prompt_as
from app.routes.answers import html, parts_of, wants_frame
from app.routes.asked import Asked
from app.routes.forms import read_fields, read_form
from app.routes.pages import page_answer, place_in
from app.routes.places import asked_source
from app.services.acting import check_alone
from app.services.errors import ServiceError
from app.services.session import Session
from app.services.sources import Source
from engine.actions import AddRequest
from engine.errors import InputError
from engine.probe import draft
from engine.scenario import Limits

router = APIRouter()


@router.get("/{source:open}/draft")
async def from_address(request: Request) -> Response:
    """Help while composing a request."""
    return await _answer(request, asked_source(request), Asked("add", typed=dict(request.query_params)))


@router.post("/{source:open}/draft")
async def from_form(request: Request) -> Response:
    """The same for a form that may be too long for an address."""
    asked = Asked("add")
    try:
        asked.typed = {name: values[-1] for name, values in (await read_form(request)).items()}
    except ServiceError as error:
        asked.blame(error)
    return await _answer(request, asked_source(request), asked)


async def _answer(request: Request, source: Source, asked: Asked) -> Response:
    parts = parts_of(request)
    if not asked.errors:
        read_fields(asked)
    async with parts.sessions.opened(source, asked.typed.get("branch", "")) as session:
        at = place_in(session, asked.typed)
        cursor = await parts.sessions.seek(session, at)

        def render() -> Response:
            moment = Moment.of(session, cursor)
            words = drafted(moment, asked, parts.settings.limits)
            if request.method == "POST" and not wants_frame(request):
                return _page(request, session, moment, asked, words)
            problem = next(iter(asked.errors.values()), "")
            context = draft_context(moment, words, problem, whole_page=not wants_frame(request))
            return html(request, "draft.html", context)

        return await parts.sessions.in_thread(render)


def _page(request: Request, session: Session, moment: Moment, asked: Asked, words: str) -> Response:
    """The whole page, with what was typed in the composer, for a browser without JavaScript."""
    form = composer(moment, asked.typed, asked.errors, words)
    return page_answer(request, session, frame(moment, forms=(form, abort_form(moment))))


def drafted(moment: Moment, asked: Asked, limits: Limits) -> str:
    """What the request would be now, in words; "" where something is wrong, which is noted in `asked`."""
    action, simulation = asked.action, moment.cursor.simulation
    if not isinstance(action, AddRequest):
        return ""
    try:
        check_alone(action, simulation, limits)
        return draft_words(moment, action, draft(simulation, action), prompt_as(asked.typed))
    except InputError as error:
        asked.blame(error)
        return ""
