"""Whether a reader can see a text at all: a name that nobody sees is none."""

from __future__ import annotations

from typing import Final
from unicodedata import category

BLANKS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as nothing: fillers of Hangul, the empty pattern of Braille."""
VISIBLE: Final = frozenset("LMNPS")
"""The first letter of a character's category: letters, marks, numbers, punctuation, symbols."""


def is_visible(text: str) -> bool:
    """Whether any character of a text leaves a mark."""
    return any(category(one)[0] in VISIBLE and one not in BLANKS for one in text)
