"""A scenario as text for people: one action a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping


def laid_out(written: Mapping[str, object], *, ascii_only: bool = False) -> str:
    """The JSON of a scenario, in its own order of keys."""

    def told(value: object) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)

    return "{\n" + ",\n".join(f"  {told(key)}: {_value(key, value, told)}" for key, value in written.items()) + "\n}"


def _value(key: str, value: object, told: Callable[[object], str]) -> str:
    if key != "actions" or not isinstance(value, list) or not value:
        return told(value)
    lines = ",\n".join(f"    {told(action)}" for action in value)
    return f"[\n{lines}\n  ]"
