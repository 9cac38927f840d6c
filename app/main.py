"""The web application, put together."""

from __future__ import annotations

from asyncio import create_task
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp
from starlette_compress import CompressMiddleware, add_compress_type

from app.middleware import BodyLimit, HeadAsGet, OriginCheck, SecurityHeaders
from app.rendering.gallery import gallery as rendered_gallery
from app.routes import (
    acts,
    api,
    branches,
    compare,
    config,
    downloads,
    draft,
    edit,
    gallery,
    pages,
    panels,
    share,
    words,
)
from app.routes.answers import JSON_LINES, Parts
from app.routes.errors import add_handlers
from app.services.branching import Branching
from app.services.exporting import Exports
from app.services.recording import Replays
from app.services.runs import Runs
from app.services.sessions import Sessions
from app.settings import Settings
from app.store import Store
from app.templating import Templates, VersionedFiles


def create_app(settings: Settings) -> ASGIApp:
    """The application over the database in `settings.data`, with everything that surrounds a request.

    Raises:
        StoreError: the database can't be opened.
    """
    add_compress_type(JSON_LINES)
    store = Store(settings.data)
    sessions = Sessions(settings, store)
    runs = Runs(sessions)
    templates = Templates(settings.max_body)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        # So that whoever comes first doesn't wait for the stories to be replayed.
        first_page = create_task(sessions.in_thread(lambda: templates.render("gallery.html", rendered_gallery(""))))
        yield
        await first_page
        await runs.close()
        sessions.close()
        store.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    replays, exports = Replays(sessions), Exports(sessions)
    app.state.parts = Parts(settings, store, sessions, runs, Branching(sessions), replays, exports, templates)
    add_handlers(app)
    for part in (gallery, pages, panels, draft, config, edit, acts, branches, compare, share, downloads, words, api):
        app.include_router(part.router)
    app.mount("/static", VersionedFiles(templates.version))
    own_hosts = [urlsplit(settings.public_url).netloc.lower()] if settings.public_url else []
    guarded = OriginCheck(BodyLimit(HeadAsGet(CompressMiddleware(app)), settings.max_body), own_hosts)
    return SecurityHeaders(guarded)
