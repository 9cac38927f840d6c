"""The schema of records: every golden record obeys it, and whatever a record can't be is refused."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from engine.record import apply_recorded
from engine.record_schema import record_definitions, record_schema
from engine.scenario import parse_scenario
from tests.engine.helpers import simulation_of
from tests.engine.test_golden import FAMILIES, GOLDEN

Tree = dict[str, Any]
VALIDATOR = Draft202012Validator(record_schema())
ONE_CALL: Any = json.loads(gzip.decompress((GOLDEN / "one-call.json.gz").read_bytes()))["records"]
STEP: Any = next(record for record in ONE_CALL if record["do"] == "step")


@pytest.mark.parametrize("family", FAMILIES)
def test_golden_records_obey(family: str) -> None:
    for path in sorted(GOLDEN.glob(f"{family}-*")):
        for record in json.loads(gzip.decompress(path.read_bytes()))["records"]:
            assert [error.message for error in VALIDATOR.iter_errors(record)] == []


def test_keys_stand_in_the_order_of_records() -> None:
    reset = {"do": "reset_prefix_cache"}
    add = {"do": "add_request", "id": "a", "prompt": [10, 5], "max_tokens": 1}
    written = {"version": 1, "config": {"num_blocks": 5, "max_num_batched_tokens": 128}, "actions": [add, reset]}
    scenario = parse_scenario(written)
    simulation = simulation_of(scenario)
    records = [*(apply_recorded(simulation, action) for action in scenario.actions), STEP]
    definitions: Any = record_definitions()
    for record in records:
        kinds = [kind for kind in definitions["record"]["oneOf"] if kind["properties"]["do"]["const"] == record["do"]]
        assert [list(kind["properties"]) for kind in kinds] == [list(record)]
    assert list(definitions["state"]["properties"]) == list(STEP["state"])
    assert list(definitions["allocate_slots"]["properties"]) == list(STEP["allocate_slots"][0])


def _no_key(record: Tree) -> None:
    del record["state"]["usage"]


def _another_key(record: Tree) -> None:
    record["allocate_slots"][0]["colour"] = "red"


def _null_block_in_use(record: Tree) -> None:
    record["state"]["ref_cnt"]["0"] = 1


def _short_hash(record: Tree) -> None:
    record["state"]["cached"] = [["abc", 0, [1]]]


def _unknown_event(record: Tree) -> None:
    record["events"] = [["moved", ["0123456789abcdef"], 0]]


def _unknown_action(record: Tree) -> None:
    record["do"] = "jump"


@pytest.mark.parametrize(
    "spoil", [_no_key, _another_key, _null_block_in_use, _short_hash, _unknown_event, _unknown_action]
)
def test_what_is_no_record_is_refused(spoil: Callable[[Tree], None]) -> None:
    record = copy.deepcopy(STEP)
    assert VALIDATOR.is_valid(record)
    spoil(record)
    assert not VALIDATOR.is_valid(record)
