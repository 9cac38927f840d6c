"""What the API looks like: the document for programs, and the page that shows it; no other host is asked."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from app.contexts import DocsContext
from app.routes.answers import html
from app.routes.api.document import document

router = APIRouter()


@router.get("/openapi.json")
async def openapi() -> Response:
    """The document."""
    return JSONResponse(document())


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page."""
    return html(request, "docs.html", DocsContext())
