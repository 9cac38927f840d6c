"""The composer's fields as an action. The prompt is given in one of three ways, and two at once are a mistake.

Its fields: tokens of its own behind a shared prefix. As text: the text in the place of the tokens. As JSON: all of it,
as scenarios write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.routes.asked import Asked, number, numbers
from app.services.errors import BadValueError
from engine.errors import InputError
from engine.scenario import loads, parse_action

NUMBERS: Final = ("tokens", "shared_tokens", "max_tokens", "priority", "external_tokens", "external_steps")
LISTS: Final = ("accept", "stop_token_ids")
PASTED: Final = ("text", "json", "output")
"""Fields in which lines matter: forms send them with ends of their own."""
INSTEAD: Final = {"tokens": "tokens", "shared": "a shared prefix", "shared_tokens": "a shared prefix", "text": "text"}


def read_add(asked: Asked) -> None:
    """Make an action of what was typed. Every field is read, so that every problem is told at once.

    Raises:
        InputError: the engine's own checks, which come last, find something.
    """
    typed = asked.typed
    for name in PASTED:
        if name in typed:
            typed[name] = typed[name].replace("\r\n", "\n").replace("\r", "\n")
    values = {name: number(asked, name) for name in NUMBERS}
    lists = {name: numbers(asked, name) for name in LISTS}
    external = _external(asked, values)
    prompt = _prompt(asked, values)
    output = _json(asked, "output")
    if values["max_tokens"] is None and "max_tokens" not in asked.errors:
        asked.blame(BadValueError("A number is missing.", "max_tokens", "a whole number, 1 or more"))
    if asked.errors:
        return
    action: dict[str, Any] = {"do": "add_request", "id": typed.get("id", ""), "prompt": prompt}
    action["max_tokens"] = values["max_tokens"]
    if output is not None:
        action["output"] = output
    for name in ("cache_salt", "lora"):
        if typed.get(name):
            action[name] = typed[name]
    if values["priority"]:
        action["priority"] = values["priority"]
    if any(lists["accept"]):
        action["accept"] = lists["accept"]
    if lists["stop_token_ids"]:
        action["stop_token_ids"] = lists["stop_token_ids"]
    if typed.get("skip_reading_prefix_cache"):
        action["skip_reading_prefix_cache"] = True
    if external:
        action["external"] = external
    asked.action = parse_action(action)


def prompt_as(typed: Mapping[str, str]) -> str:
    """Which way to give the prompt counts: json, text or fields."""
    if typed.get("json", "").strip():
        return "json"
    return "text" if typed.get("text") else "fields"


def _prompt(asked: Asked, values: Mapping[str, int | None]) -> object:
    typed, way = asked.typed, prompt_as(asked.typed)
    others = {"json": ("tokens", "shared", "shared_tokens", "text"), "text": ("tokens",), "fields": ()}[way]
    what = "The JSON below is the whole prompt" if way == "json" else "The text below is the prompt"
    for name in others:
        if typed.get(name, "").strip():
            expected = f"nothing here, or no {'JSON' if way == 'json' else 'text'}"
            asked.blame(BadValueError(f"{what}, so {INSTEAD[name]} can't be given too.", name, expected))
    if way == "json":
        return _json(asked, "json")
    prompt: list[dict[str, Any]] = []
    if typed.get("shared"):
        if values["shared_tokens"] is None and "shared_tokens" not in asked.errors:
            message = "The shared prefix needs a length."
            asked.blame(BadValueError(message, "shared_tokens", "a whole number, 1 or more"))
        prompt.append({"shared": typed["shared"], "tokens": values["shared_tokens"]})
    elif values["shared_tokens"]:
        asked.blame(BadValueError("A shared prefix needs a name.", "shared", "the name that others give too"))
    if way == "text":
        return [*prompt, {"text": typed["text"]}]
    if values["tokens"] is None and not prompt and "tokens" not in asked.errors:
        asked.blame(BadValueError("The prompt is empty.", "tokens", "a whole number, 1 or more"))
    if values["tokens"] or not prompt:
        prompt.append({"tokens": values["tokens"]})
    return prompt


def _json(asked: Asked, name: str) -> object:
    """What a field holds that is for JSON; None if nothing or, which is noted, something else."""
    written = asked.typed.get(name, "")
    if not written.strip():
        return None
    try:
        return loads(written)
    except InputError as error:
        where = error.where if error.where.startswith("[") or not error.where else f".{error.where}"
        asked.blame(type(error)(error.code, error.message, f"{name}{where}", error.expected))
        return None


def _external(asked: Asked, values: Mapping[str, int | None]) -> dict[str, Any]:
    """What a connector holds of the request; {} without one."""
    tokens, steps = values["external_tokens"], values["external_steps"]
    is_async = bool(asked.typed.get("external_async"))
    if tokens is None:
        if (is_async or steps is not None) and "external_tokens" not in asked.errors:
            message = "A load needs external tokens."
            asked.blame(BadValueError(message, "external_tokens", "how many of its first tokens a connector holds"))
        return {}
    return {"tokens": tokens, "async": is_async, **({} if steps is None else {"steps": steps})}
