"""Branches as a whole: the list, names, deletion, what if; runs that are under way; a copy for somebody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.contexts import Notice, RunContext
from app.rendering.branches import branch_list
from app.rendering.moment import Moment
from app.rendering.notices import ended_beside, run_notice, under_way
from app.rendering.transport import transport, view
from app.rendering.variants import KNOBS, varied
from app.routes.acts import answer_acted
from app.routes.answers import html, json_answer, parts_of, wants_frame, wants_json, whole_number
from app.routes.cookies import give_secret, secret_of
from app.routes.forms import read_plain
from app.routes.pages import branch_of, frame_answer, is_owner, looked_at
from app.routes.places import asked_source
from app.services.appending import Acted
from app.services.errors import BadValueError, ServiceError
from app.services.running import RunEnd
from app.services.session import Session
from engine.errors import InputError

router = APIRouter()


# ---- runs


@router.get("/{source:seen}/run")
async def progress(request: Request) -> Response:
    """How a run gets on; once it has ended, the frame of the end. `of`: the run's branch if it isn't the page's."""
    parts, session_id = parts_of(request), asked_source(request).name
    async with parts.sessions.opened(asked_source(request), branch_of(request)) as session:
        branch = session.chosen
        of = request.query_params.get("of", branch)
        goes_on = parts.runs.find(session_id, of)
        one = goes_on or parts.runs.ended(session_id, of)
        run = one.run.end if one else RunEnd("steps", 0)
        if wants_json(request):
            told = {"steps": run.steps, "why": run.why, "end": session.branch.end}
            return json_answer({"session": session_id, "branch": branch, **told})
        start = min(whole_number(request.query_params.get("from"), "from", 0), session.branch.end)
        if goes_on is None and of == branch:
            return await _run_ended(request, session, run, start, follows=one is None or start >= one.told)
        moment = Moment.of(session, await parts.sessions.seek(session, start))
        here, line = await parts.sessions.in_thread(lambda: (view(moment), transport(moment)))
        if goes_on is None:
            return html(request, "run.html", RunContext(here, None, await _beside_notice(request, session, of, run)))
        # Not asked for again: the run may have ended by now, and the next question tells how.
        notice = Notice("", run=under_way(moment, of, run, parts.settings.steps_a_call, goes_on.told))
        return html(request, "run.html", RunContext(here, line, notice))


async def _run_ended(request: Request, session: Session, run: RunEnd, start: int, *, follows: bool) -> Response:
    """The end of a run for a page that followed it; whoever looked elsewhere meanwhile stays there."""
    sessions, end = parts_of(request).sessions, session.branch.end
    cursor = await sessions.seek(session, end)
    notice = await sessions.in_thread(lambda: run_notice(Moment.of(session, cursor), run))
    if follows or start >= end:
        return await sessions.in_thread(lambda: frame_answer(request, session, cursor, end, start, notice=notice))
    notice = replace(notice, link="Go to the end", query=f"?branch={session.chosen}&at={end}")
    here = await sessions.seek(session, start)
    return await sessions.in_thread(lambda: frame_answer(request, session, here, start, -1, notice=notice))


async def _beside_notice(request: Request, session: Session, branch: str, run: RunEnd) -> Notice | None:
    """How a run of another branch ended; from here on that branch is the chosen one."""
    if branch not in session.nodes or session.nodes[branch].deleted:
        return None
    sessions = parts_of(request).sessions
    await sessions.choose(session, branch)
    cursor = await sessions.seek(session, session.branch.end)
    return await sessions.in_thread(lambda: ended_beside(Moment.of(session, cursor), run))


@router.post("/{source:stored}/stop")
async def stop(request: Request) -> Response:
    """Stop the run that is under way at the next whole step. `of`: its branch if it isn't the page's."""
    session_id = asked_source(request).name
    parts, fields = parts_of(request), await read_plain(request)
    async with parts.sessions.acting_on(session_id, secret_of(request), _text(fields, "branch")) as session:
        branch = session.chosen
    of = _text(fields, "of") or branch
    stopped = await parts.runs.stop(session_id, of)
    async with parts.sessions.opened(asked_source(request), branch) as session:
        one = parts.runs.ended(session_id, of)
        ended = stopped.end if stopped else one.run.end if one else RunEnd("stopped", 0)
        at = min(whole_number(fields.get("at"), "at", session.branch.end), session.branch.end)
        if of != branch and wants_frame(request):
            here = view(Moment.of(session, await parts.sessions.seek(session, at)))
            return html(request, "run.html", RunContext(here, None, await _beside_notice(request, session, of, ended)))
        if wants_frame(request) and one is not None and at < one.told:
            return await _run_ended(request, session, ended, at, follows=False)
        return await answer_acted(request, Acted(session, session.branch.end, None, ended), at)


# ---- the list of branches


@router.get("/{source:open}/branches")
async def list_branches(request: Request) -> Response:
    """The branches of a session; of all others the one that there is, and what if."""
    async with looked_at(request) as (session, _cursor, at):
        return await _answer_list(request, session, at)


async def _answer_list(request: Request, session: Session, at: int, error: str = "", status: int = 200) -> Response:
    sessions = parts_of(request).sessions
    cursor = await sessions.seek(session, at)
    fragment = wants_frame(request)
    context = branch_list(Moment.of(session, cursor), is_owner(request, session), error, whole_page=not fragment)
    return html(request, "branches.html", context, status)


@router.post("/{source:stored}/rename")
async def rename(request: Request) -> Response:
    """Give the branch another name."""
    return await _change(request, "rename")


@router.post("/{source:stored}/delete")
async def delete(request: Request) -> Response:
    """Delete the branch."""
    return await _change(request, "delete")


async def _change(request: Request, kind: str) -> Response:
    parts, fields = parts_of(request), await read_plain(request)
    _check_known(fields, ("name",) if kind == "rename" else ())
    if not (branch := _text(fields, "branch")):
        raise BadValueError("Which branch is meant isn't said.", "branch", "the id of a branch")
    async with parts.sessions.acting_on(asked_source(request), secret_of(request), branch) as session:
        at = min(whole_number(fields.get("at"), "at", session.branch.end), session.branch.end)
        try:
            if kind == "rename":
                await parts.branching.rename(session, branch, _text(fields, "name"))
            else:
                await parts.sessions.choose(session, await parts.branching.delete(session, branch))
                at = min(at, session.branch.end)
        except BadValueError as error:
            if wants_json(request):
                raise
            expected = f" Expected: {error.expected}." if error.expected else ""
            return await _answer_list(request, session, at, f"{error.message}{expected}", error.status)
        told = f"{session.node.name} it is." if kind == "rename" else f"Deleted. This is {session.node.name}."
        return await answer_acted(request, Acted(session, at, left=branch), at, told)


# ---- what if


@router.post("/{source:open}/vary")
async def vary(request: Request) -> Response:
    """What if: the branch's actions from 0 on another config; of what is no session a session of the reader's own."""
    parts, fields = parts_of(request), await read_plain(request)
    async with parts.sessions.acting_on(asked_source(request), secret_of(request), _text(fields, "branch")) as session:
        branch = session.chosen
        asked = min(whole_number(fields.get("at"), "at", session.branch.end), session.branch.end)
        try:
            config, name = varied(session.branch.config, _knobs(fields))
            done = await parts.branching.with_config(session, config, name)
        except (InputError, BadValueError) as error:
            if wants_json(request) or (isinstance(error, ServiceError) and error.status == 503):
                raise
            knob = error.where.rpartition(".")[2]
            text = f"{KNOBS.get(knob, knob)}: {error.message.rstrip('.')}. Expected: {error.expected}."
            return await _answer_list(request, session, asked, text, 422)
        at = min(asked, done.at)
        told = f"What if: {session.node.name}, with the same actions from the start."
        if done.problem:
            told = f"{told} It ends after {done.at} of {done.wanted}. {done.problem}"
        return await answer_acted(request, Acted(session, at, done.secret, left=branch), at, told)


def _text(fields: Mapping[str, Any], name: str) -> str:
    """A field that is a text; "" where it is missing.

    Raises:
        BadValueError: a program sent something else.
    """
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadValueError(f'"{name}" is no text.', name, "a text")
    return value


def _check_known(fields: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse what would be ignored.

    Raises:
        BadValueError: a field that this doesn't know.
    """
    known = ("branch", "at", *known)
    for name in fields:
        if name not in known:
            raise BadValueError(f'"{name}" is not known here.', name, f"only {', '.join(known)}")


def _knobs(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What is turned: one knob of a form, or the options that a program sent."""
    if "knob" in fields:
        return {str(fields["knob"]): fields.get("value", "")}
    return {name: value for name, value in fields.items() if name not in ("branch", "at")}


# ---- a copy


@router.post("/{source:stored}/fork")
async def fork(request: Request) -> Response:
    """A copy of the session for whoever asks; he needs no secret, and gets one."""
    parts, fields = parts_of(request), await read_plain(request)
    _check_known(fields, ())
    async with parts.sessions.opened(asked_source(request), _text(fields, "branch")) as session:
        branch = session.chosen
        at = min(whole_number(fields.get("at"), "at", session.branch.end), session.branch.end)
        new, secret = await parts.branching.copy(session)
        end = session.branch.end
    answer: Response
    if wants_json(request):
        answer = json_answer({"session": new, "branch": branch, "at": at, "end": end})
    else:
        answer = RedirectResponse(f"../{new}?branch={branch}&at={at}", 303)
    give_secret(request, answer, new, secret)
    return answer
