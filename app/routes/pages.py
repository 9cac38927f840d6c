"""Looking: pages, frames and block cards. Nothing here stores anything."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.contexts import FrameContext, Notice, PageContext
from app.rendering.block_card import block_card
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.rendering.notices import CONNECTOR, came_notice, run_notice, short_replay
from app.routes.answers import html, json_answer, parts_of, wants_frame, whole_number
from app.routes.cookies import secret_of
from app.services.cursor import Cursor
from app.services.errors import ServiceError
from app.services.running import ENDS, RunEnd
from app.services.session import MAIN, Session
from app.services.stored import owns

router = APIRouter()
RAN = re.compile(rf"([0-9]{{1,5}})-({'|'.join(ENDS)})\Z")


@router.api_route("/healthz", methods=["GET", "HEAD"])
async def healthz() -> Response:
    """Whether the server is up."""
    return json_answer({"status": "ok"})


@router.api_route("/", methods=["GET", "HEAD"])
async def builtin(request: Request) -> Response:
    """The built-in scenario, at its start unless the URL says otherwise."""
    return await _page(request, "", default=0)


@router.api_route("/s/{session_id}", methods=["GET", "HEAD"])
async def session_page(request: Request, session_id: str) -> Response:
    """A session, at its end unless the URL says otherwise."""
    return await _page(request, session_id, default=None)


@router.get("/frame")
async def builtin_frame(request: Request) -> Response:
    """A frame of the built-in scenario."""
    return await _frame(request, "", default=0)


@router.get("/s/{session_id}/frame")
async def session_frame(request: Request, session_id: str) -> Response:
    """A frame of a session."""
    return await _frame(request, session_id, default=None)


@router.get("/block/{block}")
async def builtin_block(request: Request, block: str) -> Response:
    """The card of a block of the built-in scenario."""
    return await _block(request, "", block, default=0)


@router.get("/s/{session_id}/block/{block}")
async def session_block(request: Request, session_id: str, block: str) -> Response:
    """The card of a block of a session."""
    return await _block(request, session_id, block, default=None)


def place_of(request: Request, session: Session, default: int | None) -> int:
    """The moment that the URL asks for.

    Raises:
        ServiceError: it isn't one, or isn't there.
    """
    at = whole_number(request.query_params.get("at"), "at", session.branch.end if default is None else default)
    session.check_place(branch_of(request), at)
    return at


def branch_of(request: Request) -> str:
    """The branch that the URL asks for."""
    return request.query_params.get("branch", MAIN)


def call_of(request: Request) -> int | None:
    """Which call of the step the URL chooses; None: none, or what is no number."""
    text = request.query_params.get("call", "")
    return int(text) if re.match(r"[0-9]{1,6}\Z", text) else None


def is_owner(request: Request, session: Session) -> bool:
    """Whether the reader may act on a session; on the built-in one everybody may."""
    if not session.id:
        return True
    return owns(session, secret_of(request))


def page_answer(request: Request, session: Session, context: FrameContext, status: int = 200) -> Response:
    """The whole page around a frame."""
    most = parts_of(request).settings.max_body
    return html(request, "page.html", PageContext(context, is_owner(request, session), not session.id, most), status)


async def _page(request: Request, session_id: str, default: int | None) -> Response:
    sessions = parts_of(request).sessions
    async with sessions.opened(session_id, branch_of(request)) as session:
        at = place_of(request, session, default)
        cursor = await sessions.seek(session, at)

        def render() -> Response:
            moment = Moment.of(session, cursor)
            return page_answer(
                request, session, frame(moment, notice=_notice(request, moment, at), call=call_of(request))
            )

        return await sessions.in_thread(render)


async def _frame(request: Request, session_id: str, default: int | None) -> Response:
    sessions = parts_of(request).sessions
    async with sessions.opened(session_id, branch_of(request)) as session:
        at = place_of(request, session, default)
        start = whole_number(request.query_params.get("from"), "from", -1)
        cursor = await sessions.seek(session, at)
        call = call_of(request)
        return await sessions.in_thread(lambda: frame_answer(request, session, cursor, at, start, call=call))


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
    if cursor.at < at:
        notice = short_replay(moment, at)
    return html(request, "frame.html", frame(moment, start, notice=notice, call=call, new_place=new_place))


def _notice(request: Request, moment: Moment, at: int) -> Notice | None:
    """What a page has to say: that a replay was cut short, or what came of the action that led here."""
    if moment.at < at:
        return short_replay(moment, at)
    parts = parts_of(request)
    under_way = parts.runs.find(moment.session_id, moment.branch)
    if under_way is not None:
        return run_notice(moment, under_way.run.end, parts.settings.steps_a_call)
    ran = RAN.match(request.query_params.get("ran", ""))
    if ran:
        return run_notice(moment, RunEnd(ran[2], int(ran[1])))
    left = moment.branches.get(request.query_params.get("left", ""))
    connector = request.query_params.get("connector", "")
    return came_notice(moment, left, connector if connector in CONNECTOR else "")


async def _block(request: Request, session_id: str, block: str, default: int | None) -> Response:
    sessions = parts_of(request).sessions
    block_id = whole_number(block, "block", 0)
    async with sessions.opened(session_id, branch_of(request)) as session:
        most = session.branch.config.num_blocks - 1
        if block_id > most:
            raise _NoBlockError(f"There is no block {block_id}: the ids go from 0 to {most}.", "block")
        at = place_of(request, session, default)
        cursor = await sessions.seek(session, at)

        def render() -> Response:
            card = block_card(Moment.of(session, cursor), block_id, whole_page=not wants_frame(request))
            return html(request, "block.html", card)

        return await sessions.in_thread(render)


class _NoBlockError(ServiceError):
    """The pool is smaller than that."""

    status, code = 404, "unknown_block"
