"""Looking: pages, frames and block cards. Nothing here stores anything."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.contexts import FrameContext, Notice, PageContext
from app.rendering.block_card import block_card
from app.rendering.frame import frame
from app.rendering.glossary import GLOSSARY
from app.rendering.moment import Moment
from app.rendering.notices import CONNECTOR, came_notice, cut_short, run_notice, under_way
from app.rendering.requests import ALL_ROWS, FIRST_ROWS
from app.rendering.tour import tour
from app.routes.answers import html, json_answer, parts_of, wants_frame, whole_number
from app.routes.cookies import secret_of
from app.routes.places import asked_source, way_back
from app.services.cursor import Cursor
from app.services.errors import ServiceError
from app.services.running import ENDS, RunEnd
from app.services.session import Session
from app.services.stored import owns

router = APIRouter()
RAN = re.compile(rf"([0-9]{{1,5}})-({'|'.join(ENDS)})\Z")


@router.get("/healthz")
async def healthz() -> Response:
    """Whether the server is up."""
    return json_answer({"status": "ok"})


@router.get("/{source:source}")
async def page(request: Request) -> Response:
    """The workspace: at its end a session, where they say themselves links, at their start all others."""
    source = asked_source(request)
    if source.page.endswith("/"):
        return RedirectResponse(f"./{quote(source.name, safe='')}/{_query(request)}", 307)
    return await _page(request)


@router.get("/{source:source}/")
async def page_with_slash(request: Request) -> Response:
    """The page of a permalink; others have it without a slash."""
    source = asked_source(request)
    if not source.page.endswith("/"):
        return RedirectResponse(f"../{quote(source.base[:-1], safe='')}{_query(request)}", 307)
    return await _page(request)


@router.get("/{source:source}/frame")
async def page_frame(request: Request) -> Response:
    """What a move in time changes."""
    async with looked_at(request) as (session, cursor, at):
        start, call = whole_number(request.query_params.get("from"), "from", -1), call_of(request)
        sessions = parts_of(request).sessions
        return await sessions.in_thread(lambda: frame_answer(request, session, cursor, at, start, call=call))


@router.get("/{source:source}/block/{block}")
async def block(request: Request, block: str) -> Response:
    """The card of a block."""
    block_id = whole_number(block, "block", 0)
    async with looked_at(request) as (session, cursor, _at):
        most = session.branch.config.num_blocks - 1
        if block_id > most:
            raise _NoBlockError(f"There is no block {block_id}: the ids go from 0 to {most}.", "block")

        def render() -> Response:
            card = block_card(Moment.of(session, cursor), block_id, whole_page=not wants_frame(request))
            return html(request, "block.html", card)

        return await parts_of(request).sessions.in_thread(render)


def _query(request: Request) -> str:
    return f"?{request.url.query}" if request.url.query else ""


def place_of(request: Request, session: Session) -> int:
    """The moment that the URL asks for; else where a link says, the end of a session, the start of all others.

    Raises:
        ServiceError: it isn't one, or isn't there.
    """
    return place_in(session, request.query_params)


def place_in(session: Session, fields: Mapping[str, str]) -> int:
    """The same for the fields `branch` and `at` wherever they come from.

    Raises:
        ServiceError: it isn't a moment, or isn't there.
    """
    default = session.branch.end if session.origin is None else min(session.origin.at, session.branch.end)
    at = whole_number(fields.get("at"), "at", default)
    session.check_place(fields.get("branch", ""), at)
    return at


@asynccontextmanager
async def looked_at(request: Request) -> AsyncIterator[tuple[Session, Cursor, int]]:
    """What the URL asks for: a session, locked and with its branch chosen, the engine there, and the moment wanted.

    Raises:
        ServiceError: there is no such session, branch or moment.
        InputError: a permalink that can't be read.
    """
    sessions = parts_of(request).sessions
    async with sessions.opened(asked_source(request), branch_of(request)) as session:
        at = place_of(request, session)
        yield session, await sessions.seek(session, at), at


def branch_of(request: Request) -> str:
    """The branch that the URL asks for; "": it names none."""
    return request.query_params.get("branch", "")


def call_of(request: Request) -> int | None:
    """Which call of the step the URL chooses; None: none, or what is no number."""
    text = request.query_params.get("call", "")
    return int(text) if re.match(r"[0-9]{1,6}\Z", text) else None


def rows_of(request: Request) -> int:
    """How many rows of each list of requests the URL asks for."""
    return ALL_ROWS if request.query_params.get("rows") == "all" else FIRST_ROWS


def is_owner(request: Request, session: Session) -> bool:
    """Whether the reader may act: on a session its owner, on all others everybody, on none in an embed."""
    if asked_source(request).embedded:
        return False
    return not session.id or owns(session, secret_of(request))


def page_answer(request: Request, session: Session, context: FrameContext, status: int = 200) -> Response:
    """The whole page around a frame; also the answer to a refused form, under the form's address."""
    source = asked_source(request)
    here, base = way_back(request, source)
    select = "" if session.origin is None or "at" in request.query_params else session.origin.select
    story = session.origin.story if session.origin is not None else None
    told = tour(story, context.view, request.query_params.get("sel", "")) if story is not None else None
    may_act, page = is_owner(request, session), source.opened.page
    around = PageContext(context, may_act, source.embedded, here, base, page, select, told, GLOSSARY)
    return html(request, "page.html", around, status)


async def _page(request: Request) -> Response:
    async with looked_at(request) as (session, cursor, at):

        def render() -> Response:
            moment = Moment.of(session, cursor)
            told = _notice(request, session, moment, at)
            context = frame(moment, notice=told, call=call_of(request), rows=rows_of(request))
            return page_answer(request, session, context)

        return await parts_of(request).sessions.in_thread(render)


def frame_answer(
    request: Request,
    session: Session,
    cursor: Cursor,
    at: int,
    start: int,
    *,
    notice: Notice | None = None,
    call: int | None = None,
    new_place: bool = False,
) -> Response:
    """A frame: a change on top of the moment `start` where that is the one before."""
    moment = Moment.of(session, cursor)
    notice = cut_short(session, moment, at) or run_beside(request, moment, notice)
    context = frame(moment, start, notice=notice, call=call, rows=rows_of(request), new_place=new_place)
    return html(request, "frame.html", context)


def run_beside(request: Request, moment: Moment, notice: Notice | None) -> Notice | None:
    """A message, and the run that is under way meanwhile."""
    parts = parts_of(request)
    found = parts.runs.somewhere(moment.session_id, moment.branch)
    if found is None or found[0] not in moment.branches:
        return notice
    branch, one = found
    run = under_way(moment, branch, one.run.end, parts.settings.steps_a_call, one.told)
    return replace(notice or Notice(""), run=run)


def _notice(request: Request, session: Session, moment: Moment, at: int) -> Notice | None:
    """What a page has to say: that a replay was cut short, what came of the action that led here, how a run gets on."""
    return cut_short(session, moment, at) or run_beside(request, moment, _told(request, moment))


def _told(request: Request, moment: Moment) -> Notice | None:
    """What came of the action that a redirect led here from."""
    ran = RAN.match(request.query_params.get("ran", ""))
    if ran:
        return run_notice(moment, RunEnd(ran[2], int(ran[1])))
    left = moment.branches.get(request.query_params.get("left", ""))
    connector = request.query_params.get("connector", "")
    return came_notice(moment, left, connector if connector in CONNECTOR else "")


class _NoBlockError(ServiceError):
    """The pool is smaller than that."""

    status, code = 404, "unknown_block"
