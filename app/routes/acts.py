"""Acting: step, run, add, abort, reset. A form is answered with a redirect, htmx with a frame, a program with JSON."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.contexts import FormErrorContext, Notice
from app.rendering.composer import abort_form, composer
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.rendering.notices import run_notice
from app.rendering.transport import view
from app.routes.answers import error_body, html, json_answer, parts_of, wants_frame, wants_json
from app.routes.cookies import give_secret, secret_of
from app.routes.errors import status_of
from app.routes.forms import Asked, read_asked
from app.routes.pages import frame_answer, page_answer
from app.services.errors import ServiceError, StaleMomentError, WouldBranchError
from app.services.session import MAIN, Session
from app.services.sessions import Acted
from engine.errors import InputError

router = APIRouter()


@router.post("/step")
@router.post("/run")
@router.post("/add")
@router.post("/abort")
@router.post("/reset")
async def act_on_builtin(request: Request) -> Response:
    """Act on the built-in scenario: what is appended makes a session of the reader's own."""
    return await _act(request, "")


@router.post("/s/{session_id}/step")
@router.post("/s/{session_id}/run")
@router.post("/s/{session_id}/add")
@router.post("/s/{session_id}/abort")
@router.post("/s/{session_id}/reset")
async def act_on_session(request: Request, session_id: str) -> Response:
    """Act on a session; only its owner can."""
    return await _act(request, session_id)


async def _act(request: Request, session_id: str) -> Response:
    sessions = parts_of(request).sessions
    kind = request.url.path.rpartition("/")[2]
    asked = await read_asked(request, kind)
    async with sessions.acting_on(session_id, secret_of(request)) as session:
        at = session.branch.end if asked.at is None else asked.at
        if asked.error is None:
            try:
                if asked.action is None:
                    acted = await sessions.run(session, asked.branch, at)
                else:
                    acted = await sessions.act(session, asked.branch, at, asked.action)
                return await _answer(request, acted, at)
            except (InputError, StaleMomentError, WouldBranchError, ServiceError) as error:
                if isinstance(error, ServiceError) and error.status in (403, 404, 503):
                    raise
                asked.blame(error)
        return await _refusal(request, session, asked, at)


async def _answer(request: Request, acted: Acted, start: int) -> Response:
    """What was done: the moment after it."""
    session, at = acted.session, acted.at
    here = f"?branch={MAIN}&at={at}"
    if wants_json(request):
        answer = json_answer({"session": session.id, "branch": MAIN, "at": at, "end": session.branch.end})
    elif wants_frame(request):
        answer = await _frame(request, acted, start)
    else:
        ran = f"&ran={acted.run.steps}-{acted.run.why}" if acted.run else ""
        answer = RedirectResponse(f"{_page_from_form(request, session)}{here}{ran}", 303)
    if acted.secret:
        give_secret(request, answer, session.id, acted.secret)
    return answer


async def _frame(request: Request, acted: Acted, start: int) -> Response:
    sessions, session = parts_of(request).sessions, acted.session
    cursor = await sessions.seek(session, acted.at)

    def render() -> Response:
        notice = run_notice(Moment.of(session, cursor), acted.run) if acted.run else None
        new = f"s/{session.id}" if acted.secret else ""
        answer = frame_answer(request, session, cursor, acted.at, start, notice=notice, new_place=bool(new))
        answer.headers["hx-push-url"] = f"{new}?branch={MAIN}&at={cursor.at}"
        return answer

    return await sessions.in_thread(render)


def _page_from_form(request: Request, session: Session) -> str:
    """The page of a session, relative to where its forms are posted to."""
    on_builtin = "/s/" not in request.url.path
    if on_builtin:
        return f"s/{session.id}" if session.id else "./"
    return f"../{session.id}"


async def _refusal(request: Request, session: Session, asked: Asked, at: int) -> Response:
    """What is wrong: beside its field, with what was typed."""
    error = asked.error
    assert error is not None
    status = status_of(error)
    if wants_json(request):
        code, where = error.code, error.where
        return json_answer(error_body(code, error.message, where, error.expected), status)
    sessions = parts_of(request).sessions
    cursor = await sessions.seek(session, min(at, session.branch.end))

    def render() -> Response:
        moment = Moment.of(session, cursor)
        typed = asked.typed if asked.kind == "add" else None
        errors = asked.errors if asked.kind == "add" else {}
        form = composer(moment, typed, {name: text for name, text in errors.items() if name})
        loose = " ".join(asked.errors.values()) if asked.kind != "add" else asked.errors.get("", "")
        abort = abort_form(moment, loose if asked.kind == "abort" else "")
        notice = _notice(moment, error, loose)
        if wants_frame(request):
            return html(
                request, "form_error.html", FormErrorContext(view(moment), asked.kind, form, abort, notice), status
            )
        return page_answer(request, session, frame(moment, notice=notice, forms=(form, abort)), status)

    return await sessions.in_thread(render)


def _notice(moment: Moment, error: InputError | ServiceError, text: str) -> Notice | None:
    """What belongs to no field, with a way on where there is one."""
    if not text:
        return None
    if isinstance(error, (StaleMomentError, WouldBranchError)):
        return Notice(error.message, "error", "Go to the end", moment.query(len(moment.actions)))
    return Notice(text, "error")
