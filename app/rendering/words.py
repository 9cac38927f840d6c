"""Small pieces of English: counts, lists, ranges, and sentences in which requests are set apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from unicodedata import bidirectional

from app.contexts import Piece, Words
from app.rendering.moment import Moment
from app.services.errors import ServiceError
from engine.errors import InputError

MOST_NAMES = 12
MOST_RUNS = 6

FIRST_STRONG, POP_ISOLATE = "\u2068", "\u2069"
ISOLATES = frozenset("\u2066\u2067\u2068")
TURNING = frozenset({"R", "AL", "AN", "RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"})
"""Classes of letters that turn what stands beside them, or mark a direction."""


def count(number: int, noun: str, plural: str = "") -> str:
    """As "1 block", "2 blocks", "no blocks"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number or 'no'} {plural or noun + 's'}"


def free_then(blocks: int) -> str:
    """As "1 was free", "none was free", "22 were free"."""
    return f"{blocks or 'none'} {'were' if blocks > 1 else 'was'} free"


def all_usable(usable: int) -> str:
    """Why something never fits, as "not even all 100 usable blocks would be enough"."""
    if usable < 2:
        return "not even the only usable block would be enough" if usable else "this pool has no usable block"
    return f"not even all {usable} usable blocks would be enough"


def told(error: InputError | ServiceError) -> str:
    """What is wrong, and what would be right: whole sentences."""
    expected = f" Expected: {error.expected}." if error.expected else ""
    message = error.message if error.message.endswith((".", "?", "!")) else f"{error.message}."
    return f"{message[0].upper()}{message[1:]}{expected}"


def isolated(text: str) -> str:
    """What somebody wrote, as a part of a plain text: written from right to left or not, it turns no other word.

    Isolates that it opens are closed; marks that would close ours are left out.
    """
    if text.isascii() or not any(bidirectional(letter) in TURNING for letter in text):
        return text
    letters, depth = [], 0
    for letter in text:
        if letter == POP_ISOLATE and not depth:
            continue
        depth += (letter in ISOLATES) - (letter == POP_ISOLATE)
        letters.append(letter)
    return f"{FIRST_STRONG}{''.join(letters)}{POP_ISOLATE * (depth + 1)}"


def times(number: int) -> str:
    """As "once", "twice", "3 times"."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def runs(blocks: Sequence[int]) -> str:
    """Block ids in their order, runs drawn together: "67–73, 4"; many runs end in "and n more"."""
    parts: list[list[int]] = []
    for block in blocks:
        if parts and block == parts[-1][-1] + 1:
            parts[-1][-1:] = [parts[-1][-1], block] if len(parts[-1]) == 1 else [block]
        else:
            parts.append([block])
    words = [str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts[:MOST_RUNS]]
    listed = sum(part[-1] - part[0] + 1 for part in parts[:MOST_RUNS])
    left = len(blocks) - listed
    return ", ".join(words) + (f" and {left} more" if left else "")


def sentence(moment: Moment, text: str, *requests: str) -> Words:
    """The words of `text`, in which each `{}` is the next of the requests."""
    pieces: list[Piece] = []
    names = iter(requests)
    for place, part in enumerate(re.split(r"\{\}", text)):
        if place:
            pieces.append(name_of(moment, next(names)))
        if part:
            pieces.append(Piece(part))
    return tuple(pieces)


def name_of(moment: Moment, request: str) -> Piece:
    """A request's id as a piece of a sentence."""
    return Piece(request, moment.number(request))


def listed(moment: Moment, requests: Iterable[tuple[str, str]]) -> Iterator[Piece]:
    """As "holder 1, R 100": each request with a word behind it; of many the first ones."""
    every = list(requests)
    shown = every[:MOST_NAMES]
    for place, (request, word) in enumerate(shown):
        if place:
            yield Piece(", ")
        yield name_of(moment, request)
        if word:
            yield Piece(f" {word}")
    if len(every) > len(shown):
        yield Piece(f" and {len(every) - len(shown)} more")


def plain(words: Words) -> str:
    """A sentence as one string."""
    return "".join(piece.text if piece.number is None else isolated(piece.text) for piece in words)
