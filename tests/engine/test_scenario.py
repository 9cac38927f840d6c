"""The scenario format: parts, actions, what is checked before anything runs, limits."""

import json
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.errors import InputError, LimitError, RequestError, ScenarioError
from engine.scenario import (
    Abort,
    AddRequest,
    Continue,
    External,
    Limits,
    Own,
    ResetPrefixCache,
    Scenario,
    Shared,
    Span,
    Step,
    check_request,
    default_output,
    parse_action,
    parse_prompt,
    parse_scenario,
    read_scenario,
)


def request(**keys: object) -> dict[str, Any]:
    return {"do": "add_request", "id": "a", "prompt": [[10, 5]], "max_tokens": 4, **keys}


def scenario(*actions: dict[str, Any], **config: object) -> dict[str, Any]:
    return {"version": 1, "config": {"num_blocks": 33, **config}, "actions": list(actions)}


def refusal(obj: object) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_scenario(obj)
    assert caught.value.expected
    assert len(str(caught.value).splitlines()) == 1
    return caught.value


# the whole


def test_a_scenario_is_read_and_given_back_as_written() -> None:
    written = scenario(
        request(prompt={"tokens": 20}, priority=0, accept=[], output=None),
        request(id="b", prompt=[[1, 2], {"shared": "system", "tokens": 3}, {"continue": "a"}], stop_token_ids=[7]),
        request(id="c", prompt=[10, 5], external={"tokens": 4, "async": True}, lora="sql", cache_salt=""),
        {"do": "step", "abort": ["b", "never added"]},
        {"do": "abort", "id": "c"},
        {"do": "reset_prefix_cache", "reset_running_requests": True},
        {"do": "step"},
    )
    read = parse_scenario(written)
    assert read.to_json() == written
    assert read.title == ""
    assert read.config == EngineConfig(num_blocks=33)
    assert read.actions == (
        AddRequest("a", (Own(20),), 4),
        AddRequest("b", (Span(1, 2), Shared("system", 3), Continue("a")), 4, stop_token_ids=(7,)),
        AddRequest("c", (Span(10, 5),), 4, external=External(4, True, 2), lora="sql", cache_salt=""),
        Step(("b", "never added")),
        Abort("c"),
        ResetPrefixCache(True),
        Step(),
    )
    in_code = Scenario(1, "", read.config, tuple(parse_action(action) for action in written["actions"]))
    assert parse_scenario(json.loads(json.dumps(in_code.to_json()))) == read


def test_actions_made_in_code_are_written_in_full() -> None:
    actions = (
        AddRequest("a", (Own(3), Continue("b")), 2, (Span(5, 9),), (5,), 1, "s", "l", True, (1, 0), External(3)),
        Step(("a",)),
        Abort("a"),
        ResetPrefixCache(True),
        ResetPrefixCache(),
        Step(),
    )
    for action in actions:
        assert parse_action(action.to_json()) == action


def test_the_key_external_gives_a_connector_even_if_null() -> None:
    assert not parse_scenario(scenario(request())).has_connector
    assert parse_scenario(scenario(request(external=None))).has_connector
    assert parse_scenario(scenario({"do": "step"}, request(external={"tokens": 0}))).has_connector


@pytest.mark.parametrize(
    ("change", "code", "where"),
    [
        ({"version": 2}, "wrong_version", "version"),
        ({"version": True}, "wrong_type", "version"),
        ({"version": 1.0}, "wrong_type", "version"),
        ({"version": "1"}, "wrong_type", "version"),
        ({"title": 3}, "wrong_type", "title"),
        ({"title": "x" * 201}, "out_of_range", "title"),
        ({"config": []}, "wrong_type", "config"),
        ({"config": {}}, "missing_key", "config"),
        ({"actions": {}}, "wrong_type", "actions"),
        ({"actions": [3]}, "wrong_type", "actions[0]"),
        ({"extra": 1}, "unknown_key", "extra"),
    ],
)
def test_a_malformed_whole_names_the_place(change: dict[str, Any], code: str, where: str) -> None:
    error = refusal({**scenario(), **change})
    assert (error.code, error.where) == (code, where)


@pytest.mark.parametrize("obj", [None, [], "x", 1])
def test_a_scenario_is_an_object(obj: object) -> None:
    assert refusal(obj).code == "wrong_type"


@pytest.mark.parametrize("key", ["version", "config", "actions"])
def test_version_config_and_actions_are_required(key: str) -> None:
    error = refusal({name: value for name, value in scenario().items() if name != key})
    assert (error.code, error.message) == ("missing_key", f'the key "{key}" is missing')


# actions


@pytest.mark.parametrize(
    ("action", "code", "where"),
    [
        ({}, "missing_key", ""),
        ({"do": 3}, "wrong_type", ".do"),
        ({"do": "dance"}, "unknown_action", ".do"),
        ({"do": "step", "id": "a"}, "unknown_key", ".id"),
        ({"do": "step", "abort": "a"}, "wrong_type", ".abort"),
        ({"do": "step", "abort": ["a", ""]}, "out_of_range", ".abort[1]"),
        ({"do": "abort"}, "missing_key", ""),
        ({"do": "abort", "id": "\ud800"}, "lone_surrogate", ".id"),
        ({"do": "reset_prefix_cache", "reset_running_requests": 1}, "wrong_type", ".reset_running_requests"),
        (request(id=""), "out_of_range", ".id"),
        (request(id="x" * 201), "out_of_range", ".id"),
        (request(id="a\udc00"), "lone_surrogate", ".id"),
        (request(id=5), "wrong_type", ".id"),
        (request(max_tokens=0), "out_of_range", ".max_tokens"),
        (request(max_tokens=True), "wrong_type", ".max_tokens"),
        (request(max_tokens=1.0), "wrong_type", ".max_tokens"),
        (request(max_tokens=float("nan")), "wrong_type", ".max_tokens"),
        (request(max_tokens=10**5000), "number_too_large", ".max_tokens"),
        (request(prompt=[]), "empty_prompt", ".prompt"),
        (request(prompt="hello"), "wrong_type", ".prompt"),
        (request(prompt=[[]]), "wrong_type", ".prompt[0]"),
        (request(prompt=[10]), "wrong_type", ".prompt"),
        (request(prompt=[10, 0]), "out_of_range", ".prompt[1]"),
        (request(prompt=[True, 5]), "wrong_type", ".prompt[0]"),
        (request(prompt=[[10, 5], [-1, 5]]), "out_of_range", ".prompt[1][0]"),
        (request(prompt=[[10, 5], 7]), "wrong_type", ".prompt[1]"),
        (request(prompt=[2**63 - 1, 2]), "out_of_range", ".prompt"),
        (request(prompt={}), "missing_key", ".prompt"),
        (request(prompt=[{"tokens": 0}]), "out_of_range", ".prompt[0].tokens"),
        (request(prompt=[{"tokens": 2.0}]), "wrong_type", ".prompt[0].tokens"),
        (request(prompt={"tokens": 2, "share": "x"}), "unknown_key", ".prompt.share"),
        (request(prompt={"shared": "x"}), "missing_key", ".prompt"),
        (request(prompt={"shared": "", "tokens": 2}), "out_of_range", ".prompt.shared"),
        (request(prompt={"continue": "a", "tokens": 2}), "unknown_key", ".prompt.tokens"),
        (request(prompt={"text": ""}), "out_of_range", ".prompt.text"),
        (request(prompt=[{"text": ["hello"]}]), "wrong_type", ".prompt[0].text"),
        (request(prompt={"text": "hello", "tokens": 2}), "unknown_key", ".prompt.tokens"),
        (request(output=[10, 5]), "wrong_type", ".output[0]"),
        (request(output=[{"tokens": 9}]), "wrong_type", ".output[0]"),
        (request(accept=[-1]), "out_of_range", ".accept[0]"),
        (request(stop_token_ids=3), "wrong_type", ".stop_token_ids"),
        (request(priority=None), "wrong_type", ".priority"),
        (request(lora=""), "out_of_range", ".lora"),
        (request(external={"tokens": 3, "sync": True}), "unknown_key", ".external.sync"),
        (request(external={}), "missing_key", ".external"),
        (request(cache_slat="x"), "unknown_key", ".cache_slat"),
    ],
)
def test_a_malformed_action_names_the_place(action: dict[str, Any], code: str, where: str) -> None:
    error = refusal(scenario({"do": "step"}, action))
    assert isinstance(error, ScenarioError)
    assert (error.code, error.where) == (code, f"actions[1]{where}")


def test_a_hostile_key_is_shown_on_one_short_line() -> None:
    error = refusal(scenario(request(**{"x\n\u2028" + "y" * 1000: 1})))
    assert len(str(error)) < 400
    assert "\\n\\u2028" in str(error)


def test_null_or_nothing_is_the_default() -> None:
    plain = parse_action(request())
    empty = parse_action(request(output=[], accept=[], stop_token_ids=None, cache_salt=None, lora=None))
    assert plain == empty
    assert isinstance(plain, AddRequest)
    assert (plain.output, plain.accept, plain.priority) == (None, (0,), 0)


# prompts


def test_one_part_and_a_list_of_parts_are_told_apart_by_their_type() -> None:
    assert parse_prompt([10, 5]) == parse_prompt([[10, 5]]) == (Span(10, 5),)
    assert parse_prompt({"tokens": 3}) == parse_prompt([{"tokens": 3}]) == (Own(3),)


def test_the_default_output_answers_every_draft() -> None:
    assert default_output(3, 10) == Span(1_300_000, 74)
    assert default_output(1, 10, drafts=100) == Span(1_100_000, 111)
    assert AddRequest("a", (Own(1),), 10).output_spans(3, 0) == (Span(1_300_000, 74),)
    assert AddRequest("a", (Own(1),), 10, (Span(1, 10),)).output_spans(3, 0) == (Span(1, 10),)


def test_a_request_can_be_written_in_spans() -> None:
    friendly = parse_action(request(prompt={"tokens": 3}, lora="sql"))
    assert isinstance(friendly, AddRequest)
    expanded = friendly.with_prompt((Span(7, 3),))
    assert expanded.to_json() == request(prompt=[[7, 3]], lora="sql")
    assert parse_action(expanded.to_json()) == expanded


# what the config decides before anything runs


def test_a_prompt_over_max_model_len_is_refused() -> None:
    parse_scenario(scenario(request(prompt=[[0, 60], {"tokens": 4}]), max_model_len=64))
    for prompt in ([[0, 60], {"tokens": 5}], [[0, 64], {"continue": "x"}]):
        error = refusal(scenario(request(prompt=prompt), max_model_len=64))
        assert (error.code, error.where) == ("prompt_too_long", "actions[0].prompt")
        assert "65 tokens" in error.message


def test_external_tokens_need_one_group() -> None:
    groups = [{"kind": "full_attention"}, {"kind": "mamba"}]
    for external in (None, {"tokens": 3}):
        error = refusal(scenario(request(external=external), groups=groups))
        assert (error.code, error.where) == ("external_with_groups", "actions[0].external")


@pytest.mark.parametrize(
    ("keys", "config", "fewest"),
    [
        ({"max_tokens": 6}, {}, 6),
        ({"max_tokens": 6}, {"num_speculative_tokens": 3}, 9),
        ({"max_tokens": 60}, {"max_model_len": 12}, 7),
        ({"max_tokens": 60, "prompt": [0, 12]}, {"max_model_len": 12}, 1),
    ],
)
def test_an_output_that_can_run_out_is_refused(keys: dict[str, Any], config: dict[str, Any], fewest: int) -> None:
    parse_scenario(scenario(request(**keys, output=[[50, fewest]]), **config))
    if fewest > 1:
        error = refusal(scenario(request(**keys, output=[[50, fewest - 1]]), **config))
        assert (error.code, error.where) == ("output_too_short", "actions[0].output")
        assert f"at least {fewest} tokens" in error.expected


def test_an_output_may_end_with_its_stop_token() -> None:
    ends = request(max_tokens=60, output=[[50, 3], [9, 1]], stop_token_ids=[99, 9])
    parse_scenario(scenario(ends))
    assert refusal(scenario(ends, num_speculative_tokens=2)).code == "output_too_short"
    assert refusal(scenario({**ends, "stop_token_ids": [8, 10]})).code == "output_too_short"


def test_an_output_behind_a_continued_prompt_is_left_to_the_run() -> None:
    parse_scenario(scenario(request(prompt={"continue": "a"}, output=[[50, 1]])))


def test_while_running_the_same_checks_are_request_errors() -> None:
    action = parse_action(request(prompt={"continue": "x"}, output=[[1, 3]]))
    assert isinstance(action, AddRequest)
    config = EngineConfig(num_blocks=9, max_model_len=64)
    check_request(action, config, 61, "actions[4]", RequestError)
    with pytest.raises(RequestError, match=r"actions\[4\].prompt: the prompt has 65 tokens"):
        check_request(action, config, 65, "actions[4]", RequestError)
    with pytest.raises(RequestError, match=r"actions\[4\].output"):
        check_request(action, config, 60, "actions[4]", RequestError)


# limits


@pytest.mark.parametrize(
    ("limits", "where"),
    [
        (Limits(blocks=32), "config.num_blocks"),
        (Limits(prompt_tokens=4), "actions[1].prompt"),
        (Limits(add_requests=0), "actions"),
        (Limits(actions=1), "actions"),
        (Limits(drafts=1), "config.num_speculative_tokens"),
    ],
)
def test_limits_are_checked_before_the_engine_builds_anything(limits: Limits, where: str) -> None:
    small = parse_scenario(scenario({"do": "step"}, request(), num_speculative_tokens=2))
    Limits().check(small)
    with pytest.raises(LimitError) as caught:
        limits.check(small)
    assert (caught.value.code, caught.value.where) == ("over_limit", where)
    assert caught.value.expected.startswith("at most ")


FULL = {"kind": "full_attention"}
WINDOW = {"kind": "sliding_window", "sliding_window": 4}


@pytest.mark.parametrize(
    ("config", "where", "number"),
    [
        ({"block_size": 2**59}, "block_size", f"{2**59}"),
        ({"block_size": 2**53}, "block_size", f"{40 * 2**53} tokens in the pool"),
        ({"max_model_len": 2**53 + 1}, "max_model_len", f"{2**53 + 1}"),
        ({"max_num_batched_tokens": 2**63 - 1}, "max_num_batched_tokens", f"{2**63 - 1}"),
        ({"num_lookahead_tokens": 2**60}, "num_lookahead_tokens", f"{2**60}"),
        ({"groups": [FULL, {**WINDOW, "sliding_window": 2**60}]}, "groups[1].sliding_window", f"{2**60}"),
        (
            {"groups": [FULL, {**WINDOW, "block_size": 2**52}]},
            "groups[1].block_size",
            f"{40 * 2**52} tokens in the pool",
        ),
    ],
)
def test_no_number_is_larger_than_a_browser_can_count(config: dict[str, object], where: str, number: str) -> None:
    with pytest.raises(LimitError) as caught:
        Limits().check_config(EngineConfig.from_json({"num_blocks": 40, **config}))
    assert str(caught.value) == (
        f"config.{where}: {number} is more than a browser can count exactly; expected at most 9007199254740992, 2^53"
    )


def test_the_largest_numbers_are_taken() -> None:
    most = {"num_blocks": 2, "block_size": 2**52, "max_model_len": 2**53, "max_num_batched_tokens": 2**53}
    Limits().check_config(EngineConfig.from_json(most))


def test_groups_are_limited_while_they_are_read() -> None:
    group = {"kind": "full_attention"}
    assert len(parse_scenario(scenario(groups=[group] * 100)).config.groups) == 100
    error = refusal(scenario(groups=[group] * 101))
    assert isinstance(error, LimitError)
    assert (error.code, error.where) == ("over_limit", "config.groups")


def test_text_is_read_in_one_go() -> None:
    text = json.dumps(scenario(request(id="é😀")))
    assert read_scenario(text) == read_scenario(text.encode())
    with pytest.raises(ScenarioError, match=r"actions\[0\].id: "):
        read_scenario(json.dumps(scenario(request(id="\ud83d"))))
