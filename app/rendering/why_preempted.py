"""Why a request was preempted: who needed what, why this one, and what became of its blocks and tokens."""

from __future__ import annotations

from collections.abc import Iterator

from app.contexts import Piece, WhyFact
from app.rendering.moment import Moment
from app.rendering.why import Answer, event_fact
from app.rendering.words import count, free_then, sentence
from app.services.stories import RequestEvent
from engine.call_trace import CallTrace, GivenBack


def why_preempted(moment: Moment, event: RequestEvent, victim: str, until: int) -> Answer:
    """Told at the moment behind the step that preempted it. `until`: the reader's own moment."""
    facts = [*_cause(moment, event, victim), *_lost(moment, event, victim), *_since(moment, event, victim, until)]
    if event.other is None:
        return sentence(moment, "A reset preempted every running request, {} too.", victim), facts
    if event.other == victim:
        return sentence(moment, "{} needed room, and was itself the next in line to lose its blocks.", victim), facts
    return sentence(
        moment, "{} needed room to go on, and {} was the next in line to lose its blocks.", event.other, victim
    ), facts


def _cause(moment: Moment, event: RequestEvent, victim: str) -> Iterator[WhyFact]:
    """The refused call, and the rule that chose."""
    if event.other is None:
        words = "reset_prefix_cache with reset_running_requests takes the blocks of all running requests first."
        yield event_fact(moment, event.action, (Piece(words),))
        return
    call = _call_of(moment, victim)
    if call is not None and call.check is not None:
        test = call.check
        text = (
            f"{{}} asked for {count(test.needed, 'block')} to compute {count(call.new, 'token')}; "
            f"{free_then(test.free)}, {call.shortfall} too few."
        )
        yield event_fact(moment, event.action, sentence(moment, text, call.request))
    rule = "Under fcfs the request that was admitted last is preempted first."
    if moment.cursor.simulation.config.policy == "priority":
        rule = "Under the priority policy the largest (priority, arrival time) is preempted first."
    yield WhyFact("the rule", (Piece(rule),))


def _call_of(moment: Moment, victim: str) -> CallTrace | None:
    """The refused call that this preemption answers: refusals of running requests and preemptions go in pairs."""
    if moment.applied is None:
        return None
    trace = moment.applied.trace
    refused = [call for call in trace.calls if not call.granted and call.comp > 0]
    pairs = zip([one for one in trace.preemptions if one.by is not None], refused, strict=False)
    return next((call for preemption, call in pairs if preemption.victim == victim), None)


def _lost(moment: Moment, event: RequestEvent, victim: str) -> Iterator[WhyFact]:
    """What became of its blocks and of its progress."""
    given = _given_back(moment, victim)
    if given:
        front, back = (sum(len(getattr(one, end)) for one in given) for end in ("front", "back"))
        held = sum(len(one.held) for one in given)
        parts = [f"{front} unhashed to the front"] * bool(front) + [f"{back} hashed to the back"] * bool(back)
        parts += [f"{held} still held by others"] * bool(held)
        words = f"It gave back {count(front + back + held, 'block')}: {', '.join(parts)}."
        yield WhyFact("its blocks", (Piece(words),))
    verb = "was" if event.value == 1 else "were"
    taken = f" {count(event.value, 'token')} of that very step {verb} taken back." if event.value else ""
    yield WhyFact(
        "its progress", (Piece(f"It starts again from 0 computed tokens, with all its tokens known.{taken}"),)
    )


def _given_back(moment: Moment, victim: str) -> list[GivenBack]:
    """The `free` entries that follow its preemption."""
    given: list[GivenBack] = []
    mine = False
    for entry in moment.applied.outcome.log if moment.applied else ():
        if entry[0] == "free" and mine:
            given.append(GivenBack.of(entry))
        else:
            mine = entry[0] == "preempt" and entry[1] == victim
    return given


def _since(moment: Moment, event: RequestEvent, victim: str, until: int) -> Iterator[WhyFact]:
    """Whether it has come back."""
    resumed = moment.columns.stories.latest(victim, until, "resumed")
    if resumed is not None and resumed.action > event.action:
        words = f"It was resumed with {count(resumed.value, 'token')} of its own still cached."
        yield event_fact(moment, resumed.action, (Piece(words),))
    else:
        place = "at the front of the line" if moment.cursor.simulation.config.policy == "fcfs" else "by its priority"
        yield WhyFact("now", (Piece(f"It waits {place}."),))
