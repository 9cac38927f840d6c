"""The gallery: stories with miniatures of their pools, the lesson, the blank session."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MiniCell:
    """A block of a pool drawn small, or a slice of neighbours in a large pool.

    `state`: empty, cached, held or shared.
    """

    block: int | None
    """Its id; None for a slice."""
    state: str
    hues: tuple[int, ...] = ()
    """1 to 8, of at most two holders, the longest holder first."""
    owners: int = 0
    hashed: bool = False
    changed: bool = False
    lost: bool = False
    """It lost its hash in this step."""


@dataclass(frozen=True, slots=True)
class Miniature:
    """A pool at one moment, without the null block: rows of equal length but for the last one."""

    rows: tuple[tuple[MiniCell, ...], ...]
    pitch: int
    """Pixels from cell to cell."""
    rings: tuple[tuple[int, int, int], ...]
    """Row, first column and length of each run of changed cells."""
    alt: str
    """What it shows, in a sentence."""


@dataclass(frozen=True, slots=True)
class StoryCard:
    """A story in the gallery; `href` leads to the moment that the miniature shows."""

    slug: str
    topic: str
    key: str
    """Of its topic."""
    title: str
    story: str
    href: str
    size: str
    """ "101 blocks of 16"."""
    miniature: Miniature
    shown: bool
    """Whether it belongs to the chosen topic."""


@dataclass(frozen=True, slots=True)
class TopicLink:
    """A topic to choose, or all of them."""

    name: str
    key: str
    """In the address: "prefix-cache"; "" for all."""
    stories: int
    chosen: bool


@dataclass(frozen=True, slots=True)
class CallPart:
    """A part of the lesson's token bar; `kind`: new_comp, new or later."""

    kind: str
    tokens: int
    start: int
    """Tokens before it."""


@dataclass(frozen=True, slots=True)
class CallStop:
    """A stage on the lesson's path, with its number: "17 + 5 ≤ 40"."""

    title: str
    number: str
    is_test: bool


@dataclass(frozen=True, slots=True)
class CallPicture:
    """The call that the lesson is about: its tokens, its table, its path."""

    request: str
    hue: int
    parts: tuple[CallPart, ...]
    ticks: tuple[tuple[str, int], ...]
    """The parts of length 0 by name, with the tokens before them."""
    tokens: int
    block_size: int
    cells: tuple[MiniCell, ...]
    hits: int
    """The first so many cells are prefix cache hits, the others new."""
    filled: int
    """Tokens in the last cell."""
    path: tuple[CallStop, ...]


@dataclass(frozen=True, slots=True)
class GalleryContext:
    """gallery.html."""

    lesson: StoryCard
    picture: CallPicture
    blank: Miniature
    topics: tuple[TopicLink, ...]
    cards: tuple[StoryCard, ...]
