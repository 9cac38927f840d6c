"""A prefix lookup in words: what it found, and why it found no more."""

from __future__ import annotations

from app.contexts import Words
from app.rendering.moment import Moment
from app.rendering.words import count, sentence
from engine.block_hash import short_hash
from engine.step_trace import Lookup
from engine.trace import Search


def lookup_words(moment: Moment, lookup: Lookup) -> Words:
    """As "R found 128 of its 300 tokens in 8 cached blocks. The next hash, …, was never cached."."""
    if lookup.limit is None:
        config = moment.cursor.simulation.config
        why = "it skips reading the cache" if config.enable_prefix_caching else "caching is off"
        return sentence(moment, f"{{}} looked nothing up: {why}.", lookup.request)
    tokens = lookup.limit + 1
    blocks = sum(1 for group in lookup.blocks for block in group if block)
    if lookup.num_tokens:
        found = f"{{}} found {lookup.num_tokens} of its {tokens} tokens in {count(blocks, 'cached block')}."
    else:
        found = f"{{}} found none of its {count(tokens, 'token')} in the cache."
    return sentence(moment, f"{found} {_why_no_more(moment, lookup)}".rstrip(), lookup.request)


def _why_no_more(moment: Moment, lookup: Lookup) -> str:
    """Why the hit ended where it did."""
    dropped = any(search.dropped for search in lookup.searches)
    eagle = " The last block found was dropped for the EAGLE drafter." if dropped else ""
    missed = next((search for search in lookup.searches if search.missing is not None), None)
    if missed is not None:
        return _first_miss(moment, missed) + eagle
    if not lookup.searches:
        return eagle.strip()
    assert lookup.limit is not None
    size = moment.cursor.simulation.config.groups[lookup.searches[-1].groups[0]].block_size
    if (lookup.limit + 1) % size == 0:
        why = "the last token is always computed, so that there is something to sample from"
        return f"The last block is left out: {why}.{eagle}"
    return f"No further block is full before the last token, which is always computed.{eagle}"


def _first_miss(moment: Moment, search: Search) -> str:
    """The first hash that was not cached, and who lost it."""
    assert search.missing is not None
    name = f"…{short_hash(search.missing)[-4:]}"
    several = len(moment.cursor.simulation.config.groups) > 1
    which = "group" if len(search.groups) == 1 else "groups"
    group = f" of {which} {', '.join(map(str, search.groups))}" if several else ""
    losses = [moment.history.losses.get((search.missing, group_id)) for group_id in search.groups]
    loss = max((loss for loss in losses if loss is not None), key=lambda loss: loss.action, default=None)
    if loss is None:
        return f"The next hash{group}, {name}, was never cached before."
    lost = "a reset forgot it" if loss.by is None else f"block {loss.block} lost it to {loss.by}"
    return f"The next hash{group}, {name}, is gone: {lost} in action {loss.action + 1}."
