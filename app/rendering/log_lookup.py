"""A prefix lookup in words: what it found, round by round where there are several groups, and why it found no more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from app.contexts import Piece, Words
from app.rendering.groups import names_of
from app.rendering.moment import Moment
from app.rendering.words import count, sentence
from engine.block_hash import short_hash
from engine.step_trace import Lookup
from engine.trace import Search


def lookup_words(moment: Moment, lookup: Lookup) -> Iterator[Words]:
    """As "R found 128 of its 300 tokens in 8 cached blocks. The next hash, …, was never cached."."""
    config = moment.cursor.simulation.config
    if lookup.limit is None:
        why = "it skips reading the cache" if config.enable_prefix_caching else "caching is off"
        yield sentence(moment, f"{{}} looked nothing up: {why}.", lookup.request)
        return
    tokens = lookup.limit + 1
    blocks = sum(1 for group in lookup.blocks for block in group if block)
    if lookup.num_tokens:
        found = f"{{}} found {lookup.num_tokens} of its {tokens} tokens in {count(blocks, 'cached block')}."
    else:
        found = f"{{}} found none of its {count(tokens, 'token')} in the cache."
    again = moment.columns.stories.latest(lookup.request, moment.at - 1, "preempted") is not None
    apart = " It was preempted before: this counts apart from the hit rate." if again else ""
    yield sentence(moment, f"{found} {_why_no_more(moment, lookup)}".rstrip() + apart, lookup.request)
    if len(config.groups) > 1 and any(search.found for search in lookup.searches):
        yield from ((Piece(text),) for text in round_words(moment, lookup))
    if lookup.shared_prefix_boundary:
        text = f"Some groups still hold a longer prefix, {lookup.shared_prefix_boundary} tokens; others lost it."
        yield (Piece(text),)


def round_words(moment: Moment, lookup: Lookup) -> Iterator[str]:
    """As "Round 1: full attention found 20 tokens, cut to 16 by alignment; sliding window found 16."."""
    assert lookup.limit is not None
    most = lookup.limit
    for number, searches in groupby(lookup.searches, lambda search: search.round):
        if not most:
            return
        told: list[str] = []
        up_to = f", up to {most} tokens" if number else ""
        for search in searches:
            found = _found(moment, search, "" if told else " tokens")
            told.append(f"{names_of(moment.cursor.simulation.config, search.groups)} {found}")
            most = min(most, search.num_tokens)
        yield f"Round {number + 1}{up_to}: {'; '.join(told)}."


def _found(moment: Moment, search: Search, unit: str) -> str:
    """What one search found, and what cut it: as "found 20 tokens, cut to 16 by alignment"."""
    config = moment.cursor.simulation.config
    group = config.groups[search.groups[0]]
    if not search.found:
        return f"found 0{unit}"
    if search.dropped and group.kind != "mamba":
        return f"found {count(search.found, 'block')}, of which EAGLE drops the last: {search.num_tokens}{unit}"
    walked = search.found * group.block_size
    if group.kind == "full_attention" and not config.partial_hits and walked > search.num_tokens:
        return f"found {walked}{unit}, cut to {search.num_tokens} by alignment"
    return f"found {search.num_tokens}{unit}"


def _why_no_more(moment: Moment, lookup: Lookup) -> str:
    """Why the hit ended where it did."""
    config = moment.cursor.simulation.config
    dropped = any(search.dropped for search in lookup.searches)
    eagle = " The last block found was dropped for the EAGLE drafter." if dropped else ""
    missed = _culprit(lookup)
    if missed is not None:
        return _first_miss(moment, missed) + eagle
    if not lookup.searches:
        return eagle.strip()
    assert lookup.limit is not None
    if len(config.groups) > 1:
        ends = f"hits end at multiples of {config.alignment} tokens"
        which = "No longer one" if lookup.num_tokens else "None"
        return f"{which} ends before the last token, which is always computed: {ends}.{eagle}"
    size = config.groups[lookup.searches[-1].groups[0]].block_size
    if lookup.limit < size:
        return f"No block of it is full before the last token, which is always computed.{eagle}"
    if (lookup.limit + 1) % size == 0:
        why = "the last token is always computed, so that there is something to sample from"
        return f"The last block is left out: {why}.{eagle}"
    return f"No further block is full before the last token, which is always computed.{eagle}"


def _culprit(lookup: Lookup) -> Search | None:
    """The search that a missing hash kept from more; the last one of those that cut the hit."""
    assert lookup.limit is not None
    culprit, most = None, lookup.limit
    for search in lookup.searches:
        if search.missing is not None and (culprit is None or search.num_tokens < most):
            culprit = search
        most = min(most, search.num_tokens)
    return culprit


def _first_miss(moment: Moment, search: Search) -> str:
    """The first hash that was not cached, and who lost it."""
    assert search.missing is not None
    config = moment.cursor.simulation.config
    name = f"…{short_hash(search.missing)[-4:]}"
    group = f" of {names_of(config, search.groups)}" if len(config.groups) > 1 else ""
    from_the_end = config.groups[search.groups[0]].kind in ("sliding_window", "mamba")
    which = "The first miss from the end" if from_the_end else "The next hash"
    losses = [moment.history.losses.get((search.missing, group_id)) for group_id in search.groups]
    loss = max((loss for loss in losses if loss is not None), key=lambda loss: loss.action, default=None)
    if loss is None:
        return f"{which}{group}, {name}, was never cached before."
    lost = "a reset forgot it" if loss.by is None else f"block {loss.block} lost it to {loss.by}"
    return f"{which}{group}, {name}, is gone: {lost} in {moment.label(loss.action)}."
