"""The blocks that the terms of a count stand for, so that a number can point at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.rendering.held import held_table
from app.rendering.moment import Moment
from engine.call_trace import CallTrace

MOST_COUNTED: Final = 400
"""Blocks behind a term that are named at most."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The blocks behind the terms of a count."""

    held: tuple[int, ...]
    nulls: int
    """Entries that were held and are null by now: their blocks were given back."""
    hits: tuple[int, ...]
    idle: tuple[int, ...]
    taken: tuple[int, ...]


def counted(moment: Moment, call: CallTrace, group: int) -> Counted:
    """What the terms of a group's count stand for."""
    table = held_table(moment, call, group).blocks
    new = len(call.new_blocks[group]) if call.new_blocks else 0
    before = table[: len(table) - new] if call.comp else ()
    hits = call.hit_blocks[group] if group < len(call.hit_blocks) else ()
    idle = [touched.block for touched in call.touched if touched.group == group and touched.place is not None]
    return Counted(
        tuple(block for block in before if block)[:MOST_COUNTED],
        sum(not block for block in before),
        tuple(block for block in hits if block)[:MOST_COUNTED],
        tuple(idle)[:MOST_COUNTED],
        taken(call, group),
    )


def taken(call: CallTrace, group: int | None = None) -> tuple[int, ...]:
    """What leaves the free queue: idle hits, then what is popped."""
    idle = [(touched.group, touched.block) for touched in call.touched if touched.place is not None]
    popped = [(one.group, one.block) for one in call.popped]
    return tuple(block for its, block in (*idle, *popped) if group in (None, its))[:MOST_COUNTED]
