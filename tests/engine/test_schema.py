"""The JSON Schema says what the parser does, as far as a schema can."""

import copy
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from engine.config import EngineConfig, GroupConfig
from engine.errors import InputError
from engine.scenario import parse_scenario
from engine.scenario_parse import ADD_REQUEST_KEYS
from engine.schema import DIALECT, config_schema, scenario_schema

SCHEMA: Any = scenario_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

CROSS_VALUE = {"undefined_config", "prompt_too_long", "output_too_short", "external_with_groups", "lone_surrogate"}
"""Refusals that hang on several values, or on what a schema knows nothing of."""

FULL: Any = {
    "version": 1,
    "title": "everything",
    "config": {
        "num_blocks": 33,
        "block_size": 8,
        "watermark": 0.1,
        "policy": "priority",
        "num_speculative_tokens": 2,
        "hash_block_size": None,
        "groups": [{"kind": "sliding_window", "sliding_window": 8, "eagle": False}],
        "prefix_cache_retention_interval": 16,
    },
    "actions": [
        {"do": "add_request", "id": "a", "prompt": [10, 5], "max_tokens": 4, "external": {"tokens": 3, "steps": 0}},
        {
            "do": "add_request",
            "id": "b",
            "prompt": [[10, 5], {"tokens": 3}, {"shared": "s", "tokens": 4}, {"continue": "a"}],
            "max_tokens": 4,
            "output": [[5, 20]],
            "accept": [1, 0],
            "stop_token_ids": [6],
            "priority": -1,
            "cache_salt": None,
            "lora": "sql",
        },
        {"do": "step", "abort": ["a"]},
        {"do": "abort", "id": "b"},
        {"do": "reset_prefix_cache", "reset_running_requests": True},
    ],
}

GROUPS: Any = [
    {"kind": "full_attention"},
    {"kind": "mamba", "mamba_cache_mode": "align", "num_speculative_blocks": 1},
    {"kind": "chunked_local_attention", "attention_chunk_size": 8},
    {"kind": "sliding_window", "sliding_window": 4, "block_size": 16},
]

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 5, 16, 2**63 - 1, 2**63, -(2**63)]),
    st.sampled_from([0.5, -0.5, 1.5]),
    st.sampled_from(["", "a", "fcfs", "mamba", "align", "step", "abort", "x" * 200, "x" * 201]),
)
parts = st.one_of(
    leaves,
    st.lists(leaves, max_size=3),
    st.dictionaries(st.sampled_from(["tokens", "shared", "continue", "x"]), leaves, max_size=2),
)
groups = st.sampled_from([*GROUPS, GROUPS]).map(copy.deepcopy)
values = st.one_of(leaves, parts, st.lists(parts, max_size=3), groups)
like = {
    int: st.sampled_from([-1, 0, 1, 2, 3, 5, 8, 16, 2**63 - 1]),
    str: st.sampled_from(["", "a", "b", "fcfs", "mamba", "align", "x" * 200, "x" * 201]),
    bool: st.booleans(),
}
"""Values of the same type, so that many mutated scenarios stay valid."""
keys = st.sampled_from([*ADD_REQUEST_KEYS, *EngineConfig.options(), *GroupConfig.options(), "tokens", "async", "abort"])


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(*path, key), *places(item, (*path, key))]]


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """The full scenario with up to three values replaced, removed or added."""
    scenario: dict[str, Any] = copy.deepcopy(FULL)
    for _ in range(draw(st.integers(1, 3))):
        *above, key = draw(st.sampled_from(places(scenario)))
        parent: Any = scenario
        for step in above:
            parent = parent[step]
        change = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if change == "replace":
            parent[key] = draw(like.get(type(parent[key]), values) if draw(st.booleans()) else values)
        elif change == "remove":
            del parent[key]
        elif isinstance(parent, dict):
            parent[draw(keys)] = draw(values)
        else:
            parent.append(draw(values))
    return scenario


def refusal(scenario: object) -> InputError | None:
    try:
        parse_scenario(scenario)
    except InputError as error:
        return error
    return None


@settings(max_examples=1500, deadline=None)
@given(mutated())
def test_schema_and_parser_agree_on_mutated_scenarios(scenario: dict[str, Any]) -> None:
    error = refusal(scenario)
    if VALIDATOR.is_valid(scenario):
        between_values = error is not None and (
            error.code in CROSS_VALUE or error.code == "invalid_config" or "last token id" in error.message
        )
        assert error is None or between_values, str(error)
    else:
        assert error is not None
        assert len(str(error).splitlines()) == 1


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_what_was_written_comes_back(scenario: dict[str, Any]) -> None:
    before = json.dumps(scenario)
    if refusal(scenario) is None:
        assert json.dumps(parse_scenario(scenario).to_json()) == before


def test_the_full_scenario_is_valid_and_so_is_each_kind_of_group() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert VALIDATOR.is_valid(FULL)
    assert refusal(FULL) is None
    for group in GROUPS:
        assert VALIDATOR.is_valid({**FULL, "config": {"num_blocks": 4, "groups": [group]}})


def test_every_option_is_described_with_its_default() -> None:
    config: Any = config_schema()
    assert list(config["properties"]) == list(EngineConfig.options())
    for name, schema in config["properties"].items():
        assert schema["description"].endswith(".")
        assert ("default" in schema) == (name != "num_blocks")
    assert config["properties"]["max_num_batched_tokens"] == {
        "type": "integer",
        "description": "The token budget of a step. vLLM's own flag: --max-num-batched-tokens.",
        "minimum": 1,
        "maximum": 2**63 - 1,
        "default": 2048,
    }
    assert config["properties"]["hash_block_size"]["default"] is None
    assert config["properties"]["watermark"]["exclusiveMaximum"] == 1


def test_every_key_of_an_action_is_in_the_schema() -> None:
    add_request = SCHEMA["$defs"]["action"]["oneOf"][0]
    assert tuple(add_request["properties"]) == ADD_REQUEST_KEYS


def test_every_default_is_valid_itself() -> None:
    config: Any = config_schema()
    defaults = {name: schema["default"] for name, schema in config["properties"].items() if "default" in schema}
    assert EngineConfig.from_json({"num_blocks": 7, **defaults}) == EngineConfig(num_blocks=7)


def test_the_only_address_in_the_schema_is_its_dialect() -> None:
    text = json.dumps(SCHEMA)
    assert re.findall(r"\w+://[^\"]*", text) == [DIALECT]
