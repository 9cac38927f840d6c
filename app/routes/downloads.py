"""Files to keep and to hand on: the scenario, its records, and a recording that works without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.responses import Response

from app.contexts import DownloadsContext, RecordingContext
from app.inlining import inlined
from app.rendering.downloads import files
from app.rendering.glossary import GLOSSARY
from app.rendering.moment import Moment
from app.rendering.recording import Recording, check_length
from app.rendering.tour import tour
from app.rendering.transport import view
from app.routes.answers import html, json_lines, parts_of, wants_json, whole_number
from app.routes.errors import status_of
from app.routes.pages import branch_of, place_of
from app.routes.places import asked_source
from app.services.errors import BadValueError, ServiceError, StaleMomentError, TooLongError
from app.services.file_names import attachment, file_name
from app.services.scenario_text import layout
from app.services.scenarios import scenario_of
from app.services.session import Session
from engine.errors import InputError

router = APIRouter()
CHUNK: Final = 65_536
RECORDING_SECONDS: Final = 60.0
"""CPU time that one recording may take."""


@router.get("/{source:open}/downloads")
async def downloads_page(request: Request) -> Response:
    """What can be downloaded."""
    async with parts_of(request).sessions.opened(asked_source(request), branch_of(request)) as session:
        return await _downloads(request, session, place_of(request, session), {})


@router.get("/{source:open}/scenario.json")
async def scenario_file(request: Request) -> Response:
    """The branch as a scenario, as it was written."""
    sessions = parts_of(request).sessions
    async with sessions.opened(asked_source(request), branch_of(request)) as session:
        scenario, name = scenario_of(session), file_name(session.title, "scenario.json")
    text = await sessions.in_thread(lambda: layout(scenario.to_json()))
    return _file(f"{text}\n".encode(), "application/json", name)


@router.get("/{source:open}/records.jsonl")
async def records_file(request: Request) -> Response:
    """The records of the actions from `from` to before `to`, one a line."""
    parts, source, branch = parts_of(request), asked_source(request), branch_of(request)
    async with parts.sessions.opened(source, branch) as session:
        await parts.sessions.at_end(session)
        first, end = _range(request.query_params, session)
        whole = first == 0 and end == session.branch.end
        name = file_name(session.title, "records.jsonl" if whole else f"records-{first}-to-{end}.jsonl")
    return await json_lines(parts.replays.of_branch(source, branch, first, end), _headers(name))


@router.get("/{source:open}/export.html")
async def recording_file(request: Request) -> Response:
    """A page with the moments `from` to `to` that works without a server."""
    parts = parts_of(request)
    async with parts.sessions.opened(asked_source(request), branch_of(request)) as session:
        try:
            await parts.sessions.at_end(session)  # only then is it known where it ends
            first, last = _range(request.query_params, session)
            check_length(first, last)
        except (ServiceError, InputError) as error:
            return await _refused(request, session, error)
    try:
        async with parts.exports.turn():
            recording = await _recorded(request, first, last)
            page = await parts.sessions.in_thread(lambda: _page(request, recording))
    except (ServiceError, InputError) as error:
        async with parts.sessions.opened(asked_source(request), branch_of(request)) as session:
            return await _refused(request, session, error)
    whole = first == 0 and last == recording.session.branch.end
    what = "recording.html" if whole else f"recording-{first}-to-{last}.html"
    return _file(page, "text/html", file_name(recording.session.title, what))


async def _recorded(request: Request, first: int, last: int) -> Recording:
    """The moments of a branch, taken in slices while the session goes on.

    Raises:
        LimitError, TooLongError: they take too many bytes, or too long.
    """
    parts = parts_of(request)
    async with parts.sessions.opened(asked_source(request), branch_of(request)) as session:
        copy, cursor = await parts.exports.copy_of(session, first)
    recording = await parts.sessions.in_thread(lambda: Recording(copy, cursor, last, parts.templates.render))
    while not recording.is_done:
        await parts.sessions.threads.behind(recording.slice)
        if recording.spent > RECORDING_SECONDS:
            raise TooLongError("This recording takes longer to make than one request may.", "to", "a shorter range")
    return recording


def _range(query: Mapping[str, str], session: Session) -> tuple[int, int]:
    """The first and the last moment that are asked for.

    Raises:
        ServiceError: there are no such moments.
    """
    end = session.branch.end
    first, last = whole_number(query.get("from"), "from", 0), whole_number(query.get("to"), "to", end)
    for where, at in (("from", first), ("to", last)):
        if at > end:
            message = f"There is no moment {at}: this branch has {end} actions."
            raise StaleMomentError(message, where, f"at most {end}")
    if first > last:
        raise BadValueError("It would end before it begins.", "to", f"{first} or more")
    return first, last


def _page(request: Request, recording: Recording) -> bytes:
    """The file."""
    parts, session = parts_of(request), recording.session
    source, root = session.source, parts.settings.public_url
    frame = replace(recording.page, view=replace(recording.page.view, recorded=True))
    story = session.origin.story if session.origin is not None else None
    context = RecordingContext(
        frame=frame,
        owner=False,
        embedded=False,
        here="",
        base=frame.view.base,
        page=source.page,
        select="",
        tour=tour(story, frame.view, "") if story is not None else None,
        glossary=GLOSSARY,
        inlined=inlined(),
        first=recording.first,
        last=recording.last,
        held=recording.packed(),
        live=f"{root}/{source.page}" if root else "",
    )
    return parts.templates.render("recording.html", context).encode()


async def _refused(request: Request, session: Session, error: ServiceError | InputError) -> Response:
    """What is wrong with a range, beside its fields."""
    if wants_json(request):
        raise error
    return await _downloads(request, session, session.branch.end, request.query_params, error)


async def _downloads(
    request: Request,
    session: Session,
    at: int,
    typed: Mapping[str, str],
    error: ServiceError | InputError | None = None,
) -> Response:
    sessions = parts_of(request).sessions
    cursor = await sessions.seek(session, at)

    def render() -> Response:
        moment = Moment.of(session, cursor)
        context = DownloadsContext(view(moment), files(session.branch.end, typed, error))
        return html(request, "downloads.html", context, 200 if error is None else status_of(error))

    return await sessions.in_thread(render)


def _file(content: bytes, kind: str, name: str) -> Response:
    """Something to be saved under a name. In pieces, so that none of them is long in the making."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), CHUNK):
            yield content[start : start + CHUNK]

    return StreamingResponse(pieces(), headers=_headers(name), media_type=kind)


def _headers(name: str) -> dict[str, str]:
    return {"content-disposition": attachment(name), "vary": "Accept, Cookie"}
