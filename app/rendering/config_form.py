"""The config form: every option of the engine in its section, with its sentence and vLLM's own flag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.contexts import ConfigContext, ConfigField, ConfigGroup, ConfigSection
from app.rendering.words import count, told
from app.services.config_text import Errors, rows_of, without_null
from engine.config import EngineConfig, GroupConfig
from engine.config_options import Option, defaults_of

SECTIONS: Final = {
    "Pool": ("num_blocks", "block_size", "watermark", "needs_kv_cache_zeroing"),
    "Step": (
        "max_model_len",
        "max_num_batched_tokens",
        "max_num_seqs",
        "enable_chunked_prefill",
        "long_prefill_token_threshold",
        "policy",
        "scheduler_reserve_full_isl",
    ),
    "Prefix cache": (
        "enable_prefix_caching",
        "prefix_caching_hash_algo",
        "hash_block_size",
        "prefix_cache_retention_interval",
    ),
    "Drafts": ("num_speculative_tokens", "num_lookahead_tokens", "use_eagle"),
}
"""Title -> options; `groups` has rows of its own."""
SPARE_ROWS: Final = 3


def config_form(
    typed: Mapping[str, str], errors: Errors, *, title: str, back: str, at: int, num_actions: int
) -> ConfigContext:
    """The form with what was typed and what is wrong with it."""
    words = {name: told(without_null(error)) for name, error in errors.items()}
    options, defaults = EngineConfig.options(), defaults_of(EngineConfig)
    sections = tuple(
        ConfigSection(name, tuple(_field(option, options[option], defaults, "", typed, words) for option in section))
        for name, section in SECTIONS.items()
    )
    groups = _groups(typed, words)
    keep = ConfigField(
        "keep",
        "the same actions",
        "checkbox",
        typed.get("keep", ""),
        (),
        "",
        f"Replay the {count(num_actions, 'action')} of this session on the new config."
        if num_actions
        else "This session has no actions yet.",
        "",
        words.get("keep", ""),
    )
    known = {"keep"}
    known |= {field.name for section in sections for field in section.fields}
    known |= {field.name for group in groups for field in group.fields}
    loose = " ".join(text for name, text in words.items() if name not in known)
    return ConfigContext(title, back, at, num_actions, sections, groups, keep, loose, len(words))


def _groups(typed: Mapping[str, str], words: Mapping[str, str]) -> tuple[ConfigGroup, ...]:
    """A row for each group that was filled in, and spare ones."""
    options, defaults = GroupConfig.options(), defaults_of(GroupConfig)
    used = [row for row in rows_of(typed) if any(typed.get(f"groups.{row}.{name}") for name in options)]
    spare = range(max(used, default=-1) + 1, max(used, default=-1) + 1 + SPARE_ROWS)
    return tuple(
        ConfigGroup(
            row,
            row not in used,
            tuple(_field(name, option, defaults, f"groups.{row}.", typed, words) for name, option in options.items()),
        )
        for row in (*used, *spare)
    )


def _field(
    name: str,
    option: Option,
    defaults: Mapping[str, object],
    prefix: str,
    typed: Mapping[str, str],
    words: Mapping[str, str],
) -> ConfigField:
    kind = "choice" if option.choices else "checkbox" if option.type == "boolean" else "number"
    choices = ("", *option.choices) if prefix else option.choices
    return ConfigField(
        f"{prefix}{name}",
        name,
        kind,
        typed.get(f"{prefix}{name}", ""),
        choices,
        _usual(name, defaults, prefix),
        option.doc,
        option.flag or "",
        words.get(f"{prefix}{name}", ""),
        option.kinds,
    )


def _usual(name: str, defaults: Mapping[str, object], prefix: str) -> str:
    """As "16", "null: by the rule"; what an empty field stands for."""
    if prefix and name == "kind":
        return "no group"
    if prefix and name == "block_size":
        return "block_size above"
    value = defaults.get(name)
    if name not in defaults or isinstance(value, bool):
        return ""
    if value is None:
        return "" if prefix else "null"
    return str(value)
