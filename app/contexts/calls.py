"""The calls of `allocate_slots` in a step, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from app.contexts.glossary import Meaning
from app.contexts.moment import BarPart, Words


@dataclass(frozen=True, slots=True)
class Term:
    """A number over its name in a formula; `sign` stands before it: "", +, −, ≤, >, =."""

    sign: str
    value: int
    name: str
    word: str
    """The key of its meaning in the glossary."""
    wrong: bool = False
    """The part of a test that does not fit."""
    blocks: tuple[int, ...] = ()
    """The blocks that it counts, where they have ids."""


@dataclass(frozen=True, slots=True)
class Chip:
    """A block in the call panel."""

    block: int
    hashed: bool
    hit: bool
    changed: bool
    numbers: tuple[int, ...]
    """Its holders now, two at most, the longest holder first."""
    filled: float = 1.0
    """The share of it that holds tokens."""
    evicted: bool = False
    """It lost its hash when it was handed out."""


@dataclass(frozen=True, slots=True)
class ChipRow:
    """Blocks with one caption; of more than 16 the first and last 8 are listed, `folded` are between."""

    chips: tuple[Chip, ...]
    folded: int
    caption: str


@dataclass(frozen=True, slots=True)
class UnitPart:
    """A part of a test's bar, in blocks; `kind`: idle (hits in the free queue), new, watermark, reserved."""

    kind: str
    blocks: int
    name: str


@dataclass(frozen=True, slots=True)
class UnitBar:
    """A test in blocks: what is asked, up against what is free."""

    parts: tuple[UnitPart, ...]
    free: int
    """The mark that must not be passed."""
    verdict: str
    """ "fits, 18 to spare" or "21 more free blocks needed"."""


@dataclass(frozen=True, slots=True)
class Formula:
    """Terms in one row; `label` names the group where there are several."""

    label: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a call: gate, release, count, check, touch, pop, hash or return."""

    name: str
    title: str
    about: str
    """A few quiet words beside the title."""
    side: str
    """The fact at the right: "8 touched"; "" if there is none."""
    is_test: bool
    ran: bool
    passed: bool | None
    """Of a test that ran."""
    formulas: tuple[Formula, ...]
    bar: UnitBar | None
    rows: tuple[ChipRow, ...]
    note: str
    meanings: tuple[Meaning, ...]
    """Of the stage itself, then of the names in its formulas and its bar."""


@dataclass(frozen=True, slots=True)
class Next:
    """What a refusal leads to."""

    head: str
    """ "Waiting pass: admission stops"."""
    sentences: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A group's blocks beneath the tokens of a call: so many entries held before, taken by the call, and in all."""

    label: str
    block_size: int
    total: int
    num_old: int
    num_new: int
    old: tuple[Chip, ...]
    new: tuple[Chip, ...]
    """Both empty where there are too many to be drawn one by one."""
    ids: bool
    """Whether an id fits into a block."""


@dataclass(frozen=True, slots=True)
class LayoutTick:
    """Parts of length 0, as "comp 0, new_comp 0", and where they would stand in the panel, 0 to 1."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Call:
    """One `allocate_slots` call, told whole."""

    index: int
    request: str
    number: int
    granted: bool
    verdict: Words
    detail: str
    """The second sentence: where the numbers come from."""
    layout: tuple[BarPart, ...]
    """comp, new_comp, ext_comp, new, lookahead (always all five, in tokens), then later."""
    ticks: tuple[LayoutTick, ...]
    meanings: tuple[Meaning, ...]
    """Of the parts of the layout."""
    rows: tuple[LayoutRow, ...]
    """The blocks beneath the layout, a row a group."""
    stages: tuple[Stage, ...]
    next: Next | None
    """None when granted."""


@dataclass(frozen=True, slots=True)
class CallTab:
    """A call in one word: `takes` is "13" (blocks that left the free queue) or "None"."""

    index: int
    request: str
    number: int
    takes: str
    granted: bool
    told: bool
    """Whether it is among `Calls.calls`."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of this step in call order. Of many only the chosen one is told whole; another is asked for."""

    tabs: tuple[CallTab, ...]
    calls: tuple[Call, ...]
    chosen: int
    """Index (`Call.index`) of the one to show first: refused, or taking most; -1 if there is no call."""
    note: str
    """A sentence when there is no call; "" otherwise."""
    last: str | None
    """Without a call: the query of the last step that made one."""
