"""JSON that a lenient reader would let pass is refused, with its place."""

import pytest

from engine.errors import ScenarioError
from engine.strict_json import loads


@pytest.mark.parametrize(
    ("text", "code", "where", "words"),
    [
        ("", "malformed_json", "line 1, column 1", "the text is empty"),
        ('{"a": 1,\n "b" 2}', "malformed_json", "line 2, column 6", "not JSON"),
        ("[1] 2", "malformed_json", "line 1, column 5", "not JSON"),
        ('{"a": [1, NaN]}', "malformed_json", "a[1]", "NaN is not JSON"),
        ('{"a": -Infinity}', "malformed_json", "a", "-Infinity is not JSON"),
        ('{"a": 1e999}', "number_too_large", "a", "1e999 is too large"),
        ('{"a": {"b": 1, "b": 1}}', "duplicate_key", "a.b", 'the key "b" is there twice'),
        ('{"a": {"odd key": 1, "odd key": 1}}', "duplicate_key", 'a["odd key"]', "twice"),
        ('{"id": "\\ud800x"}', "lone_surrogate", "id", '"\\ud800x"'),
        ('[{"\\udfff": 1}]', "lone_surrogate", "[0]", '"\\udfff"'),
        ('{"id": "\ud800"}', "lone_surrogate", "id", '"\\ud800"'),
        ('{"a": ' + "9" * 5000 + "}", "number_too_large", "a", "a number of 5000 digits"),
        ('{"a": -' + "9" * 5000 + "}", "number_too_large", "a", "a number of 5000 digits"),
        ('{"a": 9223372036854775808}', "number_too_large", "a", "19 digits"),
        ("\ufeff{}", "malformed_json", "line 1, column 1", "byte order mark"),
        (b"\xef\xbb\xbf{}", "malformed_json", "line 1, column 1", "byte order mark"),
        (b'{"a": "\xff"}', "malformed_json", "byte 7", "not UTF-8"),
        ("[" * 200_000, "malformed_json", "", "nested too deeply"),
    ],
)
def test_what_is_not_strict_json_is_refused(text: str | bytes, code: str, where: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    error = caught.value
    assert (error.code, error.where) == (code, where)
    assert words in error.message
    assert len(str(error)) < 300
    str(error).encode()


def test_strict_json_reads_what_is_right() -> None:
    text = '{"\\ud83d\\ude00": [-9223372036854775807, 0.5, "é", null, true, -0]}'
    assert loads(text) == {"😀": [-(2**63 - 1), 0.5, "é", None, True, 0]}
    assert loads(text.encode()) == loads(text)
