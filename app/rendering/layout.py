"""The tokens of a call to scale, and beneath them the blocks that they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.contexts import BarPart, Chip, LayoutRow, LayoutTick
from app.rendering.groups import short_name
from app.rendering.held import held_table
from app.rendering.moment import Moment
from app.rendering.stage_counts import MOST_GROUPS
from engine.call_trace import CallTrace

MOST_CELLS: Final = 64
"""Blocks of a row that are drawn one by one; of more only where they end."""
MOST_IDS: Final = 24
WIDE: Final = 52
"""Letters that fit over the narrowest bar."""


def layout_parts(moment: Moment, call: CallTrace) -> tuple[BarPart, ...]:
    """The token ranges of the call: always the five of vLLM, then what is known but comes later."""
    request = moment.scheduler.requests.get(call.request)
    asked = call.comp + call.new_comp + call.ext_comp + call.new
    gate_tokens = call.gate.tokens if call.gate else 0
    known = max(gate_tokens, request.num_tokens if request and request.is_prefill_chunk else 0)
    parts = [
        BarPart("comp", call.comp),
        BarPart("new_comp", call.new_comp),
        BarPart("ext_comp", call.ext_comp),
        BarPart("new", call.new),
        BarPart("lookahead", call.lookahead),
    ]
    later = max(known - asked, 0)
    return (*parts, BarPart("later", later)) if later else tuple(parts)


def layout_room(parts: Sequence[BarPart], rows: Sequence[LayoutRow]) -> int:
    """How many tokens the panel is wide: to the end of the last block."""
    return max(sum(part.tokens for part in parts), rows[0].total * rows[0].block_size)


def layout_ticks(parts: Sequence[BarPart], room: int) -> tuple[LayoutTick, ...]:
    """Where parts of length 0 would stand in a panel `room` tokens wide; neighbours share a tick."""
    ticks: list[LayoutTick] = []
    at = 0
    for part in parts:
        if not part.tokens:
            ticks.append(LayoutTick(at / room if room else 0.0, f"{part.kind} 0"))
            while len(ticks) > 1 and _start(ticks[-1]) < _start(ticks[-2]) + (len(ticks[-2].words) + 1) / WIDE:
                last = ticks.pop()
                ticks[-1] = LayoutTick(ticks[-1].at, f"{ticks[-1].words}, {last.words}")
        at += part.tokens
    return tuple(ticks)


def _start(tick: LayoutTick) -> float:
    """Where its words begin: at the tick, or as far to the left as they need."""
    return max(min(tick.at, 1 - len(tick.words) / WIDE), 0)


def layout_rows(moment: Moment, call: CallTrace, parts: Sequence[BarPart]) -> tuple[LayoutRow, ...]:
    """The table of the call against the same tokens, a row a group."""
    total = sum(part.tokens for part in parts)
    config = moment.cursor.simulation.config
    several = len(config.groups) > 1
    return tuple(
        _row(moment, call, group, total, short_name(config, group) if several else "")
        for group in range(min(len(config.groups), MOST_GROUPS))
    )


def _row(moment: Moment, call: CallTrace, group: int, tokens: int, label: str) -> LayoutRow:
    size = moment.cursor.simulation.config.groups[group].block_size
    new = len(call.new_blocks[group]) if call.new_blocks else 0
    table = held_table(moment, call, group)
    total = max(-(-tokens // size), len(table.blocks))
    old = len(table.blocks) - new
    if total > MOST_CELLS:
        return LayoutRow(label, size, total, old, new, (), (), ids=False)
    hits = _hits(moment, call, group)
    end = call.comp + call.new_comp + call.ext_comp + call.new * call.granted
    chips = [
        Chip(
            block,
            table.is_hashed(moment, block),
            entry < hits,
            block in moment.changed,
            table.holders(moment, call.request, block),
            min(max(end - entry * size, 0), size) / size,
        )
        for entry, block in enumerate(table.blocks)
    ]
    return LayoutRow(label, size, total, old, new, tuple(chips[:old]), tuple(chips[old:]), ids=total <= MOST_IDS)


def _hits(moment: Moment, call: CallTrace, group: int) -> int:
    """How many of its first blocks the request hit when it was admitted."""
    hit = moment.history.hit_blocks.get(call.request)
    if hit is not None:
        return hit[group] if group < len(hit) else 0
    return len(call.hit_blocks[group]) if call.granted and group < len(call.hit_blocks) else 0
