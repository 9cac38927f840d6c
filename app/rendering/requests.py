"""The waiting queue and the running list in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from app.contexts import BarPart, FinishedRow, RequestRow, Requests
from app.rendering.moment import Moment
from app.rendering.why import request_whys
from app.rendering.words import isolated, times
from engine.actions import AddRequest
from engine.kv_cache_block import NULL_BLOCK
from engine.request import Request, RequestStatus

FIRST_ROWS: Final = 40
"""Of each list, unless all are asked for: on a page of many requests they would take most of a step."""
ALL_ROWS: Final = 2_000
FINISHED: Final = {
    "FINISHED_STOPPED": "a stop token",
    "FINISHED_LENGTH_CAPPED": "reached its length",
    "FINISHED_ABORTED": "aborted",
}


@dataclass(slots=True)
class _Doings:
    """What this action did to each request."""

    now: dict[str, int] = field(default_factory=dict)
    """Tokens scheduled."""
    hit: dict[str, int] = field(default_factory=dict)
    """Tokens reused at an admission."""
    external: dict[str, int] = field(default_factory=dict)
    """Tokens that a connector supplied."""
    start: dict[str, int] = field(default_factory=dict)
    """Tokens computed before what was scheduled."""
    tag: dict[str, str] = field(default_factory=dict)


def requests(moment: Moment, rows: int = FIRST_ROWS) -> Requests:
    """The panel: the first rows of each list. Those that load, or have loaded, come before the waiting queue."""
    doings = _doings(moment)
    scheduler = moment.scheduler
    holding = scheduler.loads.holding
    waiting = _rows(moment, islice(chain(holding, scheduler.waiting), rows), doings)
    running = _rows(moment, islice(scheduler.running, rows), doings)
    longest = max(len(holding) + len(scheduler.waiting), len(scheduler.running))
    here = moment.query(moment.at)
    return Requests(
        waiting,
        len(holding) + len(scheduler.waiting),
        "" if waiting else _nobody_waits(moment),
        running,
        len(scheduler.running),
        "" if running else _what_to_do(moment, bool(waiting)),
        _rows(moment, islice(_aborted_loads(moment), rows), doings),
        _finished(moment, rows),
        f"{here}&rows=all" if longest > rows and rows < ALL_ROWS else None,
        here if longest > FIRST_ROWS and rows == ALL_ROWS else None,
        FIRST_ROWS,
    )


def _what_to_do(moment: Moment, somebody_waits: bool) -> str:
    """On a page that can be acted on."""
    return "Press step." if somebody_waits or moment.at < len(moment.actions) else "Add a request."


def _aborted_loads(moment: Moment) -> Iterable[Request]:
    """Requests that are gone but for the blocks that a load still writes to (7.15)."""
    if moment.scheduler.loads.connector is None:
        return ()
    living = moment.scheduler.requests.values()
    return (request for request in living if request.status is RequestStatus.FINISHED_ABORTED)


def _nobody_waits(moment: Moment) -> str:
    names = [admission.request for admission in moment.applied.trace.admissions] if moment.applied else []
    if not names:
        return "Empty."
    listed = ", ".join(map(isolated, names[:4])) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"Empty: {listed} left in this step."


def _doings(moment: Moment) -> _Doings:
    doings = _Doings()
    applied = moment.applied
    if applied is None:
        return doings
    trace, output = applied.trace, applied.outcome.output
    doings.now = dict(output.num_scheduled_tokens) if output else {}
    doings.start = {call.request: call.comp + call.new_comp + call.ext_comp for call in trace.calls if call.granted}
    doings.tag |= {call.request: "refused" for call in trace.calls if not call.granted}
    supplied = {call.request: call.ext_comp for call in trace.calls if call.granted and call.ext_comp}
    loaded = {load.request for load in trace.loads if load.stage == "used"}
    doings.tag |= {load.request: "loading" for load in trace.loads if load.stage == "begun"}
    for admission in trace.admissions:
        name = admission.request
        doings.tag[name] = "resumed" if admission.resumed else "admitted"
        doings.external[name] = admission.computed if name in loaded else supplied.get(name, 0)
        doings.hit[name] = admission.computed - doings.external[name]
    doings.tag |= {preemption.victim: "preempted" for preemption in trace.preemptions}
    if isinstance(applied.outcome.action, AddRequest):
        doings.tag[applied.outcome.action.id] = "added"
    for name in doings.now:
        if doings.tag.get(name) == "refused":
            del doings.tag[name]
    return doings


def _rows(moment: Moment, living: Iterable[Request], doings: _Doings) -> tuple[RequestRow, ...]:
    return tuple(_row(moment, request, doings) for request in living)


def _row(moment: Moment, request: Request, doings: _Doings) -> RequestRow:
    name = request.request_id
    known, computed = request.num_tokens, request.num_computed_tokens
    load = _load(moment, request)
    now, hit, external = (tokens.get(name, 0) for tokens in (doings.now, doings.hit, doings.external))
    if load:
        hit, external = 0, computed
    # Of verified drafts those that were rejected are not computed any more: the call tells from where it went on.
    start = doings.start.get(name, max(computed - now, 0))
    before = max(start - hit - external, 0)
    parts = [BarPart("comp", before), BarPart("new_comp", hit), BarPart("ext_comp", external)]
    parts += [BarPart("new", now), BarPart("later", max(known - start - now, 0))]
    blocks = sum(len(table) - table.count(NULL_BLOCK) for table in moment.manager.get_blocks(name))
    return RequestRow(
        id=name,
        number=moment.number(name),
        status=request.status.value,
        tag=doings.tag.get(name, ""),
        tokens=known,
        prompt_tokens=request.num_prompt_tokens,
        output_tokens=request.num_output_tokens,
        computed=computed,
        now=now,
        blocks=blocks,
        preemptions=request.num_preemptions,
        bar=tuple(part for part in parts if part.tokens),
        caption=load or _caption(request, (before, hit, external, now)),
        facts=tuple(_facts(request)),
        whys=request_whys(moment, request),
        is_loading=bool(load),
    )


def _load(moment: Moment, request: Request) -> str:
    """As "loading 8 tokens, step 2 of 3"; "" for a request without a load."""
    connector, name = moment.cursor.simulation.connector, request.request_id
    gone = request.status is RequestStatus.FINISHED_ABORTED
    if connector is None or not (gone or request.status is RequestStatus.WAITING_FOR_REMOTE_KVS):
        return ""
    if name not in connector.loading:
        return f"{request.num_computed_tokens} tokens loaded: may go on in the next step"
    steps = max(connector.plans[name].steps, 1)
    progress = f"step {steps - connector.loading[name]} of {steps}"
    if gone:
        return f"its blocks stay until the load is through, {progress}"
    return f"loading {request.num_computed_tokens} tokens, {progress}"


def _caption(request: Request, parts: tuple[int, int, int, int]) -> str:
    """As "945 + 1 now", "128 hit + 100 now, 72 to go", "8 from the connector + 12 now", "300 tokens"."""
    if request.status is not RequestStatus.RUNNING and request.num_computed_tokens:
        return f"{request.num_computed_tokens} loaded, {request.num_tokens - request.num_computed_tokens} to go"
    names = ("", " hit", " from the connector", " now")
    done = [f"{tokens}{name}" for tokens, name in zip(parts, names, strict=True) if tokens]
    if not done:
        return f"{request.num_tokens} tokens"
    to_go = max(request.num_tokens - request.num_computed_tokens, 0)
    # A decoding request always has one sampled token that is not computed yet; that one is not worth a word.
    more = f", {to_go} to go" if request.is_prefill_chunk else ""
    return " + ".join(done) + more


def _facts(request: Request) -> Iterable[str]:
    if request.priority:
        yield f"priority {request.priority}"
    if request.cache_salt:
        yield f"salt {isolated(request.cache_salt)}"
    if request.lora:
        yield f"LoRA {isolated(request.lora)}"
    if request.skip_reading_prefix_cache:
        yield "skips the cache"
    if request.spec_token_ids:
        yield f"{len(request.spec_token_ids)} drafts"
    if request.num_preemptions:
        yield f"preempted {times(request.num_preemptions)}"


def _finished(moment: Moment, rows: int) -> tuple[FinishedRow, ...]:
    finishes = moment.applied.trace.finishes if moment.applied else ()
    return tuple(
        FinishedRow(finish.request, moment.number(finish.request), FINISHED[finish.status])
        for finish in finishes[:rows]
    )
