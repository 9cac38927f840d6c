"""A scenario as the text of a file: one action a line, so that a line is what an error, a link or a diff is about."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

MOST_CHARACTERS = 110
"""Of a config on one line; a longer one has an option a line."""


def layout(scenario: Mapping[str, object], *, ascii_only: bool = False) -> str:
    """A scenario with one action a line. Ends without a line break.

    Args:
        scenario: its JSON; `actions` is a list.
        ascii_only: write everything else as escapes.
    """

    def compact(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    lines = [f"  {compact(key)}: {_value(value, key, compact)}" for key, value in scenario.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _value(value: object, key: str, compact: Callable[[object], str]) -> str:
    if key == "actions" and isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {compact(action)}" for action in value) + "\n  ]"
    line = compact(value)
    if key == "config" and isinstance(value, dict) and len(line) > MOST_CHARACTERS:
        options = (f"    {compact(name)}: {compact(option)}" for name, option in value.items())
        return "{\n" + ",\n".join(options) + "\n  }"
    return line
