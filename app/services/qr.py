"""A QR code of a link, to show on a wall: as SVG path data that a template draws in any colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import segno

QUIET: Final = 4
"""Modules left white on every side, as readers need."""
MAX_BYTES: Final = 1_200
"""The longest link: 117 modules a side, about the most that a phone reads well off a wall."""


@dataclass(frozen=True, slots=True)
class QrCode:
    """A QR code. Draw `<path d="{path}"/>` in a `viewBox="0 0 {size} {size}"`, dark on a light ground."""

    path: str | None
    """Each run of dark modules in a row as a rectangle one high; None if there is no code."""
    size: int
    """Modules a side, with the quiet zone; 0 if there is no code."""
    reason: str = ""
    """Why there is no code."""


def qr_code(url: str) -> QrCode:
    """The code of a link as an SVG path, or why there is none."""
    rows = qr_matrix(url)
    if rows is None:
        size = len(url.encode("utf-8"))
        return QrCode(None, 0, f"The link has {size} bytes; a code that phones can read holds {MAX_BYTES}.")
    path = "".join(run for y, row in enumerate(rows) for run in _runs(row, y))
    return QrCode(path, len(rows) + 2 * QUIET)


def qr_matrix(url: str) -> list[list[bool]] | None:
    """The modules row by row, without the quiet zone, True is dark; None if the link is too long."""
    if len(url.encode("utf-8")) > MAX_BYTES:
        return None
    return [[bool(module) for module in row] for row in segno.make_qr(url, error="l").matrix]


def _runs(row: list[bool], y: int) -> list[str]:
    """The dark runs of a row as closed rectangles."""
    runs: list[str] = []
    start: int | None = None
    for x, dark in enumerate([*row, False]):
        if dark and start is None:
            start = x
        elif not dark and start is not None:
            runs.append(f"M{start + QUIET} {y + QUIET}h{x - start}v1h{start - x}z")
            start = None
    return runs
