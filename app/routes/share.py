"""Sharing: the links to a moment, and making a short one."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.rendering.moment import Moment
from app.rendering.share import share, wall
from app.routes.answers import address_of, html, json_answer, parts_of, wants_frame, wants_json, whole_number
from app.routes.forms import read_plain
from app.routes.pages import branch_of, place_of
from app.routes.places import asked_source
from app.services.errors import BadValueError, ServiceError
from app.services.links import MAX_SELECT, encode
from app.services.scenarios import scenario_of
from app.services.session import Session
from app.services.short_links import MAX_CODE, known_key, shorten
from engine.errors import LimitError

router = APIRouter()
TOO_LARGE: Final = "This session is too large for a link; a download holds it."


@router.get("/{source:open}/share")
async def share_page(request: Request) -> Response:
    """The links to the moment that the URL asks for. Nothing is stored: a short link is shown if there is one."""
    select = request.query_params.get("sel", "")
    async with parts_of(request).sessions.opened(asked_source(request), branch_of(request)) as session:
        return await _share(request, session, place_of(request, session), select)


@router.get("/{source:open}/qr")
async def on_a_wall(request: Request) -> Response:
    """A page with the QR code of a link to the moment, as large as the window."""
    parts, select = parts_of(request), request.query_params.get("sel", "")
    async with parts.sessions.opened(asked_source(request), branch_of(request)) as session:
        at = place_of(request, session)

        def render() -> Response:
            code = _code(session, at, select)
            if not code:
                raise BadValueError(TOO_LARGE, "link")
            context = wall(session.shown_title, address_of(request), code, known_key(parts.store, code))
            return html(request, "wall.html", context)

        return await parts.sessions.in_thread(render)


@router.post("/{source:open}/shorten")
async def make_short(request: Request) -> Response:
    """Keep a short link to a moment. Whoever can look may: what it shows can be seen anyway."""
    parts, fields = parts_of(request), await read_plain(request)
    select = str(fields.get("sel", ""))
    async with parts.sessions.opened(asked_source(request), str(fields.get("branch", ""))) as session:
        at = whole_number(fields.get("at"), "at", session.branch.end)
        session.check_place(session.chosen, at)
        code = await parts.sessions.in_thread(lambda: _code(session, at, select))
        most = parts.settings.links
        try:
            if not code:
                raise BadValueError(TOO_LARGE, "link")
            key = await parts.sessions.in_thread(lambda: shorten(parts.store, code, most))
        except ServiceError as error:
            if wants_json(request):
                raise
            return await _share(request, session, at, select, error)
        if wants_json(request):
            return json_answer({"key": key, "url": address_of(request).link(f"l/{key}")}, 201)
        if wants_frame(request):
            return await _share(request, session, at, select)
        query = {"branch": session.chosen, "at": at, **({"sel": select} if select else {})}
        return RedirectResponse(f"share?{urlencode(query)}", 303)


async def _share(
    request: Request, session: Session, at: int, select: str, error: ServiceError | None = None
) -> Response:
    parts = parts_of(request)
    cursor = await parts.sessions.seek(session, at)

    def render() -> Response:
        code = _code(session, at, select)
        key = known_key(parts.store, code) if code else None
        message = error.message if error else "" if code else TOO_LARGE
        whole = not wants_frame(request)
        moment = Moment.of(session, cursor)
        context = share(moment, address_of(request), code, key, select, whole_page=whole, error=message)
        return html(request, "share.html", context, error.status if error else 200)

    return await parts.sessions.in_thread(render)


def _code(session: Session, at: int, select: str) -> str:
    """The permalink's code; "" if the scenario is too large for one.

    Raises:
        BadValueError: the selection is no selection.
    """
    if len(select) > MAX_SELECT:
        raise BadValueError("This is no selection.", "sel", "block: with an id, or request: with a name")
    try:
        code = encode(scenario_of(session), at, select)
    except LimitError:
        return ""
    return code if len(code) <= MAX_CODE else ""
