"""KV-cache groups in words: by what they attend to, and by their id where that doesn't tell them apart."""

from __future__ import annotations

from typing import Final

from engine.config import EngineConfig

NAMES: Final = {
    "full_attention": ("full attention", "full"),
    "sliding_window": ("sliding window", "window"),
    "chunked_local_attention": ("chunked local", "chunked"),
    "mamba": ("Mamba", "Mamba"),
}
"""Kind -> its name, and a short one."""


def group_name(config: EngineConfig, group: int) -> str:
    """As "sliding window", or "sliding window (group 2)" where several groups are of this kind."""
    name = NAMES[config.groups[group].kind][0]
    return f"{name} (group {group})" if _is_one_of_many(config, group) else name


def short_name(config: EngineConfig, group: int) -> str:
    """As "window", or "window 2" where several groups are of this kind."""
    name = NAMES[config.groups[group].kind][1]
    return f"{name} {group}" if _is_one_of_many(config, group) else name


def in_group(config: EngineConfig, group: int) -> str:
    """As ", sliding window"; nothing where there is only one group."""
    return f", {group_name(config, group)}" if len(config.groups) > 1 else ""


def names_of(config: EngineConfig, groups: tuple[int, ...]) -> str:
    """Several groups that are told together, as "sliding window (groups 1, 2)"."""
    if len(groups) == 1:
        return group_name(config, groups[0])
    return f"{NAMES[config.groups[groups[0]].kind][0]} (groups {', '.join(map(str, groups))})"


def _is_one_of_many(config: EngineConfig, group: int) -> bool:
    kind = config.groups[group].kind
    return sum(other.kind == kind for other in config.groups) > 1
