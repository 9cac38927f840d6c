"""The quick text of records has the very bytes of the plain one."""

from __future__ import annotations

import gzip
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from app.services.record_text import record_text
from engine.record import dumps
from tests.engine.test_golden import GOLDEN

NAMES = st.text(max_size=8)
USAGES = st.one_of(st.floats(0, 1), st.integers(0, 200_000).map(lambda used: used / 199_999))


def test_golden_records() -> None:
    for path in sorted(GOLDEN.glob("*-0003.json.gz")):
        for record in json.loads(gzip.decompress(path.read_bytes()))["records"]:
            assert record_text(record) == dumps(record)


@given(NAMES, USAGES, USAGES, st.lists(st.integers(0, 2**63 - 1)))
@example("\x7f", 0.0, 1.0, [])
@example('"\\/\b\f\n\u2028é💥', 0.5, 1e-9, [2**63 - 1])
def test_any_name_and_number(name: str, before: float, after: float, blocks: list[int]) -> None:
    state = {"running": [name], "free_queue": blocks, "usage": round(after, 9)}
    record: dict[str, Any] = {
        "action": 3,
        "scheduled": {**state, "usage": round(before, 9)},
        "state": state,
        name: None,
    }
    assert record_text(record) == dumps(record)
    assert record_text(state) == dumps(state)
