"""A probe: the form with what the scheduler would pass, and the call that a copy answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final

from app.contexts import Call, Field, Next, Piece, ProbeContext, Words
from app.rendering.calls import call_context
from app.rendering.moment import Moment
from app.rendering.transport import view
from app.rendering.words import count, sentence
from engine.errors import RequestError
from engine.probe import Arguments, Passed, Probed, probed, usual
from engine.request import Request, RequestStatus
from engine.snapshot import digest
from engine.step_trace import read_step

MOST_IDS: Final = 200
FIELDS: Final = (
    ("new", "number", "tokens to make room for"),
    ("new_comp", "number", "tokens of a prefix cache hit"),
    ("ext_comp", "number", "tokens that a connector supplies"),
    ("lookahead", "number", "slots for drafts behind them"),
    ("reserved_blocks", "number", "free blocks that others need"),
    ("full_sequence_must_fit", "choice", "the gate"),
    ("has_scheduled_reqs", "choice", "whether others run: then the watermark holds"),
)
OBSTACLES: Final = {
    "no_tokens": "it has no token left to compute",
    "padding": "its padded first token doesn't fit into the budget",
    "whole_prefill": "chunked prefill is off and the whole prompt doesn't fit into the budget",
    "split": "the budget ends before the next boundary of its state blocks",
}


@dataclass(slots=True)
class Asked:
    """What the reader typed, and what is wrong with it; `request` None: the form alone."""

    request: str | None
    typed: Mapping[str, str]
    arguments: Arguments
    errors: dict[str, str] = field(default_factory=dict)


def candidates(moment: Moment) -> list[Request]:
    """Living requests, the waiting ones first."""
    scheduler = moment.scheduler
    return list(islice(chain(scheduler.loads.holding, scheduler.waiting, scheduler.running), MOST_IDS))


def probe_context(moment: Moment, asked: Asked, *, whole_page: bool) -> ProbeContext:
    """The form, and the answer if something was asked that can be answered; what can't is told beside its field."""
    ids = [request.request_id for request in candidates(moment)]
    chosen = asked.request if asked.request is not None else next(iter(ids), "")
    passed = _passed(moment, chosen, asked)
    answer: Probed | None = None
    proof = ""
    if asked.request is not None and not asked.errors:
        before = digest(moment.scheduler)
        try:
            answer = probed(moment.cursor.simulation, chosen, asked.arguments)
        except RequestError as error:
            _blame(asked, error)
        proof = _proof(before, digest(moment.scheduler)) if answer else ""
    if chosen in moment.scheduler.requests and chosen not in ids:
        ids.append(chosen)
    return ProbeContext(
        view=view(moment),
        requests=tuple(ids),
        request=chosen,
        fields=tuple(_field(name, kind, hint, asked, passed) for name, kind, hint in FIELDS),
        call=_answer(moment, answer) if answer else None,
        note=_note(moment, chosen, answer.passed) if answer else (),
        proof=proof,
        error=asked.errors.get("request", ""),
        whole_page=whole_page,
    )


def _passed(moment: Moment, chosen: str, asked: Asked) -> Passed | None:
    """What the scheduler would pass; None if there is no such request."""
    if not chosen and asked.request is None:
        return None
    try:
        return usual(moment.cursor.simulation, chosen)
    except RequestError as error:
        _blame(asked, error)
        return None


def _blame(asked: Asked, error: RequestError) -> None:
    expected = f" Expected: {error.expected}." if error.expected else ""
    asked.errors[error.where] = f"{error.message[0].upper()}{error.message[1:]}.{expected}"


def _proof(before: str, after: str) -> str:
    if before != after:
        return f"The state has changed: digest {before} before, {after} after. This is a mistake of Poolscope."
    return f"Probed on a copy. The state is unchanged: digest {before} before and after."


def _field(name: str, kind: str, hint: str, asked: Asked, passed: Passed | None) -> Field:
    if passed is not None:
        value = getattr(passed, name)
        hint = f"would pass {('yes' if value else 'no') if kind == 'choice' else value}"
    return Field(name, name, asked.typed.get(name, ""), hint, kind, asked.errors.get(name, ""))


def _answer(moment: Moment, answer: Probed) -> Call:
    """The traced call, seen in the copy as the call left it."""
    there = replace(moment, cursor=moment.cursor.beside(answer.simulation, answer.log))
    trace = read_step(answer.log)
    call = call_context(there, trace, len(trace.calls) - 1)
    return replace(call, index=-1, next=None if call.granted else _next(moment, answer.call.request))


def _next(moment: Moment, request_id: str) -> Next:
    """What the scheduler would do after such a refusal."""
    if moment.scheduler.requests[request_id].status is not RequestStatus.RUNNING:
        words = sentence(moment, "In a step {} would keep its place, and admission would stop here.", request_id)
        return Next("On a copy: nothing happens", (words,))
    victim = moment.scheduler.choose_victim().request_id
    whom = "itself" if victim == request_id else "{}"
    names = (request_id,) if victim == request_id else (request_id, victim)
    words = sentence(moment, f"In a step {{}} would now preempt {whom}.", *names)
    return Next("On a copy: nothing happens", (words,))


def _note(moment: Moment, request_id: str, passed: Passed) -> Words:
    """What a reader should know before taking it for the next step."""
    request = moment.scheduler.requests[request_id]
    if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS and request_id not in moment.scheduler.loads.arrived:
        return (Piece("Its load is still under way; this is asked as if it had arrived."),)
    if passed.obstacle is not None:
        return (Piece(f"The scheduler would not come to this call: {OBSTACLES[passed.obstacle]}."),)
    running = request.status is RequestStatus.RUNNING
    others = moment.scheduler.running if running else [*moment.scheduler.loads.holding, *moment.scheduler.waiting]
    before = others.index(request)
    first = before if running else before + len(moment.scheduler.running)
    if not first:
        return ()
    return (
        Piece(f"{count(first, 'other request')} would come before it in a step; this asks as if it were its turn."),
    )
