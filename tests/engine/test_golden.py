"""The engine decides as the real scheduler did: golden records, equal in every field and byte for byte (0.5, 0.6)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from engine.record import Record, apply_recorded, dumps
from engine.scenario import parse_scenario
from tests.engine.helpers import ONE_GROUP_FAMILIES, random_json, simulation_of

GOLDEN = Path(__file__).parent.parent / "golden"
FAMILIES = (*ONE_GROUP_FAMILIES, "window", "chunked", "hybrid", "mamba", "partial", "connector")
FILES = [GOLDEN / "one-call.json.gz", *(path for family in FAMILIES for path in sorted(GOLDEN.glob(f"{family}-*")))]


def name(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


def difference(got: Record, want: dict[str, Any]) -> str:
    """Which fields of which action differ, and how."""
    fields = [key for key in {**want, **got} if got.get(key) != want.get(key)]
    shown = "".join(f"\n  {key}\n    got  {got.get(key)}\n    want {want.get(key)}" for key in fields)
    return f"action {want['action']} ({want['do']}) differs in {', '.join(fields) or 'the order of its keys'}{shown}"


@pytest.mark.parametrize("path", FILES, ids=name)
def test_records_are_those_of_the_real_scheduler(path: Path) -> None:
    text = gzip.decompress(path.read_bytes()).decode("ascii")
    golden = json.loads(text)
    scenario = parse_scenario(golden["scenario"])
    simulation = simulation_of(scenario, none_hash=bytes.fromhex(golden["none_hash"]))
    got = []
    for action, want in zip(scenario.actions, golden["records"], strict=True):
        got.append(apply_recorded(simulation, action))
        assert dumps(got[-1]) == dumps(want), difference(got[-1], want)
    assert dumps({"scenario": scenario.to_json(), "none_hash": golden["none_hash"], "records": got}) == text


def test_every_family_has_its_twelve_scenarios() -> None:
    handed = {name(path) for path in GOLDEN.glob("*.json.gz")}
    assert handed == {f"{family}-{seed:04d}" for family in FAMILIES for seed in range(12)} | {"one-call"}
    assert len(FILES) == 12 * len(FAMILIES) + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_oracle_makes_the_golden_scenarios(family: str) -> None:
    for seed in range(12):
        text = gzip.decompress((GOLDEN / f"{family}-{seed:04d}.json.gz").read_bytes())
        assert json.loads(text)["scenario"] == random_json(family, seed)
