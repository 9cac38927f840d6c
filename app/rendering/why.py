"""Why? cards: which questions can be asked, which moment answers them, and the answers on waiting and on usage 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from app.contexts import Piece, WhyFact, WhyLink, Words
from app.rendering.moment import Moment
from app.rendering.words import all_usable, count, free_then, listed, runs, sentence
from app.services.stories import RequestEvent, WaitingHalt
from engine.call_trace import CallTrace
from engine.kv_cache_block import NULL_BLOCK
from engine.request import Request, RequestStatus

Answer = tuple[Words, list[WhyFact]]
MOST_HOLDERS: Final = 3


def why_link(moment: Moment, about: str, label: str, request: str | None = None) -> WhyLink:
    """A question about this moment."""
    who = "" if request is None else f"&id={quote(request, safe='', errors='surrogatepass')}"
    return WhyLink(label, f"{moment.query(moment.at)}&about={about}{who}")


def request_whys(moment: Moment, request: Request) -> tuple[WhyLink, ...]:
    """What can be asked about a living request."""
    name, stories, at = request.request_id, moment.columns.stories, moment.at
    whys = []
    if request.status is not RequestStatus.RUNNING:
        whys.append(why_link(moment, "waiting", "Why is it waiting?", name))
    looked_up = stories.latest(name, at, "looked_up")
    if looked_up is not None:
        whys.append(why_link(moment, "hit", f"Why {looked_up.value} hit?", name))
    if request.num_preemptions:
        whys.append(why_link(moment, "preempted", "Why preempted?", name))
    return tuple(whys)


def usage_why(moment: Moment) -> WhyLink | None:
    """Offered when nothing is held and something is cached."""
    cached = moment.counts.cached
    if moment.counts.live or not cached:
        return None
    verb = "is" if cached == 1 else "are"
    return why_link(moment, "usage", f"Why 0 while {cached} {verb} cached?")


def event_fact(moment: Moment, action: int, words: Words, block: int | None = None) -> WhyFact:
    """A fact that an action made, with the way to it."""
    return WhyFact(moment.label(action), words, moment.query(action + 1), block)


# ---- why is it waiting


def why_waiting(moment: Moment, request: Request) -> Answer:
    """The obstacle at which the last step stopped, and where the request stands."""
    name, at = request.request_id, moment.at
    queue = [*moment.scheduler.loads.holding, *moment.scheduler.waiting]
    place = queue.index(request)
    step = moment.columns.last_step(at)
    since = moment.columns.stories.latest(name, at, "added", "preempted")
    facts = [_place_fact(moment, name, place, [one.request_id for one in queue[:place]])]
    if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS:
        return sentence(moment, "{} has its blocks and waits for its load from outside.", name), facts
    if since is None or step is None or since.action >= step:
        return sentence(moment, "{} has just come: no step has run since.", name), facts
    halt = moment.columns.stories.halt(step)
    if since.what == "preempted" and since.action == step - 1:
        facts.insert(0, _preempted_fact(moment, since))
    if halt is None:
        return sentence(moment, "{} waits for the next step.", name), facts
    facts.insert(0, event_fact(moment, step - 1, _halt_words(moment, halt)))
    facts += _call_facts(moment, step, halt)
    return _waiting_answer(moment, name, since, halt, step), facts


def _place_fact(moment: Moment, name: str, place: int, before: list[str]) -> WhyFact:
    if not place:
        return WhyFact("place", sentence(moment, "{} is at the head of the line.", name))
    names = listed(moment, ((other, "") for other in before))
    return WhyFact("place", (Piece(f"{count(place, 'request')} before it: "), *names, Piece(".")))


def _preempted_fact(moment: Moment, event: RequestEvent) -> WhyFact:
    if event.other is None:
        return event_fact(moment, event.action, (Piece("It was preempted by a reset."),))
    return event_fact(moment, event.action, sentence(moment, "It was preempted to make room for {}.", event.other))


def _waiting_answer(moment: Moment, name: str, since: RequestEvent, halt: WaitingHalt, step: int) -> Words:
    if halt.reason == "preempted":
        if since.what == "preempted" and since.action == step - 1:
            return sentence(moment, "{} was preempted in the last step, and such a step admits nobody.", name)
        return sentence(moment, "The last step preempted somebody, and such a step admits nobody: {} waits on.", name)
    if halt.request is not None and halt.request != name:
        text = "{} is not at its turn: admission stopped before it, at {}, and nobody is passed over."
        return sentence(moment, text, name, halt.request)
    config = moment.cursor.simulation.config
    if halt.reason == "no_blocks":
        return sentence(moment, f"{{}} was refused its blocks{_missing(moment, name, step)}.", name)
    reason = {
        "max_num_seqs": f"{_running(config.max_num_seqs)} already, which is max_num_seqs",
        "budget": f"the step's {config.max_num_batched_tokens} tokens were spent on others",
        "padding": "its padded first token no longer fitted into the step's budget",
        "whole_prefill": "chunked prefill is off and its whole prompt didn't fit into what was left of the budget",
        "split": "what was left of the budget ended before the next boundary of its state blocks",
    }[halt.reason]
    return sentence(moment, f"{{}} was not admitted: {reason}.", name)


def _running(number: int) -> str:
    return "1 request runs" if number == 1 else f"{number} requests run"


def _missing(moment: Moment, name: str, step: int) -> str:
    call = _refused_call(moment, name, step)
    if call is not None and call.can_never_fit(moment.pool.num_blocks - 1):
        return f", and it can never fit: {all_usable(moment.pool.num_blocks - 1)}"
    refused = moment.columns.stories.latest(name, step, "refused")
    return f": {count(refused.value if refused else 0, 'more free block')} would have been enough"


def _refused_call(moment: Moment, name: str, step: int) -> CallTrace | None:
    """The refused call of the last step, if this moment stands right behind it."""
    if step != moment.at or moment.applied is None:
        return None
    calls = [call for call in moment.applied.trace.calls if call.request == name and not call.granted]
    return calls[-1] if calls else None


def _halt_words(moment: Moment, halt: WaitingHalt) -> Words:
    """Where admission stopped, and by which rule."""
    rule = {
        "preempted": "A step that preempts somebody admits nobody.",
        "max_num_seqs": f"At most {moment.cursor.simulation.config.max_num_seqs} requests run at once, max_num_seqs.",
        "budget": f"A step computes at most {moment.cursor.simulation.config.max_num_batched_tokens} tokens.",
        "no_blocks": "Admission stops at the first request that doesn't get its blocks.",
    }.get(halt.reason, "Admission stops at the first request whose tokens don't fit into the budget.")
    return (Piece(rule),)


def _call_facts(moment: Moment, step: int, halt: WaitingHalt) -> Iterator[WhyFact]:
    """The numbers of the refusal, and who holds the blocks."""
    if halt.reason != "no_blocks" or halt.request is None:
        return
    call = _refused_call(moment, halt.request, step)
    if call is not None:
        test = call.gate if call.refused_by == "gate" else call.check
        assert test is not None
        what = "for its whole sequence" if call.refused_by == "gate" else "for this step"
        behind = f", {test.headroom} must stay behind" if test.headroom else ""
        text = f"{{}} asked for {count(test.needed, 'block')} {what}{behind}; {free_then(test.free)}."
        yield WhyFact("asked for", sentence(moment, text, call.request))
    held = {
        name: sum(len(table) - table.count(NULL_BLOCK) for table in moment.manager.get_blocks(name))
        for name in moment.scheduler.requests
    }
    most = sorted((name for name in held if held[name]), key=lambda name: -held[name])
    if most:
        names = listed(moment, ((name, str(held[name])) for name in most[:MOST_HOLDERS]))
        more = f" and {len(most) - MOST_HOLDERS} more" if len(most) > MOST_HOLDERS else ""
        twice = sum(held.values()) - moment.counts.live
        shared = (
            f"; {count(twice, 'of them is', 'of them are')} counted more than once, being shared" if twice > 0 else ""
        )
        back = "Blocks come back when the last request that holds them ends or is preempted."
        yield WhyFact("held by", (*names, Piece(f"{more}{shared}. {back}")))


# ---- why is usage 0


def why_usage(moment: Moment) -> Answer:
    """Usage counts what is held; cached blocks that nobody holds are free."""
    counts, usable = moment.counts, moment.pool.num_blocks - 1
    share = f"{round(moment.pool.get_usage(), 4):g}"
    cached = counts.cached
    if not counts.live:
        head = f"Usage counts blocks that a request holds, and nobody holds one: the {count(cached, 'cached block')} "
        answer = f"{head}{'is' if cached == 1 else 'are'} free."
    else:
        answer = f"Usage counts blocks that a request holds: {counts.live} of {usable}; cached ones are free."
    facts = [
        WhyFact("counted", (Piece(f"{counts.live} held of {count(usable, 'usable block')}: {share}."),)),
        WhyFact("not counted", (Piece(f"{count(cached, 'free block')} that still carry a hash."),)),
    ]
    fell = _fell(moment)
    if fell is not None:
        facts.append(fell)
    facts += _still_hit(moment)
    return (Piece(answer),), facts


def _fell(moment: Moment) -> WhyFact | None:
    """The last action that gave blocks back, and whose they were."""
    counts, notable = moment.columns.counts, moment.columns.notable
    for action in range(moment.at - 1, -1, -1):
        gone = counts[action].live - counts[action + 1].live
        left = [thing.request for thing in notable.get(action, ()) if thing.what in ("finished", "preempted")]
        if gone > 0 or left:
            who = tuple(listed(moment, ((name, "") for name in left if name is not None)))
            fewer = f"{count(gone, 'block')} fewer {'is' if gone == 1 else 'are'} held"
            if gone <= 0:
                fewer = "what was taken in the same step came back"
            words = (*who, Piece(f" gave up {'its' if len(left) == 1 else 'their'} blocks: {fewer}."))
            return event_fact(moment, action, words if who else (Piece(f"{fewer}."),))
    return None


def _still_hit(moment: Moment) -> Iterator[WhyFact]:
    """Cached blocks can still be hit, until they are handed out."""
    if not moment.counts.cached:
        return
    hashes = moment.pool.block_hash
    first = next(block for block in moment.pool.free_queue if hashes[block] is not None)
    place = moment.pool.free_queue.place(first)
    before = (
        "It is handed out next"
        if not place
        else f"{count(place, 'block')} {'is' if place == 1 else 'are'} handed out before it"
    )
    words = f"A lookup can still hit them. Block {runs([first])} loses its hash first. {before}."
    yield WhyFact("still good for hits", (Piece(words),), None, first)
