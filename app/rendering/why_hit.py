"""Why a request hit so many tokens and not more: what ended its lookup."""

from __future__ import annotations

from collections.abc import Iterator

from app.contexts import Piece, WhyFact
from app.rendering.log_lookup import lookup_words
from app.rendering.moment import Moment
from app.rendering.why import Answer, event_fact
from app.rendering.why_differs import Stored, differs
from app.rendering.words import count, isolated, sentence
from engine.block_hash import BlockHash, short_hash
from engine.history import Loss
from engine.step_trace import Lookup
from engine.trace import Search


def why_hit(moment: Moment, lookup: Lookup) -> Answer:
    """Told at the moment behind the step that looked it up."""
    answer, *rounds = lookup_words(moment, lookup)
    return answer, [*(WhyFact("lookup", words) for words in rounds), *_facts(moment, lookup)]


def _facts(moment: Moment, lookup: Lookup) -> Iterator[WhyFact]:
    if lookup.limit is None:
        return
    missed = next((search for search in lookup.searches if search.missing is not None), None)
    if missed is not None:
        yield from _miss_facts(moment, lookup.request, missed)
    else:
        yield WhyFact("last token", (Piece(_last_token(lookup.limit)),))
    if any(search.dropped and search.found for search in lookup.searches):
        words = "The last block that was found is dropped: the drafter needs the model's hidden states there anew."
        yield WhyFact("EAGLE", (Piece(words),))
    yield from _alignment(moment, lookup)
    yield from _keys(moment, lookup)


def _last_token(limit: int) -> str:
    return (
        f"At most {limit} of {count(limit + 1, 'token')} may be hit: the last one is always computed, so that there is "
        "something to sample from."
    )


def _miss_facts(moment: Moment, request: str, search: Search) -> Iterator[WhyFact]:
    """The first block that differs: what it was, who lost it, or which other way the prefix goes on."""
    assert search.missing is not None
    group = search.groups[0]
    size = moment.cursor.simulation.config.groups[group].block_size
    name = short_hash(search.missing)
    start = search.found * size
    words = f"Entry {search.found} of its table, tokens {start} to {start + size - 1}, has the hash …{name[-4:]}."
    yield WhyFact("first block that differs", (Piece(words),))
    losses = [(moment.history.losses.get((search.missing, one)), one) for one in search.groups]
    known = [(loss, one) for loss, one in losses if loss is not None]
    if known:
        loss, lost_in = max(known, key=lambda pair: pair[0].action)
        yield from _loss_facts(moment, loss, search.missing, lost_in)
        return
    yield _never_cached(moment, request, search, group)


def _loss_facts(moment: Moment, loss: Loss, block_hash: BlockHash, group: int) -> Iterator[WhyFact]:
    stored = _stored(moment, loss, block_hash, group)
    if stored is not None:
        yield stored
    if loss.by is None:
        yield event_fact(moment, loss.action, (Piece(f"A reset forgot it, on block {loss.block}."),), loss.block)
        return
    text = f"{{}} needed a new block, and block {loss.block} was the head of the free queue: its hash was evicted."
    if any(
        event.why == "longer prefix" and event.what == "evicted"
        for action, event in moment.columns.life(loss.block, loss.action + 1)
        if action == loss.action
    ):
        text = f"On block {loss.block} a longer prefix of {{}} took its place."
    yield event_fact(moment, loss.action, sentence(moment, text, loss.by), loss.block)


def _stored(moment: Moment, loss: Loss, block_hash: BlockHash, group: int) -> WhyFact | None:
    """When the block had got the hash that it lost."""
    for action, event in moment.columns.life(loss.block, loss.action + 1):
        if event.what == "hashed" and (block_hash, group) in event.keys and event.request is not None:
            words = sentence(moment, f"Block {loss.block} got this hash, full with tokens of {{}}.", event.request)
            return event_fact(moment, action, words, loss.block)
    return None


def _never_cached(moment: Moment, request: str, search: Search, group: int) -> WhyFact:
    """Nobody had stored this block; perhaps others go on differently from here."""
    known, parent = _hash_before(moment, search, group)
    lineage = moment.history.lineage.items() if known else ()
    others = [key for key, one in lineage if key[1] == group and one.parent == parent and key[0] != search.missing]
    cached = [(key, block) for key in others if (block := moment.pool.cached.get_one_block(key)) is not None]
    if not cached:
        went = count(len(others), "earlier one")
        words = f"It was never stored; {went} went on differently, and lost its hash since."
        if not others:
            words = "Nobody ever filled a block with the same tokens behind the same prefix."
        return WhyFact("never cached", (Piece(words),))
    size = _size(moment, group)
    stored = [Stored(block, key, _owner(moment, block)) for key, block in cached]
    why, told = differs(moment, request, stored, search.found * size, size)
    return WhyFact("others go on differently", why, None, told.block)


def _size(moment: Moment, group: int) -> int:
    return moment.cursor.simulation.config.groups[group].block_size


def _hash_before(moment: Moment, search: Search, group: int) -> tuple[bool, BlockHash | None]:
    """The hash in front of the missing one, None at the start of a chain; and whether anybody knows it."""
    assert search.missing is not None
    stored = moment.history.lineage.get((search.missing, group))
    if stored is not None:
        return True, stored.parent
    for request in moment.scheduler.requests.values():
        if search.missing in request.block_hashes:
            before = request.block_hashes.index(search.missing) - _size(moment, group) // request.hash_size
            return True, request.block_hashes[before] if before >= 0 else None
    return False, None


def _owner(moment: Moment, block: int) -> str | None:
    """Whose tokens a hashed block holds."""
    life = moment.columns.life(block, moment.at)
    return next((event.request for _, event in life if event.what == "hashed" and event.request is not None), None)


def _alignment(moment: Moment, lookup: Lookup) -> Iterator[WhyFact]:
    """Several groups agree only on multiples of a common length."""
    config = moment.cursor.simulation.config
    cut = [
        search
        for search in lookup.searches
        if not search.dropped and search.found * _size(moment, search.groups[0]) > search.num_tokens
    ]
    if len(config.groups) > 1 and cut:
        words = f"A hit must be one for every group: only multiples of {config.alignment} tokens count."
        yield WhyFact("alignment", (Piece(words),))
    if lookup.shared_prefix_boundary:
        text = f"Some groups still hold {lookup.shared_prefix_boundary} tokens of it, but another one doesn't."
        yield WhyFact("longer in some groups", (Piece(text),))


def _keys(moment: Moment, lookup: Lookup) -> Iterator[WhyFact]:
    """What else is in the hashes beside tokens."""
    request = moment.scheduler.requests.get(lookup.request)
    if request is None:
        return
    if request.cache_salt:
        words = f"Its salt, {isolated(request.cache_salt)}, is in its first hash: only equal salts share blocks."
        yield WhyFact("cache_salt", (Piece(words),))
    if request.lora:
        words = f"Its adapter, {isolated(request.lora)}, is in every hash: only equal ones share blocks."
        yield WhyFact("LoRA", (Piece(words),))
