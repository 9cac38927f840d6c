"""The eight stages of a call, each with its numbers over their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from app.contexts import Chip, ChipRow, Formula, Stage, Term, UnitBar, UnitPart
from app.rendering.counted import taken
from app.rendering.glossary import meanings
from app.rendering.groups import group_name
from app.rendering.moment import Moment
from app.rendering.stage_counts import WAITS, count_formulas, gate_formulas, waits_for_state
from app.rendering.words import count, runs
from engine.call_trace import CallTrace, FitTest, Popped, Touched

EDGE: Final = 8
OUTSIDE: Final = {
    "full_attention": "needed no more",
    "sliding_window": "fell out of the window, the last one first",
    "chunked_local_attention": "fell out of the chunk, the last one first",
    "mamba": "older states",
}
"""Kind -> why its blocks are released."""
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

UNITS: Final = {"idle": "idle-hits", "new": "new-blocks", "watermark": "watermark", "reserved": "reserved"}
"""Part of a test's bar -> its word in the glossary."""


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
    return tuple(
        make(moment, call) if name in reached else _not_reached(moment, name, call) for name, make in makers.items()
    )


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
    formulas = tuple(formulas)
    terms = [term.word for formula in formulas for term in formula.terms]
    units = [UNITS[part.kind] for part in bar.parts] if bar else []
    told = meanings(name, *terms, *units)
    return Stage(name, title, words, side, is_test, ran, passed, formulas, bar, tuple(rows), note, told)


def _not_reached(moment: Moment, name: str, call: CallTrace) -> Stage:
    if name == "gate":
        is_on = moment.cursor.simulation.config.scheduler_reserve_full_isl
        off = "not asked in this probe" if is_on else "off in this config"
        why = off if call.comp == 0 else "only asked at an admission"
        return _stage(name, about=why, ran=False)
    return _stage(name, about="not reached", ran=False)


def _gate(moment: Moment, call: CallTrace) -> Stage:
    test = call.gate
    assert test is not None
    name = f"for all {count(test.tokens, 'token')}"
    note = WAITS if not test.passes and waits_for_state(moment, call) else _no_watermark(moment, test)
    formulas = (*gate_formulas(moment, test), _test(test, name, "whole"))
    return _stage("gate", passed=test.passes, formulas=formulas, bar=None if note == WAITS else _bar(test), note=note)


def _no_watermark(moment: Moment, test: FitTest) -> str:
    """Why an admission need not leave the watermark free (5.2)."""
    config = moment.cursor.simulation.config
    if test.headroom or not int(config.watermark * config.num_blocks):
        return ""
    return "no watermark: nothing runs that would need blocks next"


def _check(_moment: Moment, call: CallTrace) -> Stage:
    test = call.check
    assert test is not None
    note = "reserved: what requests that load or prefill still need" if test.reserved else ""
    formula = _test(test, "to take", "to-take", taken(call), reserved=True)
    return _stage("check", passed=test.passes, formulas=[formula], bar=_bar(test), note=note)


def _test(test: FitTest, name: str, word: str, blocks: tuple[int, ...] = (), *, reserved: bool = False) -> Formula:
    wrong = not test.passes
    terms = [
        Term("", test.needed, name, word, blocks=blocks),
        Term("+", test.headroom, "watermark", "watermark"),
        Term(">" if wrong else "≤", test.free, "free", "free", wrong),
    ]
    if reserved:
        terms.append(Term("−", test.reserved, "reserved", "reserved"))
    return Formula("", tuple(terms))


def _bar(test: FitTest) -> UnitBar:
    idle = sum(terms.idle_hits for terms in test.terms)
    parts = [
        UnitPart("idle", idle, "idle hit" if idle == 1 else "idle hits"),
        UnitPart("new", max(test.needed - idle, 0), "new"),
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
    if not call.released:
        return _stage("release", "0 blocks", about="nothing lies outside a window")
    config = moment.cursor.simulation.config
    rows = []
    for given in call.released:
        caption = OUTSIDE[config.groups[given.group].kind]
        if given.held:
            caption += f"; {len(given.held)} still held by others"
        rows.append(_row(moment, given.blocks, _of_group(moment, given.group, caption)))
    about = "what is needed no more goes back first"
    return _stage("release", count(call.released_count, "block"), about=about, rows=rows)


def _of_group(moment: Moment, group: int, caption: str) -> str:
    """The caption of a row of blocks; it begins with the group where there are several."""
    config = moment.cursor.simulation.config
    name = group_name(config, group) if len(config.groups) > 1 else ""
    return ": ".join(part for part in (name, caption) if part)


def _count(moment: Moment, call: CallTrace) -> Stage:
    formulas = count_formulas(moment, call)
    return _stage("count", formulas=formulas, note=WAITS if waits_for_state(moment, call) else "")


def _touch(moment: Moment, call: CallTrace) -> Stage:
    if not call.touched:
        return _stage("touch", "0 touched", about="no hit to hold on to")
    rows: list[ChipRow] = []
    for group, some in groupby(call.touched, lambda touched: touched.group):
        rows += _touched(moment, group, list(some))
    return _stage("touch", f"{len(call.touched)} touched", rows=rows)


def _touched(moment: Moment, group: int, touched: Sequence[Touched]) -> Iterator[ChipRow]:
    """Those that others hold too, then those that lay in the free queue."""
    held = [one for one in touched if one.place is None]
    idle = [one.block for one in touched if one.place is not None]
    if held:
        refs = {one.ref_before for one in held}
        caption = f"ref {held[0].ref_before} → {held[0].ref_before + 1}" if len(refs) == 1 else "ref + 1"
        yield _row(moment, [one.block for one in held], _of_group(moment, group, caption), hit=True)
    if idle:
        yield _row(moment, idle, _of_group(moment, group, "ref 0 → 1, left the free queue"), hit=True)


def _pop(moment: Moment, call: CallTrace) -> Stage:
    evicted = [popped.block for popped in call.popped if popped.lost]
    side = f"{len(call.popped)} popped, {len(evicted)} evicted"
    if not call.popped:
        return _stage("pop", "0 popped", about="no new block is needed")
    lost = f"lost their hash: {runs(evicted)}" if evicted else "none carried a hash"
    copies = _copied(moment, call)
    note = f"{lost}. {' '.join(copies)}" if copies else lost
    rows = [
        _popped_row(moment, list(some), _of_group(moment, group, ""))
        for group, some in groupby(call.popped, lambda popped: popped.group)
    ]
    return _stage("pop", side, rows=rows, note=note)


def _popped_row(moment: Moment, popped: Sequence[Popped], caption: str) -> ChipRow:
    """As they were handed out: what they hold by now, and hashes that they got since, are left out."""
    row = _row(moment, [one.block for one in popped], caption)
    lost = {one.block for one in popped if one.lost}
    chips = tuple(replace(chip, hashed=False, evicted=chip.block in lost) for chip in row.chips)
    return replace(row, chips=chips)


def _copied(moment: Moment, call: CallTrace) -> tuple[str, ...]:
    """Which of the new blocks are copies, in sentences."""
    copies = moment.applied.trace.copies if moment.applied else ()
    return tuple(
        f"{copy.copy} becomes a copy of {copy.source}{', which takes over its hash' if copy.moved else ''}."
        for copy in copies
        if copy.request == call.request
    )


def _hash(moment: Moment, call: CallTrace) -> Stage:
    if not moment.cursor.simulation.config.enable_prefix_caching:
        return _stage("hash", "0 hashed", about="caching is off")
    rows = [
        _row(moment, registered.blocks, _of_group(moment, registered.group, ""))
        for registered in call.registered
        if registered.blocks
    ]
    for part in call.partial:
        caption = f"the prefix of {count(part.num_tokens, 'token')} ends in it"
        rows.append(_row(moment, [part.block], _of_group(moment, part.group, caption)))
    note = _partly_full(moment, call)
    if not rows:
        return _stage("hash", "0 hashed", about="no block became full", note=note)
    hashed = sum(len(registered.blocks) for registered in call.registered) + len(call.partial)
    return _stage("hash", f"{hashed} hashed", rows=rows, note=note)


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
