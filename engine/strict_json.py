"""JSON read strictly: what a lenient reader lets pass is refused here, with its place.

`loads` refuses duplicate keys, NaN and Infinity, numbers too large to hold, lone surrogates, bad UTF-8, a byte order
mark and nesting that is too deep. The readers below it (`whole_number`, `text`) refuse values of the wrong type: `true`
is not a number and 1.0 is not a whole one.
"""

import json
import math
import re
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from engine.errors import ScenarioError, shown

MAX_INT: Final = 2**63 - 1
"""The largest number that a scenario may hold."""

_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class _Refused:
    """Stands in the parsed value where something must be refused, until its path is known."""

    __slots__ = ("code", "expected", "message")

    def __init__(self, code: str, message: str, expected: str) -> None:
        self.code = code
        self.message = message
        self.expected = expected


def loads(text: str | bytes) -> object:
    """Parses one JSON value.

    Raises:
        ScenarioError: anything that isn't strict JSON, with line and column or the path.
    """
    source = _decode(text) if isinstance(text, bytes) else text
    if source.startswith("\ufeff"):
        _malformed("the text starts with a byte order mark", "line 1, column 1", "UTF-8 without one")
    refused: list[_Refused] = []
    try:
        value: object = json.loads(source, **_hooks(refused))
    except json.JSONDecodeError as error:
        what = "the text is empty" if not source.strip() else f"not JSON: {error.msg}"
        _malformed(what, f"line {error.lineno}, column {error.colno}", "strict JSON")
    except RecursionError:
        _malformed("the JSON is nested too deeply", "", "a scenario, which is at most 6 levels deep")
    if refused or _SURROGATE_ESCAPE.search(source) or not _encodes(source):
        _raise_first(value)
    return value


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        _malformed("not UTF-8 text", f"byte {error.start}", "JSON in UTF-8")


def _malformed(message: str, where: str, expected: str) -> NoReturn:
    raise ScenarioError("malformed_json", message, where, expected) from None


def _encodes(text: str) -> bool:
    """True if `text` has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _hooks(refused: list[_Refused]) -> dict[str, Any]:
    """Hooks for `json.loads` that put a `_Refused` where something is wrong and note it in `refused`."""

    def refuse(code: str, message: str, expected: str) -> _Refused:
        refused.append(_Refused(code, message, expected))
        return refused[-1]

    def constant(word: str) -> object:
        return refuse("malformed_json", f"{word} is not JSON", "a finite number")

    def integer(digits: str) -> object:
        if len(digits) <= 20 and abs(number := int(digits)) <= MAX_INT:
            return number
        count = len(digits.lstrip("-"))
        return refuse("number_too_large", f"a number of {count} digits is too large", f"at most {MAX_INT}")

    def fraction(digits: str) -> object:
        number = float(digits)
        return (
            number
            if math.isfinite(number)
            else refuse("number_too_large", f"{shown(digits)[1:-1]} is too large", "a finite number")
        )

    def pairs(items: list[tuple[str, object]]) -> object:
        found: dict[str, object] = {}
        for key, value in items:
            double = key in found
            found[key] = (
                refuse("duplicate_key", f"the key {shown(key)} is there twice", "each key once") if double else value
            )
        return found

    return {"parse_constant": constant, "parse_int": integer, "parse_float": fraction, "object_pairs_hook": pairs}


def _raise_first(value: object) -> None:
    """Raises what `value` holds that must be refused: a `_Refused` or a lone surrogate; nothing if there is none."""
    for where, item in _walk(value):
        if isinstance(item, _Refused):
            raise ScenarioError(item.code, item.message, where, item.expected)
        if isinstance(item, str) and not _encodes(item):
            raise _surrogate(item, where)


def _walk(value: object) -> Iterator[tuple[str, object]]:
    """Every value and key below `value` with its path, in the order of the text."""
    stack: list[tuple[str, object]] = [("", value)]
    while stack:
        where, item = stack.pop()
        yield where, item
        if isinstance(item, list):
            stack.extend((f"{where}[{i}]", item[i]) for i in range(len(item) - 1, -1, -1))
        elif isinstance(item, dict):
            for key in reversed(item):
                stack.append((join(where, key), item[key]))
                stack.append((where, key))


def _surrogate(value: str, where: str) -> ScenarioError:
    return ScenarioError("lone_surrogate", f"{shown(value)} has half of a surrogate pair", where, "whole characters")


def join(where: str, key: str) -> str:
    """The path of `key` in the object at `where`."""
    if not _PLAIN_KEY.match(key) or len(key) > 60:
        return f"{where}[{shown(key)}]"
    return f"{where}.{key}" if where else key


def wrong_type(value: object, where: str, expected: str) -> ScenarioError:
    """The error for a value of another JSON type than `expected`."""
    return ScenarioError("wrong_type", f"got {shown(value)}", where, expected)


def record(value: object, where: str, known: Collection[str], required: Collection[str] = ()) -> dict[str, object]:
    """`value` as an object with only `known` keys and all `required` ones."""
    if not isinstance(value, dict):
        raise wrong_type(value, where, "an object")
    for key in value:
        if not isinstance(key, str) or key not in known:
            raise ScenarioError(
                "unknown_key", f"unknown key {shown(key)}", join(where, str(key)), _key_like(key, known)
            )
    for key in required:
        if key not in value:
            raise ScenarioError("missing_key", f'the key "{key}" is missing', where, f'"{key}" to be given')
    return value


def _key_like(key: str, known: Collection[str]) -> str:
    """The known key that was probably meant, or all of them."""
    close = get_close_matches(key[:60], known, n=1)
    return f'"{close[0]}"' if close else "one of " + ", ".join(known)


def array(value: object, where: str, of: str) -> list[object]:
    """`value` as a list; `of` says in words what it holds."""
    if not isinstance(value, list):
        raise wrong_type(value, where, f"a list of {of}")
    return value


def whole_number(value: object, where: str, minimum: int = -MAX_INT, maximum: int = MAX_INT) -> int:
    """`value` as a whole number in `minimum..maximum`; neither `true` nor 1.0 is one."""
    expected = numbers_in_words(minimum, maximum)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(value, where, expected)
    if abs(value) > MAX_INT:
        raise ScenarioError("number_too_large", f"{shown(value)} is too large", where, expected)
    if not minimum <= value <= maximum:
        raise ScenarioError("out_of_range", f"{value} is out of range", where, expected)
    return value


def numbers_in_words(minimum: int | None, maximum: int | None) -> str:
    """A range of whole numbers in words."""
    low = None if minimum is None or minimum == -MAX_INT else minimum
    high = None if maximum is None or maximum == MAX_INT else maximum
    if low is None:
        return "a whole number" if high is None else f"a whole number up to {high}"
    return f"a whole number from {low}" if high is None else f"a whole number from {low} to {high}"


def number(value: object, where: str) -> float:
    """`value` as a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type(value, where, "a number")
    if isinstance(value, int):
        whole_number(value, where)
    elif not math.isfinite(value):
        raise wrong_type(value, where, "a finite number")
    return float(value)


def flag(value: object, where: str) -> bool:
    """`value` as a bool."""
    if not isinstance(value, bool):
        raise wrong_type(value, where, "true or false")
    return value


def text(value: object, where: str, minimum: int = 0, maximum: int = MAX_INT) -> str:
    """`value` as a text of `minimum..maximum` characters without lone surrogates."""
    if not isinstance(value, str):
        raise wrong_type(value, where, "a text")
    if not _encodes(value):
        raise _surrogate(value, where)
    if not minimum <= len(value) <= maximum:
        size = f"{minimum} to {maximum}" if minimum else f"at most {maximum}"
        is_what = f"a text of {len(value)} characters is too long" if value else "the text is empty"
        raise ScenarioError("out_of_range", is_what, where, f"{size} characters" if maximum < MAX_INT else "a text")
    return value
