"""The scenario: a config and a list of actions, the only stored state (0.3).

`loads` and `parse_scenario` read one strictly, `Scenario.to_json` gives back what was written. The names of parts,
actions and readers are all to be had from here.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from engine.actions import Abort, Action, AddRequest, External, ResetPrefixCache, Step, default_output
from engine.config import EngineConfig
from engine.errors import InputError, LimitError, ScenarioError, shown
from engine.scenario_parse import MAX_NAME, parse_action, parse_prompt
from engine.strict_json import MAX_INT, array, loads, record, text, whole_number, wrong_type
from engine.tokens import (
    Continue,
    Own,
    Part,
    Shared,
    Span,
    Text,
    Tokenize,
    count_of,
    joined,
    least_tokens,
    resolve,
    run_start,
    spans_of,
    tokens_between,
    tokens_of,
)

__all__ = [
    "VERSION",
    "Abort",
    "Action",
    "AddRequest",
    "Continue",
    "External",
    "Limits",
    "Own",
    "Part",
    "ResetPrefixCache",
    "Scenario",
    "Shared",
    "Span",
    "Step",
    "Text",
    "Tokenize",
    "check_action",
    "check_request",
    "count_of",
    "default_output",
    "joined",
    "loads",
    "parse_action",
    "parse_prompt",
    "parse_scenario",
    "read_scenario",
    "resolve",
    "run_start",
    "spans_of",
    "tokens_between",
    "tokens_of",
]

MAX_COUNTABLE: Final = 2**53
"""Up to here JavaScript's numbers are whole ones; what is larger a page would show wrong."""

VERSION: Final = 1
"""The version of the format that this program reads and writes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A config and the actions on it; an action's index, from 0, is its time. `source` takes no part in comparisons."""

    version: int
    title: str
    config: EngineConfig
    actions: tuple[Action, ...]
    source: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_connector(self) -> bool:
        """Whether any action carries the key `external` (0.4)."""
        return any(isinstance(action, AddRequest) and action.carries_external for action in self.actions)

    def to_json(self) -> dict[str, object]:
        """The scenario as it was written, or else in full."""
        if self.source:
            return self.source
        actions = [action.to_json() for action in self.actions]
        head: dict[str, object] = {"version": self.version, "title": self.title}
        return {**head, "config": self.config.to_json(), "actions": actions}


def read_scenario(source: str | bytes, tokenize: Tokenize | None = None) -> Scenario:
    """Reads a scenario from JSON text; with a tokenizer the lengths of text parts are checked too.

    Raises:
        ScenarioError: malformed JSON or a malformed scenario.
        ConfigError: a config that the engine rejects or that is undefined.
    """
    return parse_scenario(loads(source), tokenize)


def parse_scenario(obj: object, tokenize: Tokenize | None = None) -> Scenario:
    """Reads a scenario from parsed JSON, and checks everything that can be known before it runs.

    Raises:
        ScenarioError: a malformed scenario.
        ConfigError: a config that the engine rejects or that is undefined.
        InputError: the tokenizer refuses a text.
    """
    if not isinstance(obj, dict):
        raise wrong_type(obj, "", "an object with version, config and actions")
    if "version" in obj and whole_number(obj["version"], "version") != VERSION:
        raise ScenarioError("wrong_version", f"version {obj['version']} is not known", "version", str(VERSION))
    record(obj, "", ("version", "title", "config", "actions"), ("version", "config", "actions"))
    title = text(obj.get("title", ""), "title", 0, MAX_NAME)
    config = EngineConfig.from_json(obj["config"])
    actions: list[Action] = []
    for i, written in enumerate(array(obj["actions"], "actions", "actions")):
        action = parse_action(written, f"actions[{i}]")
        check_action(action, config, f"actions[{i}]", tokenize)
        actions.append(action)
    return Scenario(VERSION, title, config, tuple(actions), obj)


def check_action(action: Action, config: EngineConfig, where: str, tokenize: Tokenize | None = None) -> None:
    """Checks what the config decides about an action before it runs (the undefined cases of 0.3).

    Raises:
        ScenarioError: a prompt over max_model_len, `external` with several groups, an output that can run out.
        InputError: the tokenizer refuses a text.
    """
    if not isinstance(action, AddRequest):
        return
    if action.carries_external and len(config.groups) > 1:
        message = f"external tokens can't be had with {len(config.groups)} groups"
        raise ScenarioError("external_with_groups", message, f"{where}.external", 'one group, or no "external"')
    tokens, exact = least_tokens(action.prompt, tokenize, f"{where}.prompt")
    if exact:
        check_request(action, config, tokens, where)
    else:
        _check_prompt(f"at least {tokens}", tokens, config, f"{where}.prompt", ScenarioError)


def check_request(
    action: AddRequest, config: EngineConfig, tokens: int, where: str, error: type[InputError] = ScenarioError
) -> None:
    """Checks what depends on the length of the prompt, which `continue` and texts may leave open until it runs.

    Args:
        action: the request.
        config: what it runs on.
        tokens: length of its prompt.
        where: the place of the action.
        error: the class to raise; RequestError while running.

    Raises:
        InputError: a prompt over max_model_len, an output that can run out.
    """
    _check_prompt(str(tokens), tokens, config, f"{where}.prompt", error)
    _check_output(action, config, tokens, f"{where}.output", error)


def _check_prompt(shown_tokens: str, tokens: int, config: EngineConfig, where: str, error: type[InputError]) -> None:
    """The prompt isn't over max_model_len (0.3)."""
    if tokens > config.max_model_len:
        message = f"the prompt has {shown_tokens} tokens, more than max_model_len, {config.max_model_len}"
        expected = f"at most {config.max_model_len} tokens, or a larger max_model_len"
        raise error("prompt_too_long", message, where, expected)


def _check_output(action: AddRequest, config: EngineConfig, tokens: int, where: str, error: type[InputError]) -> None:
    """The output written is enough for every token that can be sampled, and for the answer to every draft (0.3, 0.4).

    A request samples at least one token and stops at max_tokens, at max_model_len or at a stop token (6.8); in its last
    step up to k drafts stand behind the tokens it keeps.
    """
    if action.output is None:
        return
    drafts = config.num_speculative_tokens
    room = max(config.max_model_len - tokens, 1)
    kept = min(action.max_tokens, room, _first_stop(action.output, action.stop_token_ids))
    given = count_of(action.output)
    if given < kept + drafts:
        behind = f" and {drafts} behind them for its drafts" if drafts else ""
        message = f"the output has {given} tokens and can run out: the request may sample {kept}{behind}"
        raise error("output_too_short", message, where, f"at least {kept + drafts} tokens, or no output at all")


def _first_stop(output: tuple[Span, ...], stops: tuple[int, ...]) -> int:
    """How many tokens of the output are kept if a stop token ends it; 2^63 if none is in it."""
    ascending = sorted(stops)
    before = 0
    for span in output:
        i = bisect_left(ascending, span.first)
        if i < len(ascending) and ascending[i] < span.first + span.count:
            return before + ascending[i] - span.first + 1
        before += span.count
    return 2**63


@dataclass(frozen=True, slots=True)
class Limits:
    """What this program takes, checked before the engine builds anything. The defaults are the command line's."""

    blocks: int = 2_000_000
    prompt_tokens: int = 1_000_000
    add_requests: int = 10_000
    actions: int = 20_000
    drafts: int = 10_000
    memory: int = MAX_INT
    """About how many bytes the requests may take that live at the same time; by default as many as there are."""

    def check(self, scenario: Scenario, tokenize: Tokenize | None = None) -> None:
        """Checks a whole scenario; the length of texts too if there is a tokenizer.

        Raises:
            LimitError: the first limit it goes over.
        """
        self.check_config(scenario.config)
        requests = sum(isinstance(action, AddRequest) for action in scenario.actions)
        self.check_counts(len(scenario.actions), requests)
        for i, action in enumerate(scenario.actions):
            self.check_action(action, f"actions[{i}]", tokenize)

    def check_config(self, config: EngineConfig, where: str = "config") -> None:
        """Checks blocks and drafts, and that no number is larger than a browser can count to."""
        _within(config.num_blocks, self.blocks, "blocks", f"{where}.num_blocks")
        _within(config.num_speculative_tokens, self.drafts, "drafts", f"{where}.num_speculative_tokens")
        _check_countable(config, where)

    def check_counts(self, actions: int, add_requests: int) -> None:
        """Checks how many actions, and how many requests among them."""
        _within(actions, self.actions, "actions", "actions")
        _within(add_requests, self.add_requests, "add_request actions", "actions")

    def check_action(self, action: Action, where: str, tokenize: Tokenize | None = None) -> None:
        """Checks a prompt's length as far as it is known before it runs."""
        if isinstance(action, AddRequest):
            place = f"{where}.prompt"
            self.check_prompt(least_tokens(action.prompt, tokenize, place)[0], place)

    def check_prompt(self, tokens: int, where: str) -> None:
        """Checks a prompt's length in tokens."""
        _within(tokens, self.prompt_tokens, "tokens in a prompt", where)


def _check_countable(config: EngineConfig, where: str) -> None:
    """Each number for itself, and the tokens of the pool in blocks of any of its sizes."""
    for name, option in config.options().items():
        if option.type == "integer":
            _countable(getattr(config, name), f"{where}.{name}")
    _countable(config.num_blocks * config.block_size, f"{where}.block_size", " tokens in the pool")
    for i, group in enumerate(config.groups):
        for name, option in group.options().items():
            if option.type == "integer":
                _countable(getattr(group, name), f"{where}.groups[{i}].{name}")
        _countable(config.num_blocks * group.block_size, f"{where}.groups[{i}].block_size", " tokens in the pool")


def _countable(number: int | None, where: str, what: str = "") -> None:
    if number is not None and number > MAX_COUNTABLE:
        message = f"{shown(number)}{what} is more than a browser can count exactly"
        raise LimitError("over_limit", message, where, f"at most {MAX_COUNTABLE}, 2^53")


def _within(count: int, limit: int, what: str, where: str) -> None:
    if count > limit:
        message = f"{shown(count)} {what} are more than this program takes"
        raise LimitError("over_limit", message, where, f"at most {limit}")
