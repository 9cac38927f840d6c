"""Where in a JSON text something stands that an error names: a path such as `actions[3].prompt[0].tokens`, or a line.

The errors of `engine.strict_json` and of all that reads a scenario name places in these two ways. A path that leads
further than the text does (what is missing, a value that stands for its default) ends at the last thing that is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecoder
from typing import Final

from engine.strict_json import join

KEY_ERRORS: Final = frozenset({"unknown_key", "duplicate_key"})
"""Codes of errors that are about a key, not about what stands behind it."""
MOST_LEVELS: Final = 6
"""How deep a scenario goes at the most."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE: Final = re.compile(r"line (\d{1,9}), column (\d{1,9})\Z")
_INDEX: Final = re.compile(r"\[(\d{1,9})\]")
_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]', re.S)
# The text was read strictly before; here only lengths matter, so that numbers need not fit.
_skip: Final = JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of one line. `start` and `end` are offsets in characters; line and column count from 1."""

    start: int
    end: int
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class _Node:
    """A value in the text, and the key in front of it (an empty stretch in a list)."""

    path: str
    key: tuple[int, int]
    value: tuple[int, int]


class Places:
    """Finds places in one text; what was looked through once isn't again."""

    def __init__(self, text: str) -> None:
        """Places in `text`, strict JSON where paths are asked for."""
        self.text = text
        self._known: dict[int, list[_Node]] = {}
        """Where a list or an object starts -> what it holds."""

    def find(self, where: str, code: str = "") -> Mark | None:
        """The stretch of the text that an error at `where` is about; None where the whole text is meant.

        `code`: the error's; some are about a key, and a duplicate one is marked where it comes again.
        """
        text = self.text
        if match := _LINE.match(where):
            start = _start_of_line(text, int(match[1])) + int(match[2]) - 1
            return _mark(text, min(start, len(text)), start + 1)
        if not where:
            deep = _too_deep(text) if code.startswith("malformed") else None
            return None if deep is None else _mark(text, deep, deep + 1)
        try:
            node = self._node_at(where, nth=2 if code == "duplicate_key" else 1)
        except (ValueError, IndexError, RecursionError):  # not JSON after all
            return None
        if not node.path:
            return None
        is_key = code in KEY_ERRORS and node.path == where
        return _mark(text, *(node.key if is_key else node.value))

    def _node_at(self, where: str, nth: int) -> _Node:
        """The value at a path, or the last one on the way there. `nth`: which of several equal keys is meant."""
        start = _end_of_space(self.text, 0)
        found = _Node("", (start, start), (start, start))
        while found.path != where:
            child = self._towards(found, where, nth)
            if child is None:
                break
            found = child
        return found

    def _towards(self, node: _Node, where: str, nth: int) -> _Node | None:
        """The child through which the path goes on."""
        children = self._children(node)
        if self.text[node.value[0]] == "[":
            if index := _INDEX.match(where, len(node.path)):
                return children[int(index[1])] if int(index[1]) < len(children) else None
            if len(children) == 1 and where[len(node.path)] == ".":
                # A prompt of one part is named as if it were written without a list.
                return _Node(node.path, children[0].key, children[0].value)
            return None
        same = [child for child in children if child.path == where]
        if same:
            return same[min(nth, len(same)) - 1]
        return next((one for one in children if where.startswith(one.path) and where[len(one.path)] in ".["), None)

    def _children(self, node: _Node) -> list[_Node]:
        start = node.value[0]
        if start not in self._known:
            self._known[start] = list(_children_of(self.text, node))
        return self._known[start]


def find_place(text: str, where: str, code: str = "") -> Mark | None:
    """One place in a text, as `Places.find` tells it."""
    return Places(text).find(where, code)


def line_at(text: str, line: int) -> str:
    """A line of the text, counted from 1, without its end."""
    start = _start_of_line(text, line)
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end]


def _mark(text: str, start: int, end: int) -> Mark:
    """The stretch as far as its line goes, and at least one character of it where there is one."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    return Mark(start, min(end, line_end), text.count("\n", 0, start) + 1, start - line_start + 1)


def _start_of_line(text: str, line: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if not start:
            return len(text)
    return start


def _too_deep(text: str) -> int | None:
    """The first bracket that is deeper than a scenario goes."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > MOST_LEVELS:
                return match.start()
        elif match[0] in "]}":
            depth -= 1
    return None


def _children_of(text: str, node: _Node) -> Iterator[_Node]:
    """What an object or a list holds, in the order of the text."""
    start = node.value[0]
    if text[start] not in "[{":
        return
    is_object, index = text[start] == "{", 0
    at = _end_of_space(text, start + 1)
    while text[at] not in "]}":
        key = (at, at)
        path = f"{node.path}[{index}]"
        if is_object:
            name, end = _skip(text, at)
            key, path = (at, end), join(node.path, name)
            at = _end_of_space(text, _end_of_space(text, end) + 1)  # behind the colon
        end = _skip(text, at)[1]
        yield _Node(path, key, (at, end))
        at, index = _end_of_space(text, end), index + 1
        if text[at] == ",":
            at = _end_of_space(text, at + 1)


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
