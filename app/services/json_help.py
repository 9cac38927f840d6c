"""What was probably meant where a text is not JSON, or not a scenario."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Final

SCENARIO: Final = "a scenario: an object with version, config and actions"
_QUOTES: Final = frozenset("'`\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}") | frozenset(
    "\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}"
)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERALS: Final = {"true": "true", "false": "false", "none": "null", "null": "null", "undefined": "null"}
_COMMA_AND_END: Final = re.compile(r",\s*[]}]")


def what_would_be_right(text: str, at: int) -> str:
    """What to write at an offset where a JSON reader gave up, in words."""
    char, before = text[at : at + 1], text[:at].rstrip()[-1:]
    if not text[at:].strip():
        return "the end of what was opened: a quote or a bracket is not closed"
    if char in _QUOTES:
        return 'texts in "straight double quotes"'
    if char in "/#":
        return "no comment: JSON has none"
    if _COMMA_AND_END.match(text, at) or (char in "]}" and before == ","):
        return "no comma before a closing bracket"
    if char in "\n\t\r" or (char < " " and char):
        return r"no line break and no tab inside a text: write \n or \t"
    if before and before not in "{[,:" and char in '"{[0123456789-':
        return "a colon after a key, a comma after a value"
    if word := _WORD.match(text, at):
        literal = _LITERALS.get(word[0].lower())
        return literal if literal else 'keys and texts in "double quotes"'
    return "strict JSON"


def what_it_is(text: str) -> tuple[str, str] | None:
    """What a text is that was taken for a scenario, and what would be right; None where nothing is known of it."""
    start = text.lstrip()
    if not start:
        return "There is nothing in it.", SCENARIO
    if start.startswith(("http:", "https:")):
        return "This is a link, not a scenario.", "to open it in the browser's address bar"
    if start[0] == "<":
        return "This is a page, not a scenario.", SCENARIO
    try:
        first, end = JSONDecoder(parse_int=str).raw_decode(start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(first, dict):
        return None
    if {"action", "do", "state"} <= first.keys():
        return (
            "These are records: what a scenario did, not the scenario itself.",
            "the scenario that they were made from",
        )
    if "scenario" in first and "actions" not in first and not start[end:].strip():
        return 'This holds a scenario beside other things: it stands behind the key "scenario".', "that part alone"
    return None
