"""Small pieces of English: one and many, and names that are written from right to left."""

from __future__ import annotations

import json
import re

from starlette.testclient import TestClient

from app.rendering.words import all_usable, free_then, isolated, told
from app.services.errors import BadValueError
from app.services.links import encode
from engine.scenario import read_scenario

HOSTILE = "a\u202eb\u2066c"


def test_an_id_that_turns_words_turns_only_itself(client: TestClient) -> None:
    config = {"num_blocks": 8, "block_size": 4}
    add = {"do": "add_request", "id": HOSTILE, "prompt": {"tokens": 12}, "max_tokens": 2}
    big = {**add, "id": "\u05d0" + HOSTILE, "prompt": {"tokens": 200}}
    actions = [add, {"do": "step"}, big, {"do": "step"}, {"do": "step"}, {"do": "step"}]
    data = {"version": 1, "title": f"{HOSTILE} title", "config": config, "actions": actions}
    code = encode(read_scenario(json.dumps(data).encode()), 0)
    for at in range(7):
        page = client.get(f"/p/{code}/?at={at}").text
        for place in re.finditer(re.escape(HOSTILE), page):
            before, after = page[: place.start()], page[place.end() :]
            # In an element of its own, the value of a field, data for scripts, or between isolates.
            alone = before.endswith(("\u2068", "\u2068\u05d0")) and after.startswith(
                ("\u2069\u2069", " title\u2069\u2069")
            )
            opened = re.search("<(b|h1|a|bdi)( [^<>]*)?>\u05d0?$", before)
            own = opened and after.startswith((" title</h1>", "</b>", "</a>", "</bdi>"))
            field = re.search(r'(value|&amp;id)="[^"<>]*$', before)
            script = before.rfind("<script") > before.rfind("</script")
            assert alone or own or field or script, before[-80:] + "|" + after[:20]


def test_isolates_are_balanced() -> None:
    assert isolated("R 1") == "R 1"
    assert isolated("\u05d0") == "\u2068\u05d0\u2069"
    assert isolated("a\u2067b") == "\u2068a\u2067b\u2069\u2069"
    assert isolated("a\u2069\u2069b\u2066c\u2069") == "\u2068ab\u2066c\u2069\u2069"


def test_one_and_none_are_told_as_such() -> None:
    assert [free_then(number) for number in (0, 1, 2)] == ["none was free", "1 was free", "2 were free"]
    assert all_usable(1) == "not even the only usable block would be enough"
    assert all_usable(0) == "this pool has no usable block"
    error = BadValueError("How many steps?", "steps", "a whole number from 1 to 1000")
    assert told(error) == "How many steps? Expected: a whole number from 1 to 1000."
