"""From the place that an error names to the stretch of the text: for any JSON, for mistakes in its syntax, for keys."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.json_place import find_place, line_at
from engine.errors import ScenarioError
from engine.strict_json import join, loads

names = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | names,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


def places(value: object, where: str = "") -> Iterator[tuple[str, object]]:
    if where:
        yield where, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, join(where, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, f"{where}[{index}]")


@given(values, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_is_found_at_its_path(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for where, item in places(value):
        mark = find_place(text, where)
        assert mark is not None
        line = line_at(text, mark.line)
        marked = text[mark.start : mark.end]
        assert line[mark.column - 1 :].startswith(marked)
        if indent is None:
            assert json.loads(marked) == item
        else:
            assert json.dumps(item, indent=indent, ensure_ascii=ascii_only).startswith(marked)


SCENARIO = """{
  "version": 1,
  "config": {"num_blocks": 5, "num_blocks": 6},
  "actions": [
    {"do": "step"},
    {"do": "add_request", "id": "a", "prompt": [{"tokens": true}, [1, 2]],
     "max_tokens": 2},
    {"do": "add_request", "prompt": [{"text": ""}]}
  ]
}"""


@pytest.mark.parametrize(
    ("where", "code", "line", "column", "marked"),
    [
        ("actions[1].prompt[0].tokens", "wrong_type", 6, 60, "true"),
        ("actions[1].prompt[1]", "wrong_type", 6, 67, "[1, 2]"),
        ("actions[1].prompt[1][0]", "wrong_type", 6, 68, "1"),
        ("actions[1].max_tokens", "unknown_key", 7, 6, '"max_tokens"'),
        ("config.num_blocks", "duplicate_key", 3, 31, '"num_blocks"'),
        ("config.num_blocks", "wrong_type", 3, 28, "5"),
        ("actions", "over_limit", 4, 14, "["),
        ("actions[1].priority", "wrong_type", 6, 5, SCENARIO.split("\n")[5].strip()),
        ("actions[2]", "missing_key", 8, 5, SCENARIO.split("\n")[7].strip()),
        ("actions[2].prompt.text", "empty_text", 8, 47, '""'),
        ("line 2, column 3", "malformed_json", 2, 3, '"'),
        ("line 4, column 15", "malformed_json", 4, 15, ""),
        ("line 99, column 3", "malformed_json", 10, 2, ""),
    ],
)
def test_a_place_in_a_scenario(where: str, code: str, line: int, column: int, marked: str) -> None:
    mark = find_place(SCENARIO, where, code)
    assert mark is not None
    assert (mark.line, mark.column, SCENARIO[mark.start : mark.end]) == (line, column, marked)


@pytest.mark.parametrize("where", ["", "titel", "[3]"])
def test_what_is_about_the_whole_text_has_no_place(where: str) -> None:
    assert find_place(SCENARIO, where, "wrong_type") is None


@pytest.mark.parametrize(
    ("text", "marked_at"),
    [
        ('{"a": 1,, "b": 2}', (1, 9)),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', (1, 24)),
        ('{"a": [NaN]}', (1, 8)),
        ('{"a": [1e999]}', (1, 8)),
        ('{"a": [\n  ' + "9" * 30 + "]}", (2, 3)),
        ('{"a b": ["\\ud800"]}', (1, 10)),
        ('{"a": "x\ny"}', (1, 9)),
        ('{"é😀": "x",\n "b" 3}', (2, 6)),
        ("[" * 3000, (1, 7)),
        ('{"a": 1', (1, 8)),
        ("", (1, 1)),
    ],
)
def test_what_strict_json_refuses_has_a_place(text: str, marked_at: tuple[int, int]) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    mark = find_place(text, caught.value.where, caught.value.code)
    assert mark is not None
    assert (mark.line, mark.column) == marked_at


def test_a_long_text_is_searched_to_its_end() -> None:
    actions = [{"do": "add_request", "id": f"r{n}", "prompt": [[n, 5]], "max_tokens": 1} for n in range(20_000)]
    text = json.dumps({"actions": actions}, indent=1)
    mark = find_place(text, "actions[19999].prompt[0][1]")
    assert mark is not None
    assert (text[mark.start : mark.end], text[mark.start - 30 : mark.start].split()[-1]) == ("5", "19999,")
