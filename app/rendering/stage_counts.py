"""The count of a call as formulas: a row a group with every term, and a request that waits for a state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from app.contexts import Formula, Term
from app.rendering.counted import Counted, counted
from app.rendering.groups import short_name
from app.rendering.moment import Moment
from engine.call_trace import CallTrace, CountTerms, FitTest
from engine.config import GroupConfig

MOST_GROUPS: Final = 12
WAITS: Final = (
    "The state that it hits is only being made in this step and can't be read yet: the count is more than the pool "
    "has, so it waits for the next step."
)


def waits_for_state(moment: Moment, call: CallTrace) -> bool:
    """Whether a Mamba group let the count exceed the pool on purpose (7.10)."""
    never = moment.pool.num_blocks + 1
    return any(_never_fits(terms, never) for test in (call.gate, call.check) if test for terms in test.terms)


def _never_fits(terms: CountTerms, never: int) -> bool:
    return terms.total == never != terms.fresh + terms.idle_hits + terms.copies


def count_formulas(moment: Moment, call: CallTrace) -> tuple[Formula, ...]:
    """The rows of the stage count; with several groups a row each, and their sum."""
    test = call.check
    assert test is not None
    config, rows = moment.cursor.simulation.config, []
    main = min(call.comp + call.new_comp + call.ext_comp, config.max_model_len) + call.new
    never = moment.pool.num_blocks + 1
    for group, terms in enumerate(test.terms[:MOST_GROUPS]):
        spec, blocks = config.groups[group], counted(moment, call, group)
        is_state = spec.kind == "mamba" and spec.mamba_cache_mode == "align"
        row = tuple(_terms(terms, main if is_state else test.tokens, spec, blocks, waits=_never_fits(terms, never)))
        rows.append(Formula(short_name(config, group) if len(config.groups) > 1 else "", row))
    if len(config.groups) > 1:
        rows.append(_sum(moment, test, "to take", "to-take"))
    return tuple(rows)


def _terms(terms: CountTerms, tokens: int, spec: GroupConfig, blocks: Counted, *, waits: bool) -> Iterator[Term]:
    """As 15 − 0 − 8 + 6 = 13; where the difference isn't what counts, what does stands behind an arrow."""
    is_state = spec.kind == "mamba" and spec.mamba_cache_mode == "align"
    covered = terms.hits if is_state else max(terms.skipped - terms.held, terms.hits)
    extra = f" + {spec.num_speculative_blocks}" if spec.num_speculative_blocks else ""
    yield Term("", terms.need, f"⌈{tokens} ÷ {spec.block_size}⌉{extra}", "need")
    nulls = min(blocks.nulls, terms.held)
    held = f"held, {nulls} of them null" if nulls else "held"
    yield Term("−", terms.held, held, "held-before", blocks=blocks.held)
    is_hit = covered <= terms.hits
    word = "hit" if is_hit else "skipped"
    yield Term("−", covered, word, word, blocks=blocks.hits if is_hit else ())
    left = terms.need - terms.held - covered
    if not waits and terms.fresh != left:
        name, word = ("never below 0", "no-less") if terms.fresh > left else ("states needed", "states")
        yield Term("→", terms.fresh, name, word)
    idle = "idle hit" if terms.idle_hits == 1 else "idle hits"
    yield Term("+", terms.idle_hits, idle, "idle-hits", blocks=blocks.idle)
    if terms.copies:
        yield Term("+", terms.copies, "copy" if terms.copies == 1 else "copies", "copies")
    if waits:
        yield Term("=", terms.total, "must wait", "must-wait", wrong=True)
    else:
        yield Term("=", terms.total, "to take", "to-take", blocks=blocks.taken)


def gate_formulas(moment: Moment, test: FitTest) -> tuple[Formula, ...]:
    """With several groups: what each would take of the whole sequence; windows never hold all of it."""
    return (_sum(moment, test, "in all", "in-all"),) if len(test.terms) > 1 else ()


def _sum(moment: Moment, test: FitTest, name: str, word: str) -> Formula:
    """As 4 + 2 = 6."""
    config = moment.cursor.simulation.config
    parts = [
        Term("+" if group else "", terms.total, short_name(config, group), "group")
        for group, terms in enumerate(islice(test.terms, MOST_GROUPS))
    ]
    if len(test.terms) > MOST_GROUPS:
        rest = sum(terms.total for terms in test.terms[MOST_GROUPS:])
        parts.append(Term("+", rest, f"{len(test.terms) - MOST_GROUPS} more groups", "group"))
    return Formula("", (*parts, Term("=", test.needed, name, word)))
