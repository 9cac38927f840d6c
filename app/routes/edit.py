"""The editor: the text of a scenario is checked, laid out, and opened as a session. Only opening stores anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, RedirectResponse
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.contexts import EditorContext, Verdict, VerdictContext
from app.rendering.editor import right, wrong
from app.routes.answers import error_body, html, json_answer, parts_of, path_of, wants_frame, wants_json
from app.routes.cookies import give_secret
from app.routes.errors import status_of
from app.routes.forms import MOST_BYTES
from app.routes.pages import branch_of, place_of
from app.routes.places import asked_source
from app.services import appending
from app.services.appending import Acted
from app.services.checking import Checked, Problem, check_text, problem_in
from app.services.errors import ServiceError
from app.services.scenario_text import layout
from app.services.scenarios import scenario_of
from app.services.session import MAIN
from app.services.sources import UNTITLED
from app.services.trial import Trial
from app.services.uploads import in_lines, read_upload
from app.templating import HERE, to_root
from engine.errors import InputError
from engine.scenario import loads

router = APIRouter()
EXAMPLE: Final = (HERE / "templates" / "example.json").read_text(encoding="utf-8").rstrip()
"""What a new scenario starts from."""
CHECK_SECONDS: Final = 1.0
"""CPU that a check may spend on replaying."""
MOST_NAME: Final = 200


@dataclass(slots=True)
class _Sent:
    """What was sent: a text, or what is wrong with the file."""

    text: str = ""
    note: str = ""
    at: int = 0
    error: InputError | ServiceError | None = None


@router.get("/edit")
async def new(request: Request) -> Response:
    """The editor with a small example."""
    return await _show(request, None)


@router.get("/{source:open}/edit")
async def of_branch(request: Request) -> Response:
    """The editor with a branch of a session, a story, what a link holds."""
    return await _show(request, None)


@router.post("/edit")
@router.post("/{source:open}/edit")
async def open_it(request: Request) -> Response:
    """Open the text that was sent, or the file, as a new session; what is looked at stays as it is."""
    return await _open(request)


@router.post("/check")
@router.post("/{source:open}/check")
async def check(request: Request) -> Response:
    """Say what is wrong with a text, or where it leads."""
    return await _check(request)


@router.post("/tidy")
@router.post("/{source:open}/tidy")
async def tidy(request: Request) -> Response:
    """Lay a text out with one action a line."""
    return await _tidy(request)


# ---- what is asked for


async def _show(request: Request, sent: _Sent | None, verdict: Verdict | None = None, status: int = 200) -> Response:
    """The page; without anything sent it holds the text of what is looked at, or the example."""
    parts = parts_of(request)
    if "source" not in request.path_params:
        sent = sent or _Sent(EXAMPLE)
        context = EditorContext(None, "./", "", sent.at, sent.text, verdict)
        return html(request, "editor.html", context, status)
    source = asked_source(request)
    async with parts.sessions.opened(source, branch_of(request)) as session:
        if sent is None:
            text = await parts.sessions.in_thread(lambda: layout(scenario_of(session).to_json()))
            sent = _Sent(text, at=place_of(request, session))
        query = f"?branch={session.chosen}"
        back = f"{source.from_below}{query}&at={min(sent.at, session.branch.end)}"
        context = EditorContext(session.shown_title, back, query, sent.at, sent.text, verdict)
    return html(request, "editor.html", context, status)


async def _open(request: Request) -> Response:
    sent, checked = await _read_and_check(request)
    if checked.scenario is not None:
        scenario = checked.scenario
        try:
            sessions, title = parts_of(request).sessions, scenario.title or UNTITLED
            acted = await appending.start(sessions, title, scenario.config, scenario.actions)
            return _opened(request, acted, min(sent.at, acted.at))
        except (InputError, ServiceError) as error:
            checked = Checked(None, (problem_in(sent.text, error),))
    first = checked.problems[0].error
    if wants_json(request):
        return json_answer(error_body(first.code, first.message, first.where, first.expected), status_of(first))
    return await _show(request, sent, wrong(sent.text, checked.problems, sent.note), status_of(first))


def _opened(request: Request, acted: Acted, at: int) -> Response:
    session = acted.session
    if wants_json(request):
        answer = json_answer({"session": session.id, "branch": MAIN, "at": at, "end": acted.at}, 201)
    else:
        page = f"{to_root(path_of(request))}{session.source.page}"
        answer = RedirectResponse(f"{page}?branch={MAIN}&at={at}", 303)
    assert acted.secret is not None
    give_secret(request, answer, session.id, acted.secret)
    return answer


async def _check(request: Request) -> Response:
    sent, checked = await _read_and_check(request)
    problems, trial = checked.problems, None
    if checked.scenario is not None:
        trial = await _tried(request, checked)
        if trial.error is not None:
            problems = (problem_in(sent.text, trial.error),)
    verdict = right(trial, sent.note) if trial and not problems else wrong(sent.text, problems, sent.note)
    if wants_json(request):
        return json_answer(_as_json(verdict, problems))
    if wants_frame(request):
        return html(request, "verdict.html", VerdictContext(verdict))
    return await _show(request, sent, verdict)


async def _tried(request: Request, checked: Checked) -> Trial:
    """The scenario as far as it replays in the time that a check may take."""
    parts, scenario = parts_of(request), checked.scenario
    assert scenario is not None
    trial = await parts.sessions.in_thread(lambda: Trial(scenario, parts.settings.limits))
    spent = 0.0
    while not trial.is_done and spent < CHECK_SECONDS:
        spent += await parts.sessions.threads.behind(trial.slice)
    return trial


async def _tidy(request: Request) -> Response:
    sent = await _read(request)
    problems: tuple[Problem, ...] = ()
    if sent.error is None:
        text = sent.text
        try:
            sent.text = await parts_of(request).sessions.in_thread(lambda: _tidied(text))
        except InputError:
            problems = (await parts_of(request).sessions.in_thread(lambda: _checked(request, text))).problems
    else:
        problems = (Problem(sent.error),)
    if problems:
        verdict, status = wrong(sent.text, problems, sent.note), status_of(problems[0].error)
        if wants_frame(request):
            return html(request, "verdict.html", VerdictContext(verdict), status)
        return await _show(request, sent, verdict, status)
    if wants_frame(request) or wants_json(request):
        return PlainTextResponse(sent.text)
    return await _show(request, sent)


def _tidied(text: str) -> str:
    value = loads(text)
    return layout(value) if isinstance(value, dict) else text


# ---- what was sent


async def _read_and_check(request: Request) -> tuple[_Sent, Checked]:
    sent = await _read(request)
    if sent.error is not None:
        return sent, Checked(None, (Problem(sent.error),))
    return sent, await parts_of(request).sessions.in_thread(lambda: _checked(request, sent.text))


def _checked(request: Request, text: str) -> Checked:
    return check_text(text, parts_of(request).settings.limits)


async def _read(request: Request) -> _Sent:
    """The form, in which a file goes before the text; or the body itself as the bytes of a file."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("multipart/form-data", "application/x-www-form-urlencoded"):
        name = request.query_params.get("name", "")[:MOST_NAME]
        return _from_bytes(_Sent(), await request.body(), name)
    async with request.form(max_files=1, max_fields=20, max_part_size=MOST_BYTES) as form:
        sent = _Sent(in_lines(_text(form, "text")))
        at = _text(form, "at")
        sent.at = int(at) if at.isascii() and at.isdecimal() and len(at) < 9 else 0
        file = form.get("file")
        if isinstance(file, UploadFile) and (file.filename or file.size):
            return _from_bytes(sent, await file.read(), (file.filename or "the file")[:MOST_NAME])
    return sent if sent.text.strip() else _from_bytes(sent, b"", "")


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _from_bytes(sent: _Sent, data: bytes, name: str) -> _Sent:
    """The text of a file; where it is none, what was typed stays."""
    try:
        upload = read_upload(data, name)
    except InputError as error:
        sent.error = error
        return sent
    sent.text, sent.note = upload.text, upload.note
    return sent


def _as_json(verdict: Verdict, problems: tuple[Problem, ...]) -> dict[str, object]:
    """A verdict for programs: the one error shape for each problem, and where in the text it is."""
    told = []
    for problem, row in zip(problems, verdict.problems, strict=True):
        error = problem.error
        body = error_body(error.code, error.message, error.where, error.expected)["error"]
        told.append({**body, "line": row.line or None, "column": row.column or None, "length": row.length})
    return {"summary": verdict.summary, "problems": told, "note": verdict.note}
