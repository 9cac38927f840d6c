"""Two branches side by side."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one side of the comparison; `differs`: the other side has no such line."""

    text: str
    differs: bool
    number: int | None = None
    """The request that it is about."""
    request: str = ""


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One thing, on both sides."""

    title: str
    a: tuple[Line, ...]
    b: tuple[Line, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two branches: its name, its config, and where it stands."""

    id: str
    name: str
    summary: str
    label: str
    """ "after 6 of 15"."""
    doing: str
    query: str
    """To this moment in the workspace."""
    is_over: bool
    """It ends before the moment that is compared."""


@dataclass(frozen=True, slots=True)
class CompareContext:
    """compare.html."""

    title: str
    base: str
    """The session's id."""
    a: Side
    b: Side
    at: int
    end: int
    """Of the longer one."""
    first: str | None
    back: str | None
    forward: str | None
    last: str | None
    parting: str
    """The first difference in a sentence."""
    parting_query: str | None
    next_difference: str | None
    """The query of the next moment in which the two do different things."""
    swapped: str
    """The query with the two sides changed over."""
    rows: tuple[CompareRow, ...]
    series: Markup
    """Both branches' usage, waiting and running by moment, as JSON."""
