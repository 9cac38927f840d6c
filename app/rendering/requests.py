"""The waiting queue and the running list in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from app.contexts import BarPart, FinishedRow, RequestRow, Requests
from app.rendering.moment import Moment
from app.rendering.why import request_whys
from app.rendering.words import times
from engine.actions import AddRequest
from engine.kv_cache_block import NULL_BLOCK
from engine.request import Request

MOST_ROWS: Final = 100
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
    tag: dict[str, str] = field(default_factory=dict)


def requests(moment: Moment) -> Requests:
    """The panel: at most 100 rows of each list."""
    doings = _doings(moment)
    scheduler = moment.scheduler
    waiting = _rows(moment, scheduler.waiting, doings)
    running = _rows(moment, scheduler.running, doings)
    finished = _finished(moment)
    return Requests(
        waiting,
        len(scheduler.waiting),
        "" if waiting else _nobody_waits(moment),
        running,
        len(scheduler.running),
        "" if running else "Nothing runs. Add a request." if not waiting else "Nothing runs. Press step.",
        finished,
    )


def _nobody_waits(moment: Moment) -> str:
    names = [admission.request for admission in moment.applied.trace.admissions] if moment.applied else []
    if not names:
        return "Empty."
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return f"Empty: {listed} left in this step."


def _doings(moment: Moment) -> _Doings:
    doings = _Doings()
    applied = moment.applied
    if applied is None:
        return doings
    trace, output = applied.trace, applied.outcome.output
    doings.now = dict(output.num_scheduled_tokens) if output else {}
    doings.tag |= {call.request: "refused" for call in trace.calls if not call.granted}
    for admission in trace.admissions:
        doings.tag[admission.request] = "resumed" if admission.resumed else "admitted"
        doings.hit[admission.request] = admission.computed
    doings.tag |= {preemption.victim: "preempted" for preemption in trace.preemptions}
    if isinstance(applied.outcome.action, AddRequest):
        doings.tag[applied.outcome.action.id] = "added"
    for name in doings.now:
        if doings.tag.get(name) == "refused":
            del doings.tag[name]
    return doings


def _rows(moment: Moment, living: Iterable[Request], doings: _Doings) -> tuple[RequestRow, ...]:
    return tuple(_row(moment, request, doings) for request in islice(living, MOST_ROWS))


def _row(moment: Moment, request: Request, doings: _Doings) -> RequestRow:
    name = request.request_id
    now, hit = doings.now.get(name, 0), doings.hit.get(name, 0)
    known, computed = request.num_tokens, request.num_computed_tokens
    now = min(now, computed)
    before = max(computed - now - hit, 0)
    later = max(known - computed, 0)
    parts = [BarPart("comp", before), BarPart("new_comp", hit), BarPart("new", now), BarPart("later", later)]
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
        caption=_caption(request, before, hit, now),
        facts=tuple(_facts(request)),
        whys=request_whys(moment, request),
    )


def _caption(request: Request, before: int, hit: int, now: int) -> str:
    """As "945 + 1 now", "128 hit + 100 now, 72 to go", "300 tokens"."""
    done = [f"{before}"] * bool(before) + [f"{hit} hit"] * bool(hit) + [f"{now} now"] * bool(now)
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
        yield f"salt {request.cache_salt}"
    if request.lora:
        yield f"LoRA {request.lora}"
    if request.skip_reading_prefix_cache:
        yield "skips the cache"
    if request.spec_token_ids:
        yield f"{len(request.spec_token_ids)} drafts"
    if request.num_preemptions:
        yield f"preempted {times(request.num_preemptions)}"


def _finished(moment: Moment) -> tuple[FinishedRow, ...]:
    finishes = moment.applied.trace.finishes if moment.applied else ()
    return tuple(
        FinishedRow(finish.request, moment.number(finish.request), FINISHED[finish.status])
        for finish in finishes[:MOST_ROWS]
    )
