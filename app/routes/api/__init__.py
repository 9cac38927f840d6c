"""The JSON API under `/api`, for programs; `/docs` shows it, `/openapi.json` describes it.

Whoever has a session's address may look; acting needs its secret as a Bearer token. Bodies are JSON, whatever their
content type says; a key or a parameter that isn't known is an error. Every error has the one shape.
"""

from __future__ import annotations

from fastapi import APIRouter

from app.routes.api import docs, probe, records, sessions

router = APIRouter(include_in_schema=False)
router.include_router(docs.router)
router.include_router(sessions.router)
router.include_router(records.router)
router.include_router(probe.router)
