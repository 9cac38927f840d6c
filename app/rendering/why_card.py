"""A Why? card put together: which moment tells the answer, and the answer."""

from __future__ import annotations

from typing import Final

from app.contexts import View, WhyContext
from app.rendering.moment import Moment
from app.rendering.why import Answer, why_usage, why_waiting
from app.rendering.why_hit import why_hit
from app.rendering.why_preempted import why_preempted
from app.rendering.words import isolated
from app.services.errors import NoAnswerError
from app.services.stories import RequestEvent
from engine.errors import shown
from engine.request import RequestStatus

ABOUT: Final = ("waiting", "hit", "preempted", "usage")


def told_at(moment: Moment, about: str, request: str) -> int:
    """The moment whose trace answers a question about this one.

    Raises:
        NoAnswerError: it makes no sense here.
    """
    if about not in ABOUT:
        raise NoAnswerError("This is no question that a card answers.", "about", ", ".join(ABOUT))
    if about == "usage":
        return moment.at
    if request not in moment.columns.numbers:
        raise NoAnswerError(f"No request was ever called {isolated(shown(request))}.", "id", "the id of a request")
    if about == "waiting":
        living = moment.scheduler.requests.get(request)
        if living is None or living.status in (RequestStatus.RUNNING, RequestStatus.FINISHED_ABORTED):
            how = "has not come yet, or has left" if living is None else "is not in line"
            raise NoAnswerError(
                f"{isolated(shown(request))} doesn't wait at this moment: it {how}.", "id", "a waiting request"
            )
        return moment.at
    return _event(moment, about, request).action + 1


def _event(moment: Moment, about: str, request: str) -> RequestEvent:
    """What the question is about: the latest lookup or preemption."""
    what = "looked_up" if about == "hit" else about
    event = moment.columns.stories.latest(request, moment.at, what)
    if event is None:
        did = "was not looked up yet" if about == "hit" else "was never preempted"
        raise NoAnswerError(f"{isolated(shown(request))} {did} at this moment.", "id", "a request that was")
    return event


def why_context(view: View, there: Moment, about: str, request: str, *, whole_page: bool) -> WhyContext:
    """The card for the reader's moment `view`; `there` is the moment of `told_at`."""
    head, (answer, facts) = _answer(view, there, about, request)
    return WhyContext(view, about, head, answer, tuple(facts), whole_page)


def _answer(view: View, there: Moment, about: str, request: str) -> tuple[str, Answer]:
    if about == "usage":
        share = f"{round(there.pool.get_usage(), 4):g}"
        return f"Why is usage {share} while {there.counts.cached} are cached?", why_usage(there)
    if about == "waiting":
        return f"Why is {isolated(request)} waiting?", why_waiting(there, there.scheduler.requests[request])
    event = _event(there, about, request)
    if about == "preempted":
        return f"Why was {isolated(request)} preempted?", why_preempted(there, event, request, view.at)
    assert there.applied is not None
    lookup = [one for one in there.applied.trace.lookups if one.request == request][-1]
    more = "" if lookup.num_tokens == (lookup.limit or 0) else " and not more"
    return f"Why did {isolated(request)} hit {lookup.num_tokens} tokens{more}?", why_hit(there, lookup)
