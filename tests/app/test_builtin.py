"""The built-in scenario "One call, traced" shows the numbers that the issue asks for, at every moment."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.app.reading import figures_of, text_of


def at(client: TestClient, moment: int) -> dict[str, Any]:
    return figures_of(client.get(f"/story/one-call?at={moment}"))


def table(data: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(table for table in data["tables"] if table["id"] == name)
    return found


@pytest.mark.parametrize(
    ("moment", "free", "entries"), [(6, 27, 15), (7, 23, 19), (8, 23, 19), (11, 23, 19), (12, 22, 20), (13, 22, 20)]
)
def test_free_blocks_and_table_of_r(client: TestClient, moment: int, free: int, entries: int) -> None:
    data = at(client, moment)
    assert data["queue"]["free"] == free
    assert table(data, "R")["total"] == entries
    assert data["usage"]["now"] == (100 - free) / 100


def test_before_r_40_blocks_are_free_and_6_of_its_prefix_lie_idle(client: TestClient) -> None:
    data = at(client, 5)
    assert (data["queue"]["free"], data["queue"]["hashed"]) == (40, 6)
    states = {"live": 60, "cached": 6, "empty": 34}
    slots = {"filled": 945, "held": 960, "all": 1600}
    assert data["blocks"] == {**states, "was": states, "slots": slots}
    assert [cell[0] for cell in data["queue"]["head"][-6:]] == [8, 7, 6, 5, 4, 3]


def test_admission_takes_13_though_7_blocks_are_new(client: TestClient) -> None:
    data = at(client, 6)
    touched, popped = data["queue"]["out"]
    assert (touched["blocks"], touched["end"], touched["total"]) == ([8, 7, 6, 5, 4, 3], "tail", 6)
    assert (popped["blocks"], popped["end"], popped["total"]) == ([67, 68, 69, 70, 71, 72, 73], "head", 7)
    cells = table(data, "R")["cells"]
    assert [cell[2] for cell in cells] == ["hit"] * 8 + ["new"] * 7
    assert cells[-1] == [14, 73, "new", 4, 1, 0]
    assert data["usage"] == {"now": 0.73, "was": 0.6, "watermark_at": 0.95, "mark": "watermark at 0.95"}
    assert data["requests"] == ["warm", "holder", "R"]
    assert data["hashes"]["total"] == 71


def test_the_call_in_words(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call?at=6"))
    assert "Granted. R reuses 8 cached blocks and takes 7 new ones." in words
    assert "The free queue gives up 13: 6 idle hits and 7 from its head." in words
    assert "With the watermark of 5 that is 18 of 40; 22 to spare." in words
    assert "fits, 18 to spare" in words
    assert "73 has 4 of 16 tokens: not yet" in words
    assert "free 40 → 27" in words


def test_the_refusal_in_words(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call?at=15"))
    assert "Refused. second needs 38 blocks, and 21 more would have to be free." in words
    assert "The whole sequence of 600 tokens takes 38 blocks and 5 must stay behind: 43. Only 22 are free." in words
    assert "Waiting pass: admission stops" in words
    assert "21 more free blocks needed" in words
    assert "not reached" in words


def test_the_log_tells_the_step(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call?at=6"))
    assert "Scheduled 101 tokens of 2048: holder 1, R 100." in words
    assert "R found 128 of its 300 tokens in 8 cached blocks." in words
    assert "R took 7 blocks, 67–73; nothing was evicted." in words
    assert "R stops at 100, the long-prefill threshold; 72 left." in words
    assert "BlockStored: 6 hashes, 96 tokens, parent …" in words


def test_the_start_is_empty(client: TestClient) -> None:
    data = at(client, 0)
    assert (data["at"], data["pool"]["cells"], data["tables"], data["hashes"]["chains"]) == (0, [], [], [])
    assert data["queue"]["head"][:3] == [[1, 0, 0], [2, 0, 0], [3, 0, 0]]
    assert client.get("/story/one-call").text == client.get("/story/one-call?branch=main&at=0").text


def test_a_block_tells_its_life(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call/block/3?at=6"))
    assert "handed out to warm, from place 3 of the free queue" in words
    assert "freed by warm, which finished" in words
    assert "hit by R, which took it from place 40 of the free queue; ref_cnt 0 → 1" in words
    assert "tokens 32 to 47" in words
    assert "hit by R" not in text_of(client.get("/story/one-call/block/3?at=5"))


def test_frames_and_pages_hold_the_same_partials(client: TestClient) -> None:
    for moment in range(16):
        page, frame = client.get(f"/story/one-call?at={moment}"), client.get(f"/story/one-call/frame?at={moment}")
        assert figures_of(page) == figures_of(frame)
        for words in ("Scheduled", "Granted", "Refused", "Waiting", "Running"):
            assert (words in text_of(page)) == (words in text_of(frame)), words
