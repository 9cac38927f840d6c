"""Routes below a source: each is declared once, `/{source:source}/…`, for sessions, stories, links and embeds alike."""

from __future__ import annotations

from typing import cast

from fastapi import Request
from starlette.convertors import Convertor, register_url_convertor

from app.routes.answers import path_of
from app.services.sources import OPEN, Source, source_of


class _Sources(Convertor[Source]):
    """Every source, embedded or not."""

    regex = rf"(?:embed/)?(?:{OPEN})"

    def convert(self, value: str) -> Source:
        return source_of(value)

    def to_string(self, value: Source) -> str:
        return value.page.rstrip("/")


class _Open(_Sources):
    """Those with everything around them: on which one can act."""

    regex = OPEN


class _Stored(_Sources):
    """Sessions."""

    regex = r"s/[^/]+"


class _Seen(_Sources):
    """Sessions, embedded or not."""

    regex = r"(?:embed/)?s/[^/]+"


# The routers of this package use them when they are imported.
register_url_convertor("source", _Sources())
register_url_convertor("open", _Open())
register_url_convertor("stored", _Stored())
register_url_convertor("seen", _Seen())


def asked_source(request: Request) -> Source:
    """The source that a route was asked for."""
    return cast(Source, request.path_params["source"])


def way_back(request: Request, source: Source) -> tuple[str, str]:
    """Relative to the address that was asked for: the source's page, and what stands before everything below it."""
    if path_of(request) == f"/{source.page}":
        return "", source.base
    return source.from_below, ""
