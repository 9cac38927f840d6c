"""The eight stages of a call, each with its numbers over their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from app.contexts import Chip, ChipRow, Formula, Stage, Term, UnitBar, UnitPart
from app.rendering.moment import Moment
from app.rendering.words import count, runs
from engine.call_trace import CallTrace, CountTerms, FitTest

EDGE: Final = 8
MOST_COUNTED: Final = 400
"""Blocks behind a term that are named at most."""
TITLES: Final = {
    "gate": ("Gate", "whole sequence must fit"),
    "release": ("Release", "blocks that left the window"),
    "count": ("Count", "blocks to take from the free queue"),
    "check": ("Check", "these must fit now"),
    "touch": ("Touch", "the hits, so nobody can take them"),
    "pop": ("Pop", "new blocks from the head of the queue"),
    "hash": ("Hash", "the blocks now full"),
    "return": ("Return", "the new blocks"),
}


def stages(moment: Moment, call: CallTrace) -> tuple[Stage, ...]:
    """All eight, those not reached too."""
    makers = {
        "gate": _gate,
        "release": _release,
        "count": _count,
        "check": _check,
        "touch": _touch,
        "pop": _pop,
        "hash": _hash,
        "return": _return,
    }
    reached = call.reached
    return tuple(make(moment, call) if name in reached else _not_reached(name, call) for name, make in makers.items())


def _stage(
    name: str,
    side: str = "",
    *,
    about: str | None = None,
    ran: bool = True,
    passed: bool | None = None,
    formulas: Iterable[Formula] = (),
    bar: UnitBar | None = None,
    rows: Iterable[ChipRow] = (),
    note: str = "",
) -> Stage:
    title, usual = TITLES[name]
    is_test = name in ("gate", "check")
    words = usual if about is None else about
    return Stage(name, title, words, side, is_test, ran, passed, tuple(formulas), bar, tuple(rows), note)


def _not_reached(name: str, call: CallTrace) -> Stage:
    if name == "gate":
        why = "off in this config" if call.comp == 0 else "only asked at an admission"
        return _stage(name, about=why, ran=False)
    return _stage(name, about="not reached", ran=False)


def _gate(_moment: Moment, call: CallTrace) -> Stage:
    test = call.gate
    assert test is not None
    name = f"for all {count(test.tokens, 'token')}"
    return _stage("gate", passed=test.passes, formulas=[_test(test, name)], bar=_bar(test))


def _check(_moment: Moment, call: CallTrace) -> Stage:
    test = call.check
    assert test is not None
    return _stage(
        "check", passed=test.passes, formulas=[_test(test, "to take", _taken(call), reserved=True)], bar=_bar(test)
    )


def _test(test: FitTest, name: str, blocks: tuple[int, ...] = (), *, reserved: bool = False) -> Formula:
    wrong = not test.passes
    terms = [
        Term("", test.needed, name, blocks=blocks),
        Term("+", test.headroom, "watermark"),
        Term(">" if wrong else "≤", test.free, "free", wrong),
    ]
    if reserved:
        terms.append(Term("−", test.reserved, "reserved"))
    return Formula("", tuple(terms))


def _bar(test: FitTest) -> UnitBar:
    idle = sum(terms.idle_hits for terms in test.terms)
    parts = [
        UnitPart("idle", idle, "idle hits"),
        UnitPart("new", test.needed - idle, "new"),
        UnitPart("watermark", test.headroom, "watermark"),
        UnitPart("reserved", test.reserved, "reserved"),
    ]
    verdict = (
        f"fits, {test.spare} to spare" if test.passes else f"{-test.spare} more free {_blocks(-test.spare)} needed"
    )
    return UnitBar(tuple(part for part in parts if part.blocks), test.free, verdict)


def _blocks(number: int) -> str:
    return "block" if number == 1 else "blocks"


def _release(moment: Moment, call: CallTrace) -> Stage:
    blocks = [block for given in call.released for block in given.blocks]
    side = count(call.released_count, "block") if blocks else "0 blocks"
    if not blocks:
        return _stage("release", side, about="nothing lies outside a window")
    return _stage("release", side, rows=[_row(moment, blocks, "given back, the last one first")])


@dataclass(frozen=True, slots=True)
class _Counted:
    """The blocks behind the terms of a count."""

    held: tuple[int, ...]
    hits: tuple[int, ...]
    idle: tuple[int, ...]
    taken: tuple[int, ...]


def _counted(moment: Moment, call: CallTrace, group: int) -> _Counted:
    table = moment.manager.get_blocks(call.request)
    new = len(call.new_blocks[group]) if call.new_blocks else 0
    before = table[group][: len(table[group]) - new] if call.comp and call.granted and group < len(table) else ()
    hits = call.hit_blocks[group] if group < len(call.hit_blocks) else ()
    idle = [touched.block for touched in call.touched if touched.group == group and touched.place is not None]
    return _Counted(
        tuple(block for block in before if block)[:MOST_COUNTED],
        tuple(block for block in hits if block)[:MOST_COUNTED],
        tuple(idle)[:MOST_COUNTED],
        _taken(call, group),
    )


def _taken(call: CallTrace, group: int | None = None) -> tuple[int, ...]:
    """What leaves the free queue: idle hits, then what is popped."""
    idle = [(touched.group, touched.block) for touched in call.touched if touched.place is not None]
    popped = [(one.group, one.block) for one in call.popped]
    return tuple(block for its, block in (*idle, *popped) if group in (None, its))[:MOST_COUNTED]


def _count(moment: Moment, call: CallTrace) -> Stage:
    test = call.check
    assert test is not None
    groups = moment.cursor.simulation.config.groups
    several = len(groups) > 1
    formulas = [
        _count_formula(
            terms,
            test.tokens,
            groups[group].block_size,
            f"group {group}" if several else "",
            _counted(moment, call, group),
        )
        for group, terms in enumerate(test.terms)
    ]
    if several:
        formulas.append(Formula("all groups", (Term("", test.needed, "to take"),)))
    return _stage("count", formulas=formulas)


def _count_formula(terms: CountTerms, tokens: int, block_size: int, label: str, blocks: _Counted) -> Formula:
    covered = max(terms.skipped - terms.held, terms.hits)
    name = "skipped" if covered > terms.hits else "hit"
    row = [
        Term("", terms.need, f"⌈{tokens} ÷ {block_size}⌉"),
        Term("−", terms.held, "held", blocks=blocks.held),
        Term("−", covered, name, blocks=blocks.hits if name == "hit" else ()),
        Term("+", terms.idle_hits, "idle hits", blocks=blocks.idle),
        *([Term("+", terms.copies, "copies")] if terms.copies else []),
        Term("=", terms.total, "to take", blocks=blocks.taken),
    ]
    if terms.need - terms.held - covered < 0:
        row.insert(3, Term("→", terms.fresh, "never below 0"))
    return Formula(label, tuple(row))


def _touch(moment: Moment, call: CallTrace) -> Stage:
    if not call.touched:
        return _stage("touch", "0 touched", about="no hit to hold on to")
    held = [touched for touched in call.touched if touched.place is None]
    idle = [touched for touched in call.touched if touched.place is not None]
    rows = []
    if held:
        refs = {touched.ref_before for touched in held}
        caption = f"ref {held[0].ref_before} → {held[0].ref_before + 1}" if len(refs) == 1 else "ref + 1"
        rows.append(_row(moment, [touched.block for touched in held], caption, hit=True))
    if idle:
        rows.append(_row(moment, [touched.block for touched in idle], "ref 0 → 1, left the free queue", hit=True))
    return _stage("touch", f"{len(call.touched)} touched", rows=rows)


def _pop(moment: Moment, call: CallTrace) -> Stage:
    evicted = [popped.block for popped in call.popped if popped.lost]
    side = f"{len(call.popped)} popped, {len(evicted)} evicted"
    if not call.popped:
        return _stage("pop", "0 popped", about="no new block is needed")
    note = f"lost their hash: {runs(evicted)}" if evicted else "none carried a hash"
    return _stage("pop", side, rows=[_row(moment, [popped.block for popped in call.popped], "")], note=note)


def _hash(moment: Moment, call: CallTrace) -> Stage:
    blocks = [block for registered in call.registered for block in registered.blocks]
    note = _partly_full(moment, call)
    if not moment.cursor.simulation.config.enable_prefix_caching:
        return _stage("hash", "0 hashed", about="caching is off")
    if not blocks:
        return _stage("hash", "0 hashed", about="no block became full", note=note)
    return _stage("hash", f"{len(blocks)} hashed", rows=[_row(moment, blocks, "")], note=note)


def _partly_full(moment: Moment, call: CallTrace) -> str:
    """As "73 has 4 of 16 tokens: not yet": the block that this call writes to last, if it isn't full (one group)."""
    config = moment.cursor.simulation.config
    end = min(call.comp + call.new_comp + call.ext_comp + call.new, config.max_model_len)
    tables = moment.manager.get_blocks(call.request)
    filled = end % config.groups[0].block_size
    entry = end // config.groups[0].block_size
    if len(config.groups) > 1 or not filled or entry >= len(tables[0]):
        return ""
    return f"{tables[0][entry]} has {filled} of {count(config.groups[0].block_size, 'token')}: not yet"


def _return(_moment: Moment, call: CallTrace) -> Stage:
    side = f"free {call.free_before} → {call.free_after}"
    if call.new_blocks is None:
        return _stage("return", side, about="None")
    lists = [_brackets(blocks) for blocks in call.new_blocks]
    return _stage("return", side, about=lists[0] if len(lists) == 1 else ", ".join(lists))


def _brackets(blocks: Sequence[int]) -> str:
    if len(blocks) > 4:
        return f"[{blocks[0]} … {blocks[-1]}]"
    return f"[{', '.join(map(str, blocks))}]"


def _row(moment: Moment, blocks: Sequence[int], caption: str, *, hit: bool = False) -> ChipRow:
    return chip_row(moment, blocks, caption, range(len(blocks) if hit else 0))


def chip_row(moment: Moment, blocks: Sequence[int], caption: str, hits: range) -> ChipRow:
    """Blocks as chips, a long middle folded; `hits` are the places of prefix cache hits."""
    places = list(range(len(blocks)))
    folded = max(len(places) - 2 * EDGE, 0)
    if folded:
        places = places[:EDGE] + places[-EDGE:]
    hashes, changed = moment.pool.block_hash, moment.changed
    chips = tuple(
        Chip(block, hashes[block] is not None, place in hits, block in changed, tuple(moment.holders(block)))
        for place, block in ((place, blocks[place]) for place in places)
    )
    return ChipRow(chips, folded, caption)
