"""Help while composing a request: its length, its blocks, and what it would hit now."""

from __future__ import annotations

from app.contexts import DraftContext
from app.rendering.moment import Moment
from app.rendering.transport import view
from app.rendering.words import count
from engine.probe import Draft


def draft_context(moment: Moment, told: Draft | None, problem: str, *, whole_page: bool) -> DraftContext:
    """The fragment; `told` is None where there is a problem."""
    if told is None:
        return DraftContext(view(moment), 0, 0, 0, 0, "", problem, whole_page)
    numbers = (told.num_tokens, told.num_blocks, told.hit_tokens, told.hit_blocks)
    return DraftContext(view(moment), *numbers, _words(moment, told), "", whole_page)


def _words(moment: Moment, told: Draft) -> str:
    """As "300 tokens, 19 blocks; a lookup now hits 128 of them in 8 blocks."."""
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
