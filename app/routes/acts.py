"""Acting: step, run, add, abort, reset. A form is answered with a redirect, htmx with a frame, a program with JSON."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.contexts import FormErrorContext, Notice
from app.rendering.composer import abort_form, composer
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.rendering.notices import acted_notice
from app.rendering.transport import view
from app.routes.answers import error_body, html, json_answer, parts_of, path_of, wants_frame, wants_json
from app.routes.asked import Asked
from app.routes.cookies import give_secret, secret_of
from app.routes.draft import drafted
from app.routes.errors import status_of
from app.routes.forms import read_asked
from app.routes.pages import frame_answer, page_answer
from app.routes.places import asked_source, way_back
from app.services import appending
from app.services.appending import Acted
from app.services.errors import ServiceError, StaleMomentError
from app.services.session import Session
from app.templating import to_root
from engine.errors import InputError

router = APIRouter()


@router.post("/{source:open}/step")
@router.post("/{source:open}/run")
@router.post("/{source:open}/add")
@router.post("/{source:open}/abort")
@router.post("/{source:open}/reset")
async def act(request: Request) -> Response:
    """Act. On a session only its owner can; on all others what is appended makes a session of the reader's own."""
    parts = parts_of(request)
    kind = request.url.path.rpartition("/")[2]
    asked = await read_asked(request, kind)
    async with parts.sessions.acting_on(asked_source(request), secret_of(request), asked.branch) as session:
        at, branch = session.branch.end if asked.at is None else asked.at, session.chosen
        if asked.error is None:
            try:
                if asked.action is None:
                    acted = await parts.runs.begin(session, branch, at, asked.until)
                else:
                    acted = await appending.act(
                        parts.sessions, session, branch, at, asked.action, instead=asked.instead
                    )
                if wants_frame(request) or acted.run is None or acted.run.why:
                    return await answer_acted(request, acted, at)
            except (InputError, ServiceError) as error:
                if isinstance(error, ServiceError) and error.status in (403, 404, 503):
                    raise
                asked.blame(error)
        if asked.error is not None:
            return await _refusal(request, session, asked, at)
    # Only htmx shows how a run gets on; everybody else waits for its end.
    under_way = parts.runs.find(session.id, branch)
    if under_way is not None:
        await under_way.done.wait()
    async with parts.sessions.opened(session.id, branch) as session:
        run = under_way.run.end if under_way else acted.run
        return await answer_acted(request, Acted(session, session.branch.end, acted.secret, run), at)


@router.get("/{source:open}/step")
@router.get("/{source:open}/add")
@router.get("/{source:open}/abort")
@router.get("/{source:open}/reset")
async def ask(request: Request) -> Response:
    """The address of a form that was refused, asked for again: the page."""
    page, _ = way_back(request, asked_source(request))
    return RedirectResponse(f"{page}?{request.url.query}" if request.url.query else page, 303)


async def answer_acted(request: Request, acted: Acted, start: int, told: str = "") -> Response:
    """What was done: the moment after it; `told`: what else there is to say."""
    session, at = acted.session, acted.at
    here = f"?branch={session.chosen}&at={at}"
    if wants_json(request):
        done = {"session": session.id, "branch": session.chosen, "at": at, "end": session.branch.end}
        answer = json_answer({**done, "replayed_with_connector": True} if acted.connector else done)
    elif wants_frame(request):
        answer = await _frame(request, acted, start, told)
    else:
        said = f"&ran={acted.run.steps}-{acted.run.why}" if acted.run else f"&left={acted.left}" if acted.left else ""
        said += f"&connector={acted.connector}" if acted.connector else ""
        answer = RedirectResponse(f"{to_root(path_of(request))}{session.source.page}{here}{said}", 303)
    if acted.secret:
        give_secret(request, answer, session.id, acted.secret)
    return answer


async def _frame(request: Request, acted: Acted, start: int, told: str) -> Response:
    parts, session = parts_of(request), acted.session
    cursor = await parts.sessions.seek(session, acted.at)

    def render() -> Response:
        moment = Moment.of(session, cursor)
        notice = acted_notice(moment, acted, parts.settings.steps_a_call, told)
        # A change is on top of what the page shows: of the same branch, and not of one that was replayed differently.
        is_other = acted.left or acted.connector
        answer = frame_answer(
            request,
            session,
            cursor,
            acted.at,
            -1 if is_other else start,
            notice=notice,
            new_place=bool(acted.secret),
        )
        new = f"{to_root(f'/{asked_source(request).page}')}{session.source.page}" if acted.secret else ""
        answer.headers["hx-push-url"] = f"{new}?branch={session.chosen}&at={cursor.at}"
        return answer

    return await parts.sessions.in_thread(render)


async def _refusal(request: Request, session: Session, asked: Asked, at: int) -> Response:
    """What is wrong: beside its field, with what was typed."""
    error = asked.error
    assert error is not None
    status = status_of(error)
    if wants_json(request):
        code, where = error.code, error.where
        return json_answer(error_body(code, error.message, where, error.expected), status)
    parts = parts_of(request)
    sessions = parts.sessions
    cursor = await sessions.seek(session, min(at, session.branch.end))

    def render() -> Response:
        moment = Moment.of(session, cursor)
        typed = asked.typed if asked.kind == "add" else None
        errors = asked.errors if asked.kind == "add" else {}
        draft = drafted(moment, asked, parts.settings.limits) if typed else ""
        form = composer(moment, typed, {name: text for name, text in errors.items() if name}, draft)
        loose = " ".join(asked.errors.values()) if asked.kind != "add" else asked.errors.get("", "")
        abort = abort_form(moment, loose, asked.typed.get("id", "")) if asked.kind == "abort" else abort_form(moment)
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
    if isinstance(error, StaleMomentError):
        return Notice(error.message, "error", "Go to the end", moment.query(len(moment.actions)))
    return Notice(text, "error")
