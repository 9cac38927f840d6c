"""What if: the knobs that one click turns, what each is now, and what it is turned to at first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from app.contexts import Variant
from app.services.errors import BadValueError
from engine.config import POLICIES, EngineConfig

KNOBS: Final = {
    "watermark": "watermark",
    "scheduler_reserve_full_isl": "gate (whole prompt must fit)",
    "block_size": "block size",
    "max_num_batched_tokens": "token budget",
    "policy": "policy",
    "num_blocks": "blocks",
}
"""The config's option and what it is called here, the five that are turned most often first. What stands in brackets is
left out of a branch's name."""

SWITCH: Final = ("on", "off")


def variants(config: EngineConfig) -> tuple[Variant, ...]:
    """The knobs for this config."""
    return tuple(_variant(config, knob, label) for knob, label in KNOBS.items())


def _variant(config: EngineConfig, knob: str, label: str) -> Variant:
    value = getattr(config, knob)
    if isinstance(value, bool):
        return Variant(knob, label, SWITCH[not value], SWITCH[value], SWITCH)
    if isinstance(value, str):
        other = next(policy for policy in POLICIES if policy != value)
        return Variant(knob, label, value, other, POLICIES)
    if isinstance(value, float):
        return Variant(knob, label, f"{value:g}", "0" if value else "0.1")
    return Variant(knob, label, str(value), str(value // 2 or 1) if knob.startswith("max") else str(value * 2))


def varied(config: EngineConfig, knobs: Mapping[str, object]) -> tuple[EngineConfig, str]:
    """The config with some knobs turned, and a name for the branch that runs on it.

    `knobs`: options with their values, as JSON has them or as they were typed.

    Raises:
        ScenarioError, ConfigError: an impossible value.
        BadValueError: no knob at all.
    """
    known = EngineConfig.options()
    turned = {knob: _read(value) for knob, value in knobs.items() if knob in known}
    if not turned:
        raise BadValueError("Nothing is varied.", "config", f"one of {', '.join(KNOBS)}")
    name = ", ".join(f"{KNOBS.get(knob, knob).partition(' (')[0]} {_shown(value)}" for knob, value in turned.items())
    return EngineConfig.from_json({**config.to_json(), **turned}), name[:60]


def _read(value: object) -> object:
    """A value as it was typed, as JSON has it."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text in SWITCH:
        return text == "on"
    try:
        number: object = json.loads(text)
    except ValueError:
        return text
    return number if isinstance(number, (int, float)) else text


def _shown(value: object) -> str:
    return SWITCH[not value] if isinstance(value, bool) else str(value)
