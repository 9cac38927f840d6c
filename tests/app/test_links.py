"""Permalinks: what was written comes back, old links open, and whatever is wrong has a name."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import statistics
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.services import links
from app.services.links import Link, LinkError, decode, encode
from engine.actions import Step
from engine.errors import InputError, LimitError, ScenarioError
from engine.scenario import Limits, Scenario, parse_scenario
from tests.engine.helpers import random_json

TESTS = Path(__file__).parent.parent
FIXTURES = TESTS / "fixtures" / "links"
LIMITS = Limits()


# Any scenario

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ["A", "r1", "é\u2028<"]
)
counts = st.integers(1, 60)
spans = st.tuples(st.integers(0, 2**62), counts).map(list)
parts: st.SearchStrategy[Any] = st.one_of(
    spans,
    st.fixed_dictionaries({"tokens": counts}),
    st.fixed_dictionaries({"shared": names, "tokens": counts}),
    st.fixed_dictionaries({"text": names}),
    st.fixed_dictionaries({"continue": names}),
)


def shuffled(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the keys, in any order."""
    chosen = st.fixed_dictionaries(required, optional=optional)
    return chosen.flatmap(lambda value: st.permutations(list(value.items()))).map(dict)


add_requests = shuffled(
    {"do": st.just("add_request"), "id": names, "prompt": parts | st.lists(parts, min_size=1, max_size=3)}
    | {"max_tokens": st.integers(1, 500)},
    {
        "output": st.none() | st.just([]) | st.just([[5, 1000]]),
        "stop_token_ids": st.none() | st.lists(st.integers(0, 2**63 - 1), max_size=2),
        "priority": st.integers(-5, 5),
        "cache_salt": st.none() | names | st.just(""),
        "lora": st.none() | names,
        "skip_reading_prefix_cache": st.booleans(),
        "accept": st.none() | st.lists(st.integers(0, 3), max_size=3),
        "external": st.none() | st.fixed_dictionaries({"tokens": counts}, optional={"async": st.booleans()}),
    },
)
steps = shuffled({"do": st.just("step")}, {"abort": st.lists(names, max_size=2)})
others = st.one_of(
    shuffled({"do": st.just("abort"), "id": names}, {}),
    shuffled({"do": st.just("reset_prefix_cache")}, {"reset_running_requests": st.booleans()}),
)
scenarios = shuffled(
    {
        "version": st.just(1),
        "config": shuffled(
            {"num_blocks": st.integers(1, 10**6)},
            {
                "watermark": st.sampled_from([0, 0.0, 0.05, 1e-7, 0.1 + 0.2]),
                "policy": st.sampled_from(["fcfs", "priority"]),
                "hash_block_size": st.none(),
                "groups": st.just([{"kind": "full_attention"}]),
                "enable_prefix_caching": st.booleans(),
            },
        ),
        "actions": st.lists(st.one_of(add_requests, steps, steps, others), max_size=12),
    },
    {"title": names},
)


@settings(max_examples=400, deadline=None)
@given(scenarios, st.data())
def test_any_scenario_comes_back_as_it_was_written(written: dict[str, Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(written["actions"])))
    select = data.draw(st.just("") | names)
    scenario = parse_scenario(written)
    before = json.dumps(written)
    code = encode(scenario, at, select)
    link = decode(code, LIMITS)
    assert json.dumps(link.scenario.to_json()) == json.dumps(written) == before  # key order, 1 and 1.0 included
    assert (link.scenario, link.at, link.select) == (scenario, at, select)
    assert encode(link.scenario, at, select) == code
    assert code.isascii()
    assert code.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize("value", [1, 1.0, True, "1", None], ids=repr)
def test_columns_keep_values_of_different_types_apart(value: object) -> None:
    """Only `1` is a valid max_tokens: the codec alone must not make one of the others."""
    actions = [{"do": "add_request", "id": "a", "prompt": [1, 2], "max_tokens": n} for n in [1, value] * 20]
    written = {"version": 1, "config": {"num_blocks": 9}, "actions": actions}
    code = encode(Scenario(1, "", parse_scenario({**written, "actions": []}).config, (Step(),) * 40, written), 0)
    if type(value) is int:
        assert decode(code, LIMITS).scenario.to_json() == written
    else:
        with pytest.raises(ScenarioError, match=r"^actions\[1\]\.max_tokens: "):
            decode(code, LIMITS)


def test_a_scenario_made_in_code_is_written_in_full() -> None:
    scenario = Scenario(1, "t", parse_scenario(simple(0)).config, (Step(), Step(("a",))))
    assert decode(encode(scenario, 2), LIMITS).scenario == scenario


def simple(num_steps: int, **more: object) -> dict[str, Any]:
    return {"version": 1, "config": {"num_blocks": 9}, "actions": [{"do": "step"}] * num_steps, **more}


# Sizes


def golden() -> list[dict[str, Any]]:
    return [json.loads(gzip.decompress(path.read_bytes()))["scenario"] for path in (TESTS / "golden").glob("*.gz")]


def test_ordinary_scenarios_give_short_links() -> None:
    sizes = [len(encode(scenario, len(scenario.actions), "block:17")) for scenario in map(parse_scenario, golden())]
    assert len(sizes) > 150
    assert statistics.median(sizes) < 450
    assert max(sizes) < 700


def test_two_hundred_requests_still_fit() -> None:
    requests = [
        {"do": "add_request", "id": f"r{i}", "max_tokens": 3 + i % 7}
        | {"prompt": [{"shared": "system", "tokens": 64}, {"tokens": 5 + i * i % 300}]}
        for i in range(200)
    ]
    actions = [action for request in requests for action in (request, {"do": "step"}, {"do": "step"})]
    assert len(encode(parse_scenario(simple(0) | {"actions": actions}), 0)) < 2_000


# Links of earlier builds


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("v*.txt")), ids=lambda path: path.stem)
def test_links_of_earlier_builds_still_open(path: Path) -> None:
    """Fixtures are added with each version of the format, and never changed."""
    written = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    link = decode(path.read_text(encoding="utf-8").strip(), LIMITS)
    read = {"at": link.at, "select": link.select, "scenario": link.scenario.to_json()}
    assert json.dumps(read) == json.dumps(written)


def test_there_are_links_of_every_version_in_both_ways_to_write() -> None:
    codes = [path.read_text(encoding="utf-8").strip() for path in FIXTURES.glob("v*.txt")]
    assert {code[0] for code in codes} == {"1"}
    assert {b'"actions":[[[' in inflated(code) for code in codes} == {True, False}


def test_the_dictionary_of_version_1_is_what_it_was() -> None:
    digest = hashlib.sha256(links.DICTIONARY).hexdigest()
    assert digest == "85c749a5674dee1888ba166cf3272ad7ee570fcb9267eda27bfcfa81fed62fa9"


# Hostile codes


def forged(payload: bytes, version: str = "1") -> str:
    """A code with a right checksum around any payload."""
    deflate = zlib.compressobj(9, wbits=-15, zdict=links.DICTIONARY)
    checksum = zlib.crc32(payload).to_bytes(4, "big")[1:]
    packed = checksum + deflate.compress(payload) + deflate.flush()
    return version + base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def forged_json(payload: object) -> str:
    return forged(json.dumps(payload).encode())


def inflated(code: str) -> bytes:
    packed = base64.urlsafe_b64decode(code[1:] + "=" * (-(len(code) - 1) % 4))
    return zlib.decompressobj(-15, zdict=links.DICTIONARY).decompress(packed[3:])


def refusal(code: str, limits: Limits = LIMITS) -> InputError:
    with pytest.raises(InputError) as caught:
        decode(code, limits)
    assert caught.value.expected
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 400
    return caught.value


LINK = Link(parse_scenario(random_json("core", 3)), 3, "block:3")
CODE = encode(LINK.scenario, LINK.at, LINK.select)


def test_a_link_cut_short_anywhere_says_so() -> None:
    for length in range(len(CODE)):
        error = refusal(CODE[:length])
        assert isinstance(error, LinkError), length
        assert (error.code, error.message) == ("malformed_link_cut_short", "the link is cut short: its end is missing")


def test_a_link_with_one_character_changed_never_opens_as_another() -> None:
    for place in range(1, len(CODE)):
        for char in "A_z=é /":
            if CODE[place] != char:
                with suppress(LinkError, LimitError):
                    assert decode(CODE[:place] + char + CODE[place + 1 :], LIMITS) == LINK  # bits behind the end


@pytest.mark.parametrize("version", [*"29AZaz"])
def test_a_link_of_a_newer_version_says_so(version: str) -> None:
    error = refusal(version + CODE[1:])
    assert isinstance(error, LinkError)
    assert (error.code, error.message) == ("newer_link", "this link was made by a newer Poolscope")


@pytest.mark.parametrize(
    "code", ["0" + CODE[1:], "²" + CODE[1:], "-", "é", "\x00", CODE + "A", CODE + "=", CODE + ".", " " + CODE]
)
def test_what_is_no_link_is_broken(code: str) -> None:
    assert refusal(code).code == "malformed_link"


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text().map("1".__add__),
        st.binary().map(lambda data: "1" + base64.urlsafe_b64encode(data).decode().rstrip("=")),
    )
)
def test_nothing_but_named_errors_come_of_random_codes(code: str) -> None:
    refusal(code)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.floats(allow_nan=True) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["do", "id", "step", "x"]), inner),
    max_leaves=12,
)
shapes = st.lists(st.lists(st.sampled_from(["do", "abort", "id"]), max_size=2), max_size=3)
columns = st.lists(st.lists(st.lists(st.sampled_from(["step", ["a"], "a"]), max_size=3), max_size=2), max_size=3)
packed = st.tuples(shapes, st.lists(st.integers(0, 3), max_size=6), columns).map(list)


@settings(max_examples=1000, deadline=None)
@given(
    st.one_of(
        json_values,
        st.tuples(json_values, json_values, json_values | packed).map(
            lambda values: {"at": values[0], "select": values[1], "scenario": simple(0) | {"actions": values[2]}}
        ),
        packed.map(lambda actions: {"at": 0, "select": "", "scenario": simple(0) | {"actions": actions}}),
        st.permutations(["at", "select", "scenario"]).map(lambda keys: {key: simple(1) for key in keys[:2]}),
    )
)
def test_nothing_but_named_errors_come_of_payloads_that_somebody_made(payload: object) -> None:
    with suppress(InputError):
        link = decode(forged_json(payload), LIMITS)
        assert parse_scenario(link.scenario.to_json()) == link.scenario


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b'{"at":0,"at":0}', b"[NaN]", b'"\\ud800"', b"\xef\xbb\xbf{}"])
def test_a_payload_that_is_no_json_is_refused(payload: bytes) -> None:
    assert isinstance(refusal(forged(payload)), ScenarioError)


@pytest.mark.parametrize("depth", [5, 400, *range(900, 1000, 3), 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    for actions in (nested, f'[[["do"]],[0,1],[[{nested}]]]', f'[[["do"]],[0,1],[[[{nested}]]]]', f"[{nested}]"):
        scenario = f'{{"version":1,"config":{{"num_blocks":9}},"actions":{actions}}}'
        refusal(forged(f'{{"at":0,"select":"","scenario":{scenario}}}'.encode()))


def test_a_compression_bomb_is_stopped_while_it_inflates() -> None:
    bomb = forged(b" " * 200_000_000)
    assert len(bomb) < 300_000
    tracemalloc.start()
    error = refusal(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(error, LimitError)
    assert peak < 10_000_000


def in_columns(shapes: object, runs: object, columns: object) -> str:
    return forged_json({"at": 0, "select": "", "scenario": simple(0) | {"actions": [shapes, runs, columns]}})


def test_columns_are_read() -> None:
    shapes = [["do"], ["do", "id"]]
    link = decode(in_columns(shapes, [0, 2, 1, 1, 0, 1], [[["step"]], [["abort"], ["a"]]]), LIMITS)
    assert [action.do for action in link.scenario.actions] == ["step", "step", "abort", "step"]


@pytest.mark.parametrize(
    ("shapes", "runs", "columns"),
    [
        ([["do"]], [0, 10**15], [[["step"]]]),
        ([["do"]], [0, 20_001], [[["step"]]]),
        ([["do"]], [0, 11_000, 0, 11_000], [[["step"]]]),
        ([["do", "id"]], [0, 20_000], [[["abort"], ["x" * 1_000]]]),
        ([["do", "x" * 1_000]], [0, 20_000], [[["abort"], ["x"]]]),
        ([["do", "prompt"]], [0, 20_000], [[["step"], [[[1, 2]] * 100_000]]]),
    ],
)
def test_columns_that_would_unfold_to_too_much_are_over_a_limit(shapes: object, runs: object, columns: object) -> None:
    assert isinstance(refusal(in_columns(shapes, runs, columns)), LimitError)


@pytest.mark.parametrize("keys", [links.MOST_KEYS, links.MOST_KEYS + 1, 5_000])
def test_columns_are_measured_before_they_are_unfolded(keys: int) -> None:
    """Keys times objects would be many millions of values, from a short code."""
    code = in_columns([[f"k{i}" for i in range(keys)]], [0, 20_000], [[[0]] * keys])
    assert len(code) < 20_000
    tracemalloc.start()
    error = refusal(code)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(error, LimitError if keys <= links.MOST_KEYS else LinkError)
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("shapes", "runs", "columns"),
    [
        ([["do"]], [0, 2], [[["step", "step", "step"]]]),
        ([["do"]], [0, 2], [[[]]]),
        ([["do"]], [0, 2], [[]]),
        ([["do"]], [0, 2], []),
        ([["do"]], [0, 2, 0], [[["step"]]]),
        ([["do"]], [1, 2], [[["step"]]]),
        ([["do"]], [0, 0], [[["step"]]]),
        ([["do"]], [0, -1], [[["step"]]]),
        ([["do"]], [0, 1.0], [[["step"]]]),
        ([["do", "do"]], [0, 1], [[["step"], ["step"]]]),
        ([[]], [0, 3], [[]]),
        ([[1]], [0, 1], [[["step"]]]),
        ([["do"]], {}, [[["step"]]]),
        ([["do"]], [0, 1], [{"do": ["step"]}]),
    ],
)
def test_columns_that_do_not_fit_are_refused(shapes: object, runs: object, columns: object) -> None:
    assert isinstance(refusal(in_columns(shapes, runs, columns)), ScenarioError)


def test_limits_hold_for_links() -> None:
    scenario = parse_scenario(simple(30))
    code = encode(scenario, 0)
    assert decode(code, Limits(actions=30)).scenario == scenario
    for limits in (Limits(actions=29), Limits(blocks=8)):
        assert isinstance(refusal(code, limits), LimitError)
    assert isinstance(refusal("1" * (links.MAX_CODE + 1)), LimitError)


def test_the_largest_link_opens_and_a_larger_one_is_not_made() -> None:
    written = simple(0)
    digits = hashlib.shake_256(b"poolscope").hexdigest(995_000)
    actions = [{"do": "add_request", "id": "a", "prompt": {"text": digits}, "max_tokens": 1}]
    scenario = parse_scenario({**written, "actions": actions})
    code = encode(scenario, 1)
    assert len(code) <= links.MAX_CODE
    assert decode(code, LIMITS).scenario == scenario
    actions[0]["prompt"] = {"text": digits + "x" * 11_000}
    with pytest.raises(LimitError, match="a download holds more"):
        encode(parse_scenario({**written, "actions": actions}), 1)


def test_moment_and_selection_are_checked_on_both_sides() -> None:
    scenario = parse_scenario(simple(3))
    with pytest.raises(ScenarioError, match=r"^link\.at: 4 "):
        encode(scenario, 4)
    with pytest.raises(ScenarioError, match=r"^link\.select: "):
        encode(scenario, 3, "x" * 301)
    payload = {"at": 3, "select": "block:1", "scenario": simple(3)}
    assert decode(forged_json(payload), LIMITS).at == 3
    for wrong in (
        {"at": 4},
        {"at": -1},
        {"at": 3.0},
        {"at": None},
        {"select": None},
        {"select": "x" * 301},
        {"more": 1},
    ):
        assert isinstance(refusal(forged_json({**payload, **wrong})), ScenarioError)


def test_the_same_link_is_the_same_code() -> None:
    scenarios = [parse_scenario(written) for written in golden()[:20]]
    assert [encode(s, 1, "block:1") for s in scenarios] == [encode(s, 1, "block:1") for s in scenarios]


def test_a_link_with_a_text_is_checked_with_the_tokenizer() -> None:
    add = {"do": "add_request", "id": "a", "prompt": {"text": "so many words"}, "max_tokens": 1}
    written = {"version": 1, "config": {"num_blocks": 9, "max_model_len": 8}, "actions": [add]}
    code = encode(parse_scenario(written), 0)
    assert decode(code, LIMITS).scenario.to_json() == written
    assert decode(code, LIMITS, lambda _: range(8)).scenario.to_json() == written
    with pytest.raises(ScenarioError, match="the prompt has 13 tokens, more than max_model_len, 8"):
        decode(code, LIMITS, lambda text: range(len(text)))
