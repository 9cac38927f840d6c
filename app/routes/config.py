"""The config form: a session of the reader's own with another config, empty or with the same actions."""

from __future__ import annotations

from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from app.rendering.config_form import config_form
from app.routes.answers import error_body, html, json_answer, parts_of, path_of, wants_json, whole_number
from app.routes.cookies import give_secret
from app.routes.errors import status_of
from app.routes.forms import read_form
from app.routes.pages import branch_of
from app.routes.places import asked_source
from app.services import appending
from app.services.appending import Acted
from app.services.blank import BLANK
from app.services.config_text import Errors, read_config, texts_of
from app.services.errors import BadValueError, ServiceError
from app.services.session import MAIN
from app.services.sources import Source
from app.templating import to_root
from engine.actions import Action, AddRequest
from engine.config import EngineConfig
from engine.errors import InputError
from engine.scenario import loads
from engine.strict_json import flag, record

router = APIRouter()


@dataclass(slots=True)
class _Asked:
    """What was asked for: a config or what is wrong with it, and whether the actions are kept."""

    config: EngineConfig | None = None
    keep: bool = False
    at: int = 0
    typed: dict[str, str] = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)


@router.get("/{source:open}/config")
async def config_page(request: Request) -> Response:
    """The form, filled in with the config of what is looked at."""
    return await _show(request, asked_source(request))


@router.post("/{source:open}/config")
async def make_with_config(request: Request) -> Response:
    """Make a session, with the actions of this one if they are asked for. Whoever looks may: it is a copy."""
    return await _make(request, asked_source(request))


async def _show(request: Request, source: Source, asked: _Asked | None = None, status: int = 200) -> Response:
    async with parts_of(request).sessions.opened(source, branch_of(request)) as session:
        branch, title = session.branch, session.shown_title
        if asked is None:
            at = min(whole_number(request.query_params.get("at"), "at", branch.end), branch.end)
            asked = _Asked(at=at, typed=texts_of(branch.config))
        query = f"?branch={session.chosen}&at={asked.at}"
        context = config_form(
            asked.typed,
            asked.errors,
            title=title,
            back=f"{source.from_below}{query}",
            at=asked.at,
            num_actions=branch.end,
        )
    return html(request, "config.html", context, status)


async def _make(request: Request, source: Source) -> Response:
    asked, sessions = await _read(request), parts_of(request).sessions
    async with sessions.opened(source, branch_of(request)) as session:
        actions = session.branch.actions[:] if asked.keep else []
        title = session.title if asked.keep else BLANK
    if asked.config is not None:
        try:
            acted = await appending.start(sessions, title, asked.config, actions)
            return _made(request, acted, min(asked.at, acted.at))
        except (InputError, ServiceError) as error:
            name = "keep" if error.where.startswith("actions") else ""
            asked.errors[name] = error if wants_json(request) else _said(error, actions)
    first = next(iter(asked.errors.values()))
    status = status_of(first)
    if wants_json(request):
        return json_answer(error_body(first.code, first.message, first.where, first.expected), status)
    return await _show(request, source, asked, status)


def _made(request: Request, acted: Acted, at: int) -> Response:
    session = acted.session
    if wants_json(request):
        answer = json_answer({"session": session.id, "branch": MAIN, "at": acted.at, "end": acted.at}, 201)
    else:
        page = f"{to_root(path_of(request))}{session.source.page}"
        answer = RedirectResponse(f"{page}?branch={MAIN}&at={at}", 303)
    assert acted.secret is not None
    give_secret(request, answer, session.id, acted.secret)
    return answer


async def _read(request: Request) -> _Asked:
    asked, limits = _Asked(), parts_of(request).settings.limits
    try:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            written = record(loads(await request.body()), "", ("config", "keep_actions"), ("config",))
            asked.keep = flag(written.get("keep_actions", False), "keep_actions")
            asked.config = EngineConfig.from_json(written["config"])
            limits.check_config(asked.config)
        else:
            asked.typed = {name: values[-1] for name, values in (await read_form(request)).items()}
            asked.keep = bool(asked.typed.get("keep"))
            asked.at = whole_number(asked.typed.get("at"), "at", 0)
            asked.config, asked.errors = read_config(asked.typed, limits)
    except (InputError, ServiceError) as error:
        asked.config, asked.errors = None, {"": error}
    return asked


def _said(error: InputError | ServiceError, actions: list[Action]) -> InputError | ServiceError:
    """Names the action that can't run on the config as the page counts and calls it."""
    index = error.where.partition("[")[2].partition("]")[0]
    if not index.isdecimal():
        return error
    action = actions[int(index)]
    name = f"{action.do} {action.id}" if isinstance(action, AddRequest) else action.do
    message = f"Action {int(index) + 1}, {name}, can't run on this config: {error.message}"
    return BadValueError(message, error.where, error.expected)
