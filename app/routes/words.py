"""What the words mean, on a page of its own."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.contexts import GlossaryContext
from app.rendering.glossary import GLOSSARY
from app.routes.answers import html

router = APIRouter()


@router.get("/words")
async def words(request: Request) -> Response:
    """The glossary; each word has an address: `/words#word-idle-hits`."""
    return html(request, "words.html", GlossaryContext(GLOSSARY))
