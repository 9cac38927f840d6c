"""A pool drawn small: one cell a block, or a slice of neighbours where there are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from math import ceil
from typing import Final

from app.contexts import Miniature, MiniCell
from app.rendering.moment import Moment

MOST_CELLS: Final = 200
PITCHES: Final = (36, 28, 24, 20, 14, 12, 9)
WIDTH: Final = 276
HEIGHT: Final = 72


def miniature(moment: Moment) -> Miniature:
    """The usable blocks of the pool: equal slices of a large one, each in the state of most of its blocks."""
    usable = moment.pool.num_blocks - 1
    if usable <= MOST_CELLS:
        cells = [cell(moment, block) for block in range(1, usable + 1)]
    else:
        bounds = [1 + usable * edge // MOST_CELLS for edge in range(MOST_CELLS + 1)]
        cells = [_slice(moment, range(*pair)) for pair in pairwise(bounds)]
    counts = moment.counts
    alt = (
        f"The pool after {moment.at} of {len(moment.actions)} actions: {counts.live} of {usable} blocks held, "
        f"{counts.cached} free but cached, {counts.empty} free and empty."
    )
    return laid_out(cells, alt)


def laid_out(cells: Sequence[MiniCell], alt: str, width: int = WIDTH, height: int = HEIGHT) -> Miniature:
    """Cells in rows, as large as they can be in so many pixels."""
    columns, pitch = _grid(len(cells), width, height)
    rows = tuple(tuple(cells[first : first + columns]) for first in range(0, len(cells), columns))
    rings = tuple((place, first, length) for place, row in enumerate(rows) for first, length in _runs(row))
    return Miniature(rows, pitch, rings, alt)


def cell(moment: Moment, block: int) -> MiniCell:
    """One block as it is now."""
    pool, hues = moment.pool, tuple(number % 8 + 1 for number in moment.holders(block))
    hashed, owners = pool.block_hash[block] is not None, len(moment.history.holders.get(block, ()))
    state = "shared" if owners > 1 else "held" if pool.ref_cnt[block] else "cached" if hashed else "empty"
    return MiniCell(block, state, hues, owners, hashed, block in moment.changed, block in moment.evicted)


def _slice(moment: Moment, blocks: range) -> MiniCell:
    cells = [cell(moment, block) for block in blocks]
    (state, hues), _ = Counter((one.state, one.hues) for one in cells).most_common(1)[0]
    hashed = sum(one.hashed for one in cells) * 2 > len(cells)
    return MiniCell(None, state, hues, len(hues), hashed, any(one.changed for one in cells))


def _grid(num_cells: int, width: int, height: int) -> tuple[int, int]:
    """Columns and pitch: the largest pitch at which all cells fit, in rows that are as even as can be."""
    for pitch in PITCHES:
        rows = max(ceil(num_cells / (width // pitch)), 1)
        if rows * pitch <= height:
            break
    return max(ceil(num_cells / rows), 1), pitch


def _runs(row: Sequence[MiniCell]) -> list[tuple[int, int]]:
    """Where neighbours changed: the first and how many."""
    runs, column = [], 0
    for changed, group in groupby(one.changed for one in row):
        length = sum(1 for _ in group)
        if changed:
            runs.append((column, length))
        column += length
    return runs
