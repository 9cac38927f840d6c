"""Help while composing a request: which way to give the prompt counts, how long it is, and what it would hit now."""

from __future__ import annotations

from app.contexts import DraftContext
from app.rendering.moment import Moment
from app.rendering.transport import view
from app.rendering.words import count
from app.tokenizer import tokenize
from engine.actions import AddRequest
from engine.probe import Draft
from engine.tokens import Text

COUNTS = {"json": "The JSON counts.", "fields": ""}


def draft_context(moment: Moment, words: str, problem: str, *, whole_page: bool) -> DraftContext:
    """The fragment that htmx asks for, or a page of its own."""
    return DraftContext(view(moment), words, problem, whole_page)


def draft_words(moment: Moment, action: AddRequest, told: Draft, way: str) -> str:
    """As "The text counts, with 300 tokens. 300 tokens, 19 blocks; a lookup now hits 128 of them in 8 blocks."."""
    lead = COUNTS.get(way)
    if lead is None:
        tokens = sum(len(tokenize(part.text)) for part in action.prompt if isinstance(part, Text))
        lead = f"The text counts, with {count(tokens, 'token')}."
    return f"{lead} {_size_and_hit(moment, told)}".strip()


def _size_and_hit(moment: Moment, told: Draft) -> str:
    size = f"{count(told.num_tokens, 'token')}, {count(told.num_blocks, 'block')}"
    usable = moment.pool.num_blocks - 1
    if len(moment.cursor.simulation.config.groups) == 1 and told.num_blocks > usable:
        return f"{size}: more than the {count(usable, 'usable block')} of this pool, so it can never run whole."
    if not told.looked_up:
        return f"{size}; nothing is looked up: {_why_not(moment)}."
    if not told.hit_tokens:
        return f"{size}; a lookup now hits none of them."
    return f"{size}; a lookup now hits {told.hit_tokens} of them in {count(told.hit_blocks, 'block')}."


def _why_not(moment: Moment) -> str:
    return "it skips the cache" if moment.cursor.simulation.config.enable_prefix_caching else "caching is off"
