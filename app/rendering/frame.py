"""A frame: all that a move in time changes, gathered from the other modules of this package."""

from __future__ import annotations

from app.contexts import AbortForm, Composer, FrameContext, Notice
from app.rendering.calls import calls
from app.rendering.composer import abort_form, composer
from app.rendering.figures import as_json, figures
from app.rendering.log import log
from app.rendering.moment import Moment
from app.rendering.requests import FIRST_ROWS, requests
from app.rendering.transport import transport, view
from app.rendering.why import usage_why
from engine.actions import AddRequest


def frame(
    moment: Moment,
    start: int | None = None,
    *,
    notice: Notice | None = None,
    forms: tuple[Composer, AbortForm] | None = None,
    call: int | None = None,
    rows: int = FIRST_ROWS,
    new_place: bool = False,
) -> FrameContext:
    """The frame of a moment; its figures are a change on top of the moment `start` where that is the one before.

    `forms`: what they show instead of the usual; `call`: the call of the step to be told first; `rows`: how many of
    the requests; `new_place`: the page will stand at another address, so that the forms are told in any case.
    """
    data = figures(moment, start)
    delta = data["from"] is not None
    composer_form, abort = forms or _forms(moment, delta=delta and not new_place)
    return FrameContext(
        view(moment),
        transport(moment),
        requests(moment, rows),
        calls(moment, call),
        log(moment),
        composer_form,
        abort,
        notice,
        usage_why(moment),
        as_json(data),
        delta,
    )


def _forms(moment: Moment, *, delta: bool) -> tuple[Composer | None, AbortForm | None]:
    """Both forms; in a change None for one that shows what it showed a moment before."""
    if not delta or moment.applied is None:
        return composer(moment), abort_form(moment)
    added = isinstance(moment.applied.outcome.action, AddRequest)
    trace = moment.applied.trace
    moved = added or trace.admissions or trace.preemptions or trace.finishes or trace.loads
    return composer(moment) if added else None, abort_form(moment) if moved else None
