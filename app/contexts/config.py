"""The config form."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConfigField:
    """One option: what stands in its field, its sentence, vLLM's own flag, and what is wrong."""

    name: str
    """Of the field: the option's, in a group `groups.0.block_size`."""
    label: str
    """The option's own name."""
    kind: str
    """number, choice or checkbox (value "on" or "")."""
    value: str
    choices: tuple[str, ...]
    """Of a choice; the first one may be "", which takes the default."""
    usual: str
    """What an empty field stands for, in words; "" where it can't be empty."""
    hint: str
    flag: str
    """ "" where vLLM has none for it."""
    error: str = ""
    kinds: tuple[str, ...] = ()
    """The kinds of group that it has a meaning for; empty: all."""


@dataclass(frozen=True, slots=True)
class ConfigSection:
    """Options that belong together."""

    title: str
    fields: tuple[ConfigField, ...]


@dataclass(frozen=True, slots=True)
class ConfigGroup:
    """A row of a group's options; a spare one has no kind yet."""

    row: int
    spare: bool
    fields: tuple[ConfigField, ...]


@dataclass(frozen=True, slots=True)
class ConfigContext:
    """config.html: every option of a config, to make a session with it."""

    title: str
    """Of the session whose config it starts from."""
    back: str
    """The relative URL of that session."""
    at: int
    num_actions: int
    sections: tuple[ConfigSection, ...]
    groups: tuple[ConfigGroup, ...]
    keep: ConfigField
    """Whether the new session gets the same actions."""
    error: str
    """What belongs to no field."""
    wrong: int
    """How many fields are wrong."""
