"""Two branches side by side."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.contexts.glossary import MeaningGroup
from app.contexts.moment import Words


@dataclass(frozen=True, slots=True)
class Marked:
    """Words on one side of the comparison; `differs`: the other side says something else."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    """A request that lives on either side, as it is on this one. Neighbours that differ share one ring."""

    id: str
    number: int
    """The same on both sides."""
    what: tuple[Marked, ...]
    """What it is, and what the action did to it: "running", "100 tokens scheduled"."""
    size: tuple[Marked, ...]
    """Its tokens and its blocks."""
    tables: tuple[Marked, ...]
    """Its block table of each group in words."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that the two configs differ in, as vLLM spells it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two branches at its moment."""

    id: str
    letter: str
    """ "A" or "B"."""
    name: str
    query: str
    """To this moment in the workspace."""
    doing: Marked
    over: str
    """ "ends after 70" where it ends before the moment that is compared; "" otherwise."""
    settings: tuple[Setting, ...]
    usage: Marked
    pool: str
    free: Marked
    order: tuple[Marked, ...]
    """The free queue in words."""
    requests: tuple[ComparedRequest, ...]


@dataclass(frozen=True, slots=True)
class AspectRow:
    """What the two may differ in, as a number of each."""

    key: str
    name: str
    about: str
    """What is counted."""
    a: str
    b: str
    differs: bool


@dataclass(frozen=True, slots=True)
class CompareContext:
    """compare.html; compare_frame.html, where htmx asks for another moment."""

    title: str
    base: str
    """The session's id."""
    a: Side
    b: Side
    at: int
    end: int
    """Of the longer one."""
    doing: str
    first: str | None
    back: str | None
    forward: str | None
    last: str | None
    parting: Words
    """The first difference in a sentence."""
    here: str
    """What differs at this moment, in a sentence."""
    parting_query: str | None
    next_difference: str | None
    """The query of the next moment in which the two do different things."""
    swapped: str
    """The query with the two sides changed over."""
    blocks_differ: str
    """ "33 blocks differ", "the same"."""
    aspects: tuple[AspectRow, ...]
    over: tuple[AspectRow, ...]
    """The same of what is drawn over time."""
    more: str
    """What is said of requests that are not listed; "" where all are."""
    glossary: tuple[MeaningGroup, ...]
    data: Markup
    """What the pictures are drawn from, as JSON that may stand in a script element."""
