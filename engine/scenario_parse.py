"""Actions read strictly from JSON (0.3): an unknown key, a wrong type or an impossible value names its place.

What a scenario's config decides, such as a prompt over `max_model_len`, is checked in `engine.scenario`.
"""

from collections.abc import Callable
from typing import Final

from engine.actions import (
    DEFAULT_ACCEPT,
    DEFAULT_LOAD_STEPS,
    Abort,
    Action,
    AddRequest,
    External,
    ResetPrefixCache,
    Step,
)
from engine.errors import ScenarioError, shown
from engine.strict_json import MAX_INT, array, flag, join, record, text, whole_number, wrong_type
from engine.tokens import Continue, Own, Part, Shared, Span, Text

MAX_NAME: Final = 200
"""The longest id, name or title, in characters."""

ADD_REQUEST_KEYS: Final = (
    "do",
    "id",
    "prompt",
    "max_tokens",
    "output",
    "stop_token_ids",
    "priority",
    "cache_salt",
    "lora",
    "skip_reading_prefix_cache",
    "accept",
    "external",
)
_PART: Final = (
    'a part: [first, count], {"tokens": n}, {"shared": name, "tokens": n}, {"text": words} or {"continue": id}'
)


def parse_action(obj: object, where: str = "action") -> Action:
    """Reads one action.

    Raises:
        ScenarioError: with the place below `where` and what would be right.
    """
    if not isinstance(obj, dict):
        raise wrong_type(obj, where, "an object")
    if "do" not in obj:
        raise ScenarioError("missing_key", 'the key "do" is missing', where, "one of " + ", ".join(_READERS))
    kind = text(obj["do"], join(where, "do"))
    if kind not in _READERS:
        expected = "one of " + ", ".join(_READERS)
        raise ScenarioError("unknown_action", f"there is no action {shown(kind)}", join(where, "do"), expected)
    return _READERS[kind](obj, where)


def _add_request(obj: dict[str, object], where: str) -> AddRequest:
    record(obj, where, ADD_REQUEST_KEYS, ("id", "prompt", "max_tokens"))

    def at(key: str) -> str:
        return join(where, key)

    return AddRequest(
        id=_name(obj["id"], at("id")),
        prompt=parse_prompt(obj["prompt"], at("prompt")),
        max_tokens=whole_number(obj["max_tokens"], at("max_tokens"), 1),
        output=_spans(obj.get("output"), at("output")),
        stop_token_ids=_numbers(obj.get("stop_token_ids"), at("stop_token_ids"), "token ids"),
        priority=whole_number(obj.get("priority", 0), at("priority")),
        cache_salt=_optional_text(obj.get("cache_salt"), at("cache_salt"), 0),
        lora=_optional_text(obj.get("lora"), at("lora"), 1),
        skip_reading_prefix_cache=flag(obj.get("skip_reading_prefix_cache", False), at("skip_reading_prefix_cache")),
        accept=_numbers(obj.get("accept"), at("accept"), "numbers of drafts") or DEFAULT_ACCEPT,
        external=_external(obj.get("external"), at("external")),
        source=obj,
    )


def _step(obj: dict[str, object], where: str) -> Step:
    record(obj, where, ("do", "abort"))
    place = join(where, "abort")
    ids = array(obj.get("abort", []), place, "request ids")
    return Step(tuple(_name(id, f"{place}[{i}]") for i, id in enumerate(ids)), source=obj)


def _abort(obj: dict[str, object], where: str) -> Abort:
    record(obj, where, ("do", "id"), ("id",))
    return Abort(_name(obj["id"], join(where, "id")), source=obj)


def _reset(obj: dict[str, object], where: str) -> ResetPrefixCache:
    key = "reset_running_requests"
    record(obj, where, ("do", key))
    return ResetPrefixCache(flag(obj.get(key, False), join(where, key)), source=obj)


_READERS: Final[dict[str, Callable[[dict[str, object], str], Action]]] = {
    AddRequest.do: _add_request,
    Step.do: _step,
    Abort.do: _abort,
    ResetPrefixCache.do: _reset,
}


def parse_prompt(obj: object, where: str = "prompt") -> tuple[Part, ...]:
    """Reads a prompt: one part, or a list of parts; `[10, 5]` is one part.

    Raises:
        ScenarioError: an empty prompt, or a part that is none.
    """
    if isinstance(obj, dict):
        return (_part(obj, where),)
    if not isinstance(obj, list):
        raise wrong_type(obj, where, f"{_PART}, or a list of parts")
    if not obj:
        raise ScenarioError("empty_prompt", "the prompt is empty", where, f"at least {_PART}")
    if not isinstance(obj[0], (list, dict)):
        return (_span(obj, where),)
    return tuple(_part(part, f"{where}[{i}]") for i, part in enumerate(obj))


def _part(obj: object, where: str) -> Part:
    if isinstance(obj, list):
        return _span(obj, where)
    if not isinstance(obj, dict):
        raise wrong_type(obj, where, _PART)
    if "text" in obj:
        record(obj, where, ("text",))
        return Text(text(obj["text"], join(where, "text"), 1))
    if "continue" in obj:
        record(obj, where, ("continue",))
        return Continue(_name(obj["continue"], join(where, "continue")))
    record(obj, where, ("shared", "tokens"), ("tokens",))
    tokens = whole_number(obj["tokens"], join(where, "tokens"), 1)
    if "shared" in obj:
        return Shared(_name(obj["shared"], join(where, "shared")), tokens)
    return Own(tokens)


def _span(pair: list[object], where: str) -> Span:
    if len(pair) != 2:
        raise wrong_type(pair, where, "[first, count]: two whole numbers")
    first = whole_number(pair[0], f"{where}[0]", 0)
    count = whole_number(pair[1], f"{where}[1]", 1)
    if first + count - 1 > MAX_INT:
        raise ScenarioError("out_of_range", "the last token id is too large", where, f"token ids up to {MAX_INT}")
    return Span(first, count)


def _spans(obj: object, where: str) -> tuple[Span, ...] | None:
    """A list of spans; None if it is null or empty: then the default output holds."""
    if obj is None:
        return None
    spans = []
    for i, pair in enumerate(array(obj, where, "[first, count] spans")):
        spans.append(_span(array(pair, f"{where}[{i}]", "two numbers, [first, count]"), f"{where}[{i}]"))
    return tuple(spans) or None


def _numbers(obj: object, where: str, of: str) -> tuple[int, ...]:
    if obj is None:
        return ()
    return tuple(whole_number(item, f"{where}[{i}]", 0) for i, item in enumerate(array(obj, where, of)))


def _name(obj: object, where: str) -> str:
    return text(obj, where, 1, MAX_NAME)


def _optional_text(obj: object, where: str, minimum: int) -> str | None:
    return None if obj is None else text(obj, where, minimum, MAX_NAME)


def _external(obj: object, where: str) -> External | None:
    if obj is None:
        return None
    written = record(obj, where, ("tokens", "async", "steps"), ("tokens",))
    return External(
        whole_number(written["tokens"], join(where, "tokens"), 0),
        flag(written.get("async", False), join(where, "async")),
        whole_number(written.get("steps", DEFAULT_LOAD_STEPS), join(where, "steps")),
    )
