"""What an action did, in sentences: schedule, lookups, loads, blocks, preemptions, halts, drafts, finishes, events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import Final

from app.contexts import Log, Piece, Sentence, Words
from app.rendering.groups import group_name
from app.rendering.log_events import event_sentences, published
from app.rendering.log_lookup import lookup_words
from app.rendering.log_memory import copy_sentences, load_sentences, zero_sentences
from app.rendering.moment import Moment
from app.rendering.stage_counts import waits_for_state
from app.rendering.transport import doing
from app.rendering.words import all_usable, count, isolated, listed, runs, sentence
from app.services.cursor import Applied
from engine.actions import Abort, AddRequest, ResetPrefixCache
from engine.block_hash import BlockHash
from engine.call_trace import CallTrace
from engine.step_trace import Chunk, Halt, StepTrace
from engine.tokens import count_of

MOST: Final = 200
"""Sentences at most; of more the last one says how many there are."""

LEFT_BEHIND: Final = {
    "full_attention": "went back",
    "sliding_window": "fell out of the {name}",
    "chunked_local_attention": "fell out of the attention chunk",
    "mamba": "with older {name} states went back",
}
"""Kind -> what a release means."""
FINISHED: Final = {
    "FINISHED_STOPPED": "{} finished: it sampled a stop token.",
    "FINISHED_LENGTH_CAPPED": "{} finished: it reached max_tokens or max_model_len.",
    "FINISHED_ABORTED": "{} was aborted.",
}


def log(moment: Moment) -> Log:
    """The panel."""
    if moment.applied is None:
        return Log(doing(moment, 0), ())
    sentences = [_with_requests(one) for one in islice(_sentences(moment, moment.applied), MOST + 1)]
    if len(sentences) > MOST:
        more = sum(1 for _ in _sentences(moment, moment.applied)) - MOST
        sentences[MOST] = Sentence("action", (Piece(f"And {more} sentences more."),))
    events = moment.applied.outcome.events
    hashes = _hashes(moment.applied.trace) if events else ()
    causes = {block_hash: moment.number(name) for name, block_hash in hashes}
    return Log(doing(moment, moment.at), tuple(sentences), published(events, causes), len(events))


def _hashes(trace: StepTrace) -> Iterator[tuple[str, BlockHash]]:
    """The hashes that calls stored or removed."""
    for call in trace.calls:
        yield from ((call.request, one) for some in call.registered for one in some.hashes)
        yield from ((call.request, one.block_hash) for one in call.partial)
        yield from ((call.request, key[0]) for popped in call.popped for key in popped.lost)


def _with_requests(one: Sentence) -> Sentence:
    """The same with the numbers of the requests that it names, for filters."""
    numbers = tuple(dict.fromkeys(piece.number for piece in one.words if piece.number is not None))
    return Sentence(one.kind, one.words, numbers)


def _sentences(moment: Moment, applied: Applied) -> Iterator[Sentence]:
    yield from _action(moment, applied)
    trace = applied.trace
    admitted = {admission.request for admission in trace.admissions}
    for lookup in trace.lookups:
        yield from (Sentence("lookup", words) for words in lookup_words(moment, lookup))
    yield from load_sentences(moment, applied)
    for chunk in trace.chunks:
        if words := _chunk(moment, chunk, admitted):
            yield Sentence("chunk", words)
    for admission in trace.admissions:
        how = "is resumed" if admission.resumed else "is admitted"
        yield Sentence("admit", sentence(moment, f"{{}} {how}.", admission.request))
    for call in trace.calls:
        yield from (Sentence("blocks", words) for words in _fell_out(moment, call))
        if words := _blocks(moment, call):
            yield Sentence("blocks" if call.granted else "refusal", words)
    yield from copy_sentences(moment, applied)
    yield from zero_sentences(applied)
    for preemption in trace.preemptions:
        yield Sentence("preempt", _preemption(moment, preemption.victim, preemption.by, preemption.undone))
    yield from (Sentence("halt", _halt(moment, halt)) for halt in trace.halts)
    yield from _drafts(moment, applied)
    for finish in trace.finishes:
        yield Sentence("finish", sentence(moment, FINISHED[finish.status], finish.request))
    yield from event_sentences(moment.cursor.simulation.config, applied.outcome.events)


def _action(moment: Moment, applied: Applied) -> Iterator[Sentence]:
    """What was asked for, and a step's schedule."""
    outcome = applied.outcome
    match outcome.action:
        case AddRequest(id=name, max_tokens=max_tokens):
            tokens = count_of(moment.cursor.simulation.scripts[name].prompt)
            text = f"{{}} arrives with {count(tokens, 'token')} and may say {max_tokens}. It waits."
            yield Sentence("action", sentence(moment, text, name))
        case Abort(id=name):
            if not applied.trace.finishes:
                yield Sentence("action", (Piece(f"No living request is called {isolated(name)}: nothing happens."),))
        case ResetPrefixCache():
            done = (
                "Every hash is forgotten."
                if outcome.reset
                else "The reset is refused: blocks are held. Nothing changes."
            )
            yield Sentence("action", (Piece(done),))
    if outcome.output is None:
        return
    scheduled = outcome.output.num_scheduled_tokens
    total, budget = sum(scheduled.values()), applied.trace.budget
    if scheduled:
        names = listed(moment, ((name, str(tokens)) for name, tokens in scheduled.items()))
        yield Sentence("schedule", (Piece(f"Scheduled {count(total, 'token')} of {budget}: "), *names, Piece(".")))
    else:
        yield Sentence("schedule", (Piece("Nothing is scheduled in this step."),))


def _chunk(moment: Moment, chunk: Chunk, admitted: set[str]) -> Words:
    """Why it computes less than it could; nothing to say when nothing cut it."""
    name, left = chunk.request, chunk.wanted - chunk.tokens
    if chunk.padding:
        return sentence(moment, f"{{}} is padded with {count(chunk.padding, 'placeholder draft')}.", name)
    if chunk.cut_by is None or (chunk.in_pass == "waiting" and name not in admitted):
        return ()
    reason = {
        "threshold": f"stops at {chunk.tokens}, the long-prefill threshold",
        "budget": f"gets {chunk.tokens}, all that is left of the budget",
        "room": f"gets {max(chunk.tokens, 0)}: max_model_len leaves no room for more",
        "split": f"gets {chunk.tokens}, up to a boundary of its state blocks",
    }[chunk.cut_by]
    return sentence(moment, f"{{}} {reason}; {left} left.", name)


def _blocks(moment: Moment, call: CallTrace) -> Words:
    """As "R took 7 blocks, 67–73. Nothing was evicted."; a call that took none is told by the schedule."""
    if waits_for_state(moment, call):
        return sentence(moment, "{} was refused: the state that it hits is only being made in this step.", call.request)
    if not call.granted:
        by = "the gate" if call.refused_by == "gate" else "the check"
        usable = moment.pool.num_blocks - 1
        if call.can_never_fit(usable):
            never = f"{{}} was refused by {by}, and can never fit: {all_usable(usable)}."
            return sentence(moment, never, call.request)
        return sentence(moment, f"{{}} was refused by {by}: {call.shortfall} more would have to be free.", call.request)
    if not call.popped:
        return ()
    evicted = sum(len(popped.lost) for popped in call.popped)
    lost = f"{count(evicted, 'hash', 'hashes')} evicted" if evicted else "nothing was evicted"
    taken = f"{{}} took {count(len(call.popped), 'block')}, {_taken(moment, call)}; {lost}."
    return sentence(moment, taken, call.request)


def _taken(moment: Moment, call: CallTrace) -> str:
    """As "67–73", or "4, 6 for full attention and 5 for Mamba"."""
    config = moment.cursor.simulation.config
    if len(config.groups) == 1:
        return runs([popped.block for popped in call.popped])
    parts = [
        f"{runs([popped.block for popped in some])} for {group_name(config, group)}"
        for group, some in groupby(call.popped, lambda popped: popped.group)
    ]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[:-1] else parts)


def _fell_out(moment: Moment, call: CallTrace) -> Iterator[Words]:
    """Blocks that a window, a chunk or a state left behind, a sentence a group."""
    config = moment.cursor.simulation.config
    for given in call.released:
        text = LEFT_BEHIND[config.groups[given.group].kind].format(name=group_name(config, given.group))
        yield sentence(
            moment, f"{count(len(given.blocks), 'block')} of {{}} {text}: {runs(given.blocks)}.", call.request
        )


def _preemption(moment: Moment, victim: str, by: str | None, undone: int) -> Words:
    if by is None:
        return sentence(moment, "{} was preempted by the reset.", victim)
    if by == victim:
        return sentence(
            moment, "{} preempted itself: it had no room to go on, and was next in line to lose its blocks.", victim
        )
    taken = f" Its {count(undone, 'token')} of this step are taken back." if undone else ""
    return sentence(moment, f"{{}} was preempted, to make room for {{}}.{taken}", victim, by)


def _halt(moment: Moment, halt: Halt) -> Words:
    """Why a pass ended with requests left."""
    reasons = {
        "budget": "the token budget of the step is spent",
        "self_preempted": "the request that needed room preempted itself",
        "preempted": "this step preempted somebody, so it admits nobody",
        "max_num_seqs": f"{moment.cursor.simulation.config.max_num_seqs} requests run already, max_num_seqs",
        "padding": "the padded first token no longer fits into the budget",
        "whole_prefill": "chunked prefill is off and the whole prompt doesn't fit into the budget",
        "split": "the budget ends before the next boundary of its state blocks",
        "no_blocks": "its blocks were refused",
    }
    reason = reasons.get(halt.reason, halt.reason)
    if halt.request is None:
        return (Piece(f"The {halt.in_pass} pass ended: {reason}."),)
    if halt.reason == "no_blocks":
        return sentence(
            moment, "Admission stops at {}: its blocks were refused; whoever is behind it waits too.", halt.request
        )
    return sentence(moment, f"The {halt.in_pass} pass ended before {{}}: {reason}.", halt.request)


def _drafts(moment: Moment, applied: Applied) -> Iterator[Sentence]:
    for drafts in applied.trace.drafts:
        if drafts.lost:
            text = f"{{}} lost {count(drafts.lost, 'draft')}: they did not fit into this step."
            yield Sentence("draft", sentence(moment, text, drafts.request))
    for sampled in applied.trace.sampled:
        if sampled.drafts:
            accepted = f"{sampled.accepted} of {count(sampled.drafts, 'draft')}"
            text = f"{{}} had {accepted} accepted and keeps {count(sampled.tokens, 'token')}."
            yield Sentence("draft", sentence(moment, text, sampled.request))
