"""What the words on the page mean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Meaning:
    """A word and one plain sentence about it; `key` names it in addresses: `words#word-idle-hits`."""

    key: str
    name: str
    sentence: str
    is_code: bool = False
    """Spelled as in vLLM's code."""


@dataclass(frozen=True, slots=True)
class MeaningGroup:
    """Words that belong together."""

    title: str
    meanings: tuple[Meaning, ...]


@dataclass(frozen=True, slots=True)
class GlossaryContext:
    """words.html: all of them on a page of their own."""

    glossary: tuple[MeaningGroup, ...]
