"""The first page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.rendering.gallery import gallery
from app.routes.answers import html, parts_of

router = APIRouter()


@router.get("/")
async def first_page(request: Request) -> Response:
    """The gallery: the lesson, a blank session, the stories, of one topic if the URL asks for it."""
    topic = request.query_params.get("topic", "")
    return await parts_of(request).sessions.in_thread(lambda: html(request, "gallery.html", gallery(topic)))
