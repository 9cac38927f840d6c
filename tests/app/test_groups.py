"""Several groups on the page: log, stages, tables and lists, with values from golden scenarios."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.contexts import Call, Stage
from app.rendering.block_card import block_card
from app.rendering.calls import calls
from app.rendering.figures import figures
from app.rendering.groups import group_name, names_of, short_name
from app.rendering.log import log
from app.rendering.moment import Moment
from app.rendering.transport import config_summary
from app.rendering.words import plain
from app.services.session import Branch, Session
from engine.actions import AddRequest, Step
from engine.config import EngineConfig, GroupConfig
from engine.scenario import parse_scenario
from engine.tokens import Span
from tests.app.reading import text_of

GOLDEN = Path(__file__).parent.parent / "golden"


def golden(name: str, at: int) -> Moment:
    """A moment of a golden scenario."""
    scenario = parse_scenario(json.loads(gzip.decompress((GOLDEN / f"{name}.json.gz").read_bytes()))["scenario"])
    return moment_of(Branch(scenario.config, scenario.actions), at)


def moment_of(branch: Branch, at: int) -> Moment:
    branch.advance(branch.head, at, 60)
    return Moment.of(Session("x", "", b"", branch), branch.head)


def told(moment: Moment, *kinds: str) -> list[str]:
    return [plain(sentence.words) for sentence in log(moment).sentences if sentence.kind in kinds]


def call_of(moment: Moment, request: str) -> Call:
    return next(call for call in calls(moment).calls if call.request == request)


def stage_of(moment: Moment, request: str, name: str) -> Stage:
    return next(stage for stage in call_of(moment, request).stages if stage.name == name)


def formulas(stage: Stage) -> list[tuple[str, str]]:
    return [
        (formula.label, " ".join(f"{term.sign}{term.value} {term.name}" for term in formula.terms))
        for formula in stage.formulas
    ]


def rows(stage: Stage) -> list[tuple[str, list[int]]]:
    return [(row.caption, [chip.block for chip in row.chips]) for row in stage.rows]


def tables_of(moment: Moment) -> dict[tuple[str, int], dict[str, Any]]:
    return {(table["id"], table["group"]): table for table in figures(moment, None)["tables"]}


def cells(table: dict[str, Any]) -> list[tuple[int, str]]:
    return [(cell[1], cell[2]) for cell in table["cells"]]


# ---- the lookup


def hybrid_branch() -> Branch:
    """Full attention B = 4 and a window of 8, B = 8: the example of 7.6."""
    groups = (GroupConfig("full_attention", 4), GroupConfig("sliding_window", 8, sliding_window=8))
    config = EngineConfig(40, block_size=4, max_model_len=64, groups=groups)
    first, second = AddRequest("a", (Span(1, 30),), 1), AddRequest("b", (Span(1, 21),), 1)
    return Branch(config, [first, Step(), second, Step()])


def test_a_lookup_is_told_as_its_rounds() -> None:
    assert told(moment_of(hybrid_branch(), 4), "lookup") == [
        "b found 16 of its 21 tokens in 5 cached blocks. No longer one ends before the last token, which is always "
        "computed: hits end at multiples of 8 tokens.",
        "Round 1: full attention found 20 tokens, cut to 16 by alignment; sliding window found 16.",
    ]


def test_a_block_that_eagle_drops_is_told() -> None:
    branch = hybrid_branch()
    eagle = EngineConfig(40, block_size=4, max_model_len=64, groups=branch.config.groups, use_eagle=True)
    assert told(moment_of(Branch(eagle, branch.actions), 4), "lookup")[1] == (
        "Round 1: full attention found 5 blocks, of which EAGLE drops the last: 16 tokens; sliding window found 2 "
        "blocks, of which EAGLE drops the last: 8."
    )


@pytest.mark.parametrize(
    ("name", "at", "sentences"),
    [
        (
            "hybrid-0004",
            23,
            [
                "Round 1: full attention found 32 tokens; sliding window (group 1) found 32; sliding window (group 2) "
                "found 32.",
                "Round 2, up to 32 tokens: sliding window (group 1) found 32 tokens; sliding window (group 2) found "
                "32.",
            ],
        ),
        (
            "hybrid-0009",
            4,
            ["Round 1: full attention found 48 tokens; sliding window (groups 1, 2) found 48."],
        ),
        (
            "mamba-0010",
            30,
            [
                "r6 found 32 of its 74 tokens in 5 cached blocks. The first miss from the end of Mamba, …884a, was "
                "never cached before.",
                "Round 1: full attention found 56 tokens; Mamba found 32.",
                "Some groups still hold a longer prefix, 56 tokens; others lost it.",
            ],
        ),
    ],
)
def test_who_cut_it_to_what(name: str, at: int, sentences: list[str]) -> None:
    said = told(golden(name, at), "lookup")
    assert [sentence for sentence in said if sentence in sentences] == sentences


# ---- the stages


def test_counts_and_gate_of_each_group() -> None:
    moment = golden("chunked-0001", 10)
    assert formulas(stage_of(moment, "r2", "gate")) == [
        ("", "1 full +0 chunked =1 in all"),
        ("", "1 for all 137 tokens +6 watermark ≤49 free"),
    ]
    assert formulas(stage_of(moment, "r2", "count")) == [
        ("full", "9 ⌈135 ÷ 16⌉ −0 held −8 hit +0 idle hits =1 to take"),
        ("chunked", "9 ⌈135 ÷ 16⌉ −0 held −8 hit +0 idle hits =1 to take"),
        ("", "1 full +1 chunked =2 to take"),
    ]


def test_the_gate_asks_for_no_more_than_a_window_holds_at_once(client: TestClient) -> None:
    """⌈(32 − 1 + 32) ÷ 16⌉ + 1 = 5 blocks, where all 118 tokens would take eight (5.3)."""
    words = text_of(client.get("/story/window-holes?at=7"))
    assert "sliding window holds at most 5 blocks at once: no more are asked for" in words
    assert "at once: no more are asked for" not in text_of(client.get("/story/one-call?at=6"))


def test_what_fell_out_of_a_window() -> None:
    moment = golden("hybrid-0000", 22)
    release = stage_of(moment, "r6", "release")
    assert release.side == "1 block"
    assert rows(release) == [("sliding window: fell out of the window, the last one first", [6])]
    assert "1 block of r6 fell out of the sliding window: 6." in told(moment, "blocks")
    assert [move["why"] for move in figures(moment, None)["queue"]["in"]] == [
        "left the window of r6; hashed, so to the back"
    ]
    assert "1 block of r1 fell out of the attention chunk: 15." in told(golden("chunked-0001", 10), "blocks")
    assert "1 block of r4 with older Mamba states went back: 22." in told(golden("partial-0001", 15), "blocks")


def test_touched_popped_and_hashed_blocks_of_each_group() -> None:
    moment = golden("hybrid-0000", 22)
    assert rows(stage_of(moment, "r7", "touch")) == [
        ("full attention: ref 1 → 2", [5, 10, 22, 20]),
        ("sliding window: ref 1 → 2", [23, 24]),
    ]
    assert rows(stage_of(moment, "r6", "pop")) == [("full attention", [25]), ("sliding window", [26])]
    assert rows(stage_of(moment, "r6", "hash")) == [("full attention", [20]), ("sliding window", [24])]
    assert told(moment, "event") == [
        "BlockStored: 1 hash, 16 tokens, parent …e9e6, full attention.",
        "BlockStored: 1 hash, 16 tokens, parent …e9e6, sliding window.",
    ]
    assert "r7 took 2 blocks, 27 for full attention and 28 for sliding window; nothing was evicted." in told(
        moment, "blocks"
    )


def test_a_partial_hit_with_its_source_and_copy() -> None:
    moment = golden("partial-0001", 15)
    assert told(moment, "copy", "zero") == [
        "r5 hit only 8 of the 16 tokens of block 8, full attention: it writes on in a copy, 26.",
        "r5 hit only 8 of the 16 tokens of block 14, Mamba: it writes on in a copy, 27.",
        "To be zeroed before use: 4, 26.",
    ]
    assert formulas(stage_of(moment, "r5", "count"))[1] == (
        "Mamba",
        "2 ⌈32 ÷ 16⌉ −0 held −2 hit +1 idle hit +1 copy =2 to take",
    )
    assert stage_of(moment, "r5", "pop").note == (
        "none carried a hash. 26 becomes a copy of 8. 27 becomes a copy of 14."
    )
    assert rows(stage_of(moment, "r4", "hash")) == [
        ("full attention: the prefix of 180 tokens ends in it", [4]),
        ("Mamba: the prefix of 180 tokens ends in it", [5]),
    ]


def test_a_producer_copies_its_state_away() -> None:
    (sentence,) = told(golden("mamba-0006", 3), "copy")
    assert sentence.startswith("r1 writes on in block ")
    assert sentence.endswith("and its hash moves there.")


def test_a_state_that_is_only_being_made() -> None:
    moment = golden("mamba-0003", 8)
    call = call_of(moment, "r3")
    assert plain(call.verdict) == "Refused for now. r3 hits a state that is only being made in this step."
    gate = stage_of(moment, "r3", "gate")
    assert formulas(gate) == [("", "2 full +92 Mamba =94 in all"), ("", "94 for all 125 tokens +0 watermark >81 free")]
    assert (gate.bar, gate.note.partition(":")[0]) == (
        None,
        "The state that it hits is only being made in this step and can't be read yet",
    )
    assert "r3 was refused: the state that it hits is only being made in this step." in told(
        moment, "blocks", "refusal"
    )


def test_reserved_blocks_in_the_check() -> None:
    moment = golden("connector-0005", 28)
    check = stage_of(moment, "r7", "check")
    assert formulas(check) == [("", "6 to take +0 watermark ≤25 free −1 reserved")]
    assert check.note == "reserved: what requests that load or prefill still need"
    assert plain(call_of(moment, "r7").verdict) == "Granted. r7 takes 6 new blocks; 23 tokens come from the connector."


# ---- tables, names and cards


def test_the_tables_of_each_group() -> None:
    moment = golden("partial-0001", 15)
    tables = tables_of(moment)
    assert figures(moment, None)["groups"] == [
        {"name": "full attention", "short": "full", "block_size": 16},
        {"name": "Mamba", "short": "Mamba", "block_size": 16},
    ]
    assert cells(tables["r5", 0]) == [(1, "hit"), (26, "copy")]
    assert cells(tables["r5", 1]) == [(0, "null"), (27, "copy")]
    assert tables["r5", 0]["note"] == "block 26 holds 16 of 16 tokens, 8 of them copied from 8"
    assert tables["r5", 1]["note"] == "block 27: the state after 32 tokens"
    assert cells(tables["r4", 1])[:2] == [(0, "null"), (0, "null")]


def test_blocks_that_are_being_loaded() -> None:
    assert tables_of(golden("connector-0011", 6))["r1", 0]["note"] == "these blocks are being loaded"


def test_a_card_names_the_group() -> None:
    card = block_card(golden("hybrid-0000", 22), 24, whole_page=False)
    assert [owner.entry for owner in card.owners] == ["entry 3, sliding window", "entry 3, sliding window"]
    assert [line.tokens for line in card.hashes] == ["tokens 48 to 63, sliding window"]
    assert any("handed out to" in plain(event.words) and "sliding window" in plain(event.words) for event in card.life)


def test_names_of_groups() -> None:
    window = GroupConfig("sliding_window", 8, sliding_window=8)
    config = EngineConfig(9, groups=(GroupConfig("full_attention", 16), window, window, GroupConfig("mamba", 16)))
    assert [group_name(config, group) for group in range(4)] == [
        "full attention",
        "sliding window (group 1)",
        "sliding window (group 2)",
        "Mamba",
    ]
    assert [short_name(config, group) for group in range(4)] == ["full", "window 1", "window 2", "Mamba"]
    assert names_of(config, (1, 2)) == "sliding window (groups 1, 2)"
    assert config_summary(config) == "9 blocks, 4 groups"
    two = EngineConfig(9, groups=(GroupConfig("full_attention", 16), window))
    assert config_summary(two) == "9 blocks, full attention of 16 and sliding window of 8"
    assert config_summary(EngineConfig(9, groups=(window,))) == "9 blocks of 8 tokens, sliding window"
