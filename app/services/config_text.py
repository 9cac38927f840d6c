"""A config as the fields of a form, and back: texts by name, `groups.0.kind` for the first group's kind.

What is left empty takes the engine's default; a row of groups without a kind counts as none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from app.services.errors import BadValueError, ServiceError
from engine.config import EngineConfig, GroupConfig
from engine.config_options import Option
from engine.config_rules import SIZE_KEYS
from engine.errors import InputError
from engine.scenario import Limits

Errors = dict[str, InputError | ServiceError]
"""What is wrong, by the field that it stands beside."""

INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}\Z")
NUMBER: Final = re.compile(r"[-+]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,3})?\Z")
ROW: Final = re.compile(r"groups\.([0-9]{1,3})\.[a-z_]+\Z")
PLACE: Final = re.compile(r"config\.groups\[([0-9]+)\](?:\.([a-z_]+))?\Z")
OWN_DEFAULTS: Final = {"mamba_cache_mode", "num_speculative_blocks", "eagle"}
"""Options of a group that are left empty where they hold their default."""


def texts_of(config: EngineConfig) -> dict[str, str]:
    """The fields as they are filled in for a config."""
    texts = {name: _text(getattr(config, name)) for name in config.options() if name != "groups"}
    plain = GroupConfig("full_attention", config.block_size)
    for index, group in enumerate(config.groups):
        for name in group.options():
            value = getattr(group, name)
            is_default = name == "block_size" or name in OWN_DEFAULTS
            shown = "" if is_default and value == getattr(plain, name) else _text(value)
            texts[f"groups.{index}.{name}"] = shown
    return texts


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else ""
    return str(value)


def rows_of(typed: Mapping[str, str]) -> list[int]:
    """The numbers of the rows of groups that there are."""
    return sorted({int(match[1]) for name in typed if (match := ROW.match(name))})


def read_config(typed: Mapping[str, str], limits: Limits) -> tuple[EngineConfig | None, Errors]:
    """The config that was typed, or everything that is wrong with it."""
    errors: Errors = {}
    known = {name: option for name, option in EngineConfig.options().items() if name != "groups"}
    written = _read(typed, known, "", errors)
    if "num_blocks" not in written and "num_blocks" not in errors:
        errors["num_blocks"] = BadValueError("This is missing.", "num_blocks", known["num_blocks"].expected)
    groups, rows = _read_groups(typed, errors)
    if errors:
        return None, errors
    try:
        config = EngineConfig.from_json({**written, "groups": groups})
        limits.check_config(config)
    except InputError as error:
        return None, {_field_of(error, groups, rows): error}
    return config, {}


def _read_groups(typed: Mapping[str, str], errors: Errors) -> tuple[list[dict[str, Any]], list[int]]:
    """The groups as scenarios write them, and in which row each of them stands."""
    groups, rows = [], []
    for row in rows_of(typed):
        prefix = f"groups.{row}."
        if typed.get(f"{prefix}kind"):
            groups.append(_read(typed, GroupConfig.options(), prefix, errors))
            rows.append(row)
        elif any(typed.get(f"{prefix}{name}", "").strip() for name in GroupConfig.options()):
            expected = "a kind, or nothing in this row"
            errors[f"{prefix}kind"] = BadValueError("A group needs a kind.", f"{prefix}kind", expected)
    return groups, rows


def _read(typed: Mapping[str, str], known: Mapping[str, Option], prefix: str, errors: Errors) -> dict[str, Any]:
    """Every field that isn't empty, checked by itself."""
    written: dict[str, Any] = {}
    for name, option in known.items():
        text = typed.get(f"{prefix}{name}", "").strip()
        if option.type == "boolean":
            if text or not prefix:
                written[name] = bool(text)
        elif text:
            try:
                written[name] = option.read(_value(text, option), f"{prefix}{name}")
            except InputError as error:
                errors[f"{prefix}{name}"] = error
    return written


def _value(text: str, option: Option) -> object:
    """What a text stands for; one that is no number stays a text, which the option refuses."""
    if option.type == "integer" and INTEGER.match(text):
        return int(text)
    if option.type == "number" and NUMBER.match(text):
        return float(text)
    return text


def _field_of(error: InputError, groups: list[dict[str, Any]], rows: list[int]) -> str:
    """The field that an error of the engine belongs to."""
    match = PLACE.match(error.where)
    if match is None:
        place = error.where.removeprefix("config.").removeprefix("config")
        return f"groups.{rows[0] if rows else 0}.kind" if place == "groups" else place
    index = int(match[1])
    name = match[2]
    if name is None:
        # Either a length is missing, or the group can't be an EAGLE one.
        kind = str(groups[index].get("kind"))
        name = SIZE_KEYS.get(kind, "kind") if error.code == "missing_key" else "eagle"
    return f"groups.{rows[index]}.{name}"


def without_null(error: InputError | ServiceError) -> InputError | ServiceError:
    """The same error for a reader of the form, where null is an empty field."""
    if not isinstance(error, InputError):
        return error
    expected = re.sub(r"\bnull\b", "an empty field", error.expected)
    return type(error)(error.code, error.message, error.where, expected)
