"""The calls of `allocate_slots` in this step: each with a verdict, its stages, and what a refusal leads to."""

from __future__ import annotations

from typing import Final

from app.contexts import Call, Calls, CallTab, Next, Piece, Words
from app.rendering.glossary import meanings
from app.rendering.layout import layout_parts, layout_room, layout_rows, layout_ticks
from app.rendering.moment import Moment
from app.rendering.stage_counts import waits_for_state
from app.rendering.stages import stages
from app.rendering.words import count, isolated, listed, sentence
from engine.actions import Step
from engine.call_trace import CallTrace
from engine.step_trace import StepTrace

TOLD: Final = 3
"""Calls of a step that are told whole; of more only the chosen one."""
MOST_TABS: Final = 200


def calls(moment: Moment, chosen: int | None = None) -> Calls:
    """Every call as a tab; the chosen one told whole, and the others where they are few."""
    trace = moment.applied.trace if moment.applied else None
    if trace is None or not trace.calls:
        return _no_calls(moment)
    if chosen is None or chosen >= len(trace.calls):
        chosen = _chosen(trace)
    told = set(range(len(trace.calls))) if len(trace.calls) <= TOLD else {chosen}
    return Calls(
        tuple(_tab(moment, index, call, told) for index, call in enumerate(trace.calls[:MOST_TABS])),
        tuple(call_context(moment, trace, index) for index in sorted(told)),
        chosen,
        "",
        None,
    )


def _no_calls(moment: Moment) -> Calls:
    last = moment.columns.last_call[moment.at]
    is_step = moment.applied is not None and isinstance(moment.applied.outcome.action, Step)
    note = "This step made no call to allocate_slots." if is_step else "Only a step calls allocate_slots."
    return Calls((), (), -1, note, None if last < 0 else moment.query(last))


def _chosen(trace: StepTrace) -> int:
    """The one most worth a look: the last refused one, else an admission, else the one that takes most."""
    refused = [index for index, call in enumerate(trace.calls) if not call.granted]
    if refused:
        return refused[-1]
    return max(
        range(len(trace.calls)), key=lambda index: (trace.calls[index].comp == 0, _taken(trace.calls[index]), index)
    )


def _taken(call: CallTrace) -> int:
    """Blocks that left the free queue."""
    return len(call.popped) + sum(touched.place is not None for touched in call.touched)


def _tab(moment: Moment, index: int, call: CallTrace, told: set[int]) -> CallTab:
    takes = str(_taken(call)) if call.granted else "None"
    name, words = call.request, f"{index + 1}. {isolated(call.request)} {takes}"
    return CallTab(index, name, moment.number(name), takes, words, call.granted, index in told)


def call_context(moment: Moment, trace: StepTrace, index: int) -> Call:
    """One call, told whole."""
    call = trace.calls[index]
    parts = layout_parts(moment, call)
    rows = layout_rows(moment, call, parts)
    return Call(
        index,
        call.request,
        moment.number(call.request),
        call.granted,
        verdict(moment, call),
        _granted_detail(call) if call.granted else _refused_detail(moment, call),
        parts,
        layout_ticks(parts, layout_room(parts, rows)),
        meanings(*(part.kind for part in parts)),
        rows,
        stages(moment, call),
        None if call.granted else _next(moment, trace, index),
    )


def verdict(moment: Moment, call: CallTrace) -> Words:
    """What came of a call, in one plain sentence or two."""
    return _granted(moment, call) if call.granted else _refused(moment, call)


def _granted(moment: Moment, call: CallTrace) -> Words:
    """As "Granted. R reuses 8 cached blocks and takes 7 new ones."."""
    hits, new = len(call.touched), len(call.popped)
    if hits and new:
        text = f"Granted. {{}} reuses {count(hits, 'cached block')} and takes {count(new, 'new one')}."
    elif hits:
        text = f"Granted. {{}} reuses {count(hits, 'cached block')} and needs no new one."
    elif new:
        text = f"Granted. {{}} takes {count(new, 'new block')}."
    else:
        text = "Granted. {} needs no new block."
    if call.ext_comp:
        text = f"{text[:-1]}; {count(call.ext_comp, 'token')} come{'s' * (call.ext_comp == 1)} from the connector."
    return sentence(moment, text, call.request)


def _granted_detail(call: CallTrace) -> str:
    """Where the numbers come from."""
    test, taken = call.check, _taken(call)
    assert test is not None
    gone = call.released_count
    first = f"First it gives back {count(gone, 'block')} that it needs no more. " if gone else ""
    if not taken:
        return f"{first}Its {count(call.new, 'token')} fit into blocks that it holds already."
    idle = taken - len(call.popped)
    parts = f": {count(idle, 'idle hit')} and {len(call.popped)} from its head" if idle else " from its head"
    words = f"{first}The free queue gives up {taken}{parts}."
    if test.needed != taken:
        return f"{words} {_stay_free(str(call.free_after), call.free_after)}."
    if test.headroom:
        return (
            f"{words} With the watermark of {test.headroom} that is {taken + test.headroom} of {test.free}; "
            f"{test.spare} to spare."
        )
    return f"{words} {_stay_free(f'{test.spare} of {test.free}', test.spare)}."


def _stay_free(words: str, blocks: int) -> str:
    return f"{words} {'stays' if blocks == 1 else 'stay'} free"


def _refused(moment: Moment, call: CallTrace) -> Words:
    """As "Refused. second needs 38 blocks, and 21 more would have to be free."."""
    if waits_for_state(moment, call):
        return sentence(moment, "Refused for now. {} hits a state that is only being made in this step.", call.request)
    test = call.gate if call.refused_by == "gate" else call.check
    assert test is not None
    more = f"{call.shortfall} more would have to be free"
    if call.can_never_fit(moment.pool.num_blocks - 1):
        more = f"can never fit in a pool of {moment.pool.num_blocks - 1}"
    return sentence(moment, f"Refused. {{}} needs {count(test.needed, 'block')}, and {more}.", call.request)


def _refused_detail(moment: Moment, call: CallTrace) -> str:
    """As "The whole sequence of 600 tokens takes 38 blocks and 5 must stay behind: 43. Only 22 are free."."""
    if waits_for_state(moment, call):
        return "A count of more blocks than the pool has makes it wait; the next step tries it again."
    gate = call.refused_by == "gate"
    test = call.gate if gate else call.check
    assert test is not None
    what = f"The whole sequence of {test.tokens} tokens takes" if gate else f"Slots up to token {test.tokens} take"
    if held := sum(terms.held for terms in test.terms) * (not gate):
        what = f"It holds {count(held, 'block')}; slots up to token {test.tokens} take"
    behind = f" and {test.headroom} must stay behind: {test.needed + test.headroom}" if test.headroom else ""
    reserved = f", {test.reserved} of them reserved" if test.reserved else ""
    only = "None is free." if not test.free else f"Only {test.free} {'is' if test.free == 1 else 'are'} free{reserved}."
    more = f"{test.needed} more" if held else count(test.needed, "block")
    return f"{what} {more}{behind}. {only}"


def _next(moment: Moment, trace: StepTrace, index: int) -> Next:
    """What a refusal leads to: somebody is preempted, or admission stops."""
    call = trace.calls[index]
    if call.comp:
        # Each refusal of a running request has its own preemption, in the same order.
        place = sum(not other.granted and other.comp > 0 for other in trace.calls[:index])
        victims = [preemption for preemption in trace.preemptions if preemption.by is not None]
        if place < len(victims):
            return _preempted(moment, call, victims[place].victim)
    return _admission_stops(moment, call)


def _preempted(moment: Moment, call: CallTrace, victim: str) -> Next:
    if victim == call.request:
        words = sentence(
            moment, "{} is the victim itself: it gives back its blocks and waits. The running pass ends.", victim
        )
        return Next("Running pass: it preempts itself", (words,))
    lines = (
        sentence(moment, "{} gives back its blocks and goes back to the waiting queue.", victim),
        sentence(moment, "Then {} is tried again.", call.request),
    )
    return Next(f"Running pass: {victim} is preempted", lines)


def _admission_stops(moment: Moment, call: CallTrace) -> Next:
    lines = [sentence(moment, "{} keeps its place at the head of the waiting queue.", call.request)]
    lines.append((Piece("The call changed nothing." if not call.released_count else "Only the release stays."),))
    output = moment.applied.outcome.output if moment.applied else None
    scheduled = output.num_scheduled_tokens if output else {}
    if scheduled:
        names = listed(moment, ((name, f"({count(tokens, 'token')})") for name, tokens in scheduled.items()))
        lines.append((Piece("The step still runs "), *names, Piece(".")))
    else:
        lines.append((Piece("Nothing else runs in this step."),))
    return Next("Waiting pass: admission stops", tuple(lines))
