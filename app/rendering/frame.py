"""A frame: all that a move in time changes, gathered from the other modules of this package."""

from __future__ import annotations

from app.contexts import AbortForm, Composer, FrameContext, Notice
from app.rendering.calls import calls
from app.rendering.composer import abort_form, composer
from app.rendering.figures import as_json, figures
from app.rendering.log import log
from app.rendering.moment import Moment
from app.rendering.requests import requests
from app.rendering.transport import transport, view


def frame(
    moment: Moment,
    start: int | None = None,
    *,
    notice: Notice | None = None,
    forms: tuple[Composer, AbortForm] | None = None,
) -> FrameContext:
    """The frame of a moment; its figures are a change on top of the moment `start` where that is the one before."""
    data = figures(moment, start)
    composer_form, abort = forms or (composer(moment), abort_form(moment))
    return FrameContext(
        view(moment),
        transport(moment),
        requests(moment),
        calls(moment),
        log(moment),
        composer_form,
        abort,
        notice,
        as_json(data),
        data["from"] is not None,
    )
