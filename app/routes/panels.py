"""Questions to a moment: another call of its step, a probe, a Why? card. Nothing is stored."""

from __future__ import annotations

import re
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.contexts import CallContext
from app.rendering.calls import calls
from app.rendering.moment import Moment
from app.rendering.probe import FIELDS, Asked, probe_context
from app.rendering.transport import view
from app.rendering.why_card import told_at, why_context
from app.routes.answers import error_answer, html, parts_of, wants_frame, wants_json
from app.routes.pages import call_of, looked_at
from app.services.errors import UnavailableError
from engine.probe import MOST, Arguments

router = APIRouter()
DIGITS: Final = re.compile(r"-?[0-9]+\Z")
NUMBER: Final = re.compile(r"-?[0-9]{1,19}\Z")
YES_NO: Final = {"yes": True, "no": False, "true": True, "false": False}


@router.get("/{source:source}/call")
async def call(request: Request) -> Response:
    """Another call of a step."""
    sessions = parts_of(request).sessions
    async with looked_at(request) as (session, cursor, _at):

        def render() -> Response:
            moment = Moment.of(session, cursor)
            told = calls(moment, call_of(request))
            return html(request, "call.html", CallContext(view(moment), told, not wants_frame(request)))

        return await sessions.in_thread(render)


@router.get("/{source:source}/probe")
async def probe(request: Request) -> Response:
    """A probe."""
    sessions = parts_of(request).sessions
    async with looked_at(request) as (session, cursor, _at):

        def render() -> Response:
            asked = _asked(request)
            context = probe_context(Moment.of(session, cursor), asked, whole_page=not wants_frame(request))
            if asked.errors and wants_json(request):
                where, message = next(iter(asked.errors.items()))
                return error_answer(request, 422, "invalid", message, where)
            return html(request, "probe.html", context, 422 if asked.errors else 200)

        return await sessions.in_thread(render)


@router.get("/{source:source}/why")
async def why(request: Request) -> Response:
    """A Why? card."""
    sessions = parts_of(request).sessions
    about, name = request.query_params.get("about", ""), request.query_params.get("id", "")
    async with looked_at(request) as (session, cursor, _at):
        here = await sessions.in_thread(lambda: view(Moment.of(session, cursor)))
        told = told_at(Moment.of(session, cursor), about, name)
        # From here on only the moment that tells the answer is used: seeking may move the other one.
        there = await sessions.seek(session, told)
        if there.at < told:
            raise UnavailableError("This session is still being replayed.", "", "to try again")

        def render() -> Response:
            context = why_context(here, Moment.of(session, there), about, name, whole_page=not wants_frame(request))
            return html(request, "why.html", context)

        return await sessions.in_thread(render)


def _asked(request: Request) -> Asked:
    """The arguments in the URL; what can't be read is noted beside its field."""
    typed = {name: request.query_params.get(name, "").strip() for name, _, _ in FIELDS}
    errors: dict[str, str] = {}
    read: dict[str, Any] = {}
    for name, kind, _ in FIELDS:
        text = typed[name]
        if kind == "choice":
            read[name] = YES_NO.get(text)
            if text and text not in YES_NO:
                errors[name] = "This is neither yes nor no."
        else:
            read[name] = int(text) if NUMBER.match(text) else None
            if text and read[name] is None:
                large = f"This is too large: at most {MOST}." if text[0] != "-" else "This is too small: 0 or more."
                errors[name] = large if DIGITS.match(text) else "This is not a whole number."
    return Asked(request.query_params.get("request"), typed, Arguments(**read), errors)
