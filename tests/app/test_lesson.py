"""The first lesson as a story: its words say what the engine does."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.gallery import load_lesson
from tests.app.reading import link_in, text_of
from tests.app.test_gallery import Told, numbers, sentences

LESSON = load_lesson()


def test_every_number_in_the_lesson_is_the_engines() -> None:
    tale = Told(LESSON)
    call = tale.call(6, "R")
    assert call.check is not None
    hit, blocks = tale.hit(6, "R")
    held = [block for block in blocks if "holder" in tale.run(6).history.holders[block]]
    free = tale.run(4).pool.num_free_blocks
    kept = len([block for block in tale.hashed(4) if block not in tale.run(4).table("holder")])
    table = tale.run(6).table("R")
    refused = tale.call(15, "second")
    assert refused.gate is not None
    assert not refused.granted
    assert tale.said == [
        [0, len(tale.hashed(2)), tale.run(2).pool.num_free_blocks],
        [tale.hit(4, "holder")[0] / 16, len(tale.run(4).table("holder")), free, kept],
        [hit, tale.prompt(6, "R"), len(blocks), len(held), len(blocks) - len(held)],
        [len(call.popped), table[8], table[-1], table[-1], 228 % 16, 16],
        [refused.gate.needed, refused.gate.headroom, refused.free_before],
    ]
    assert tale.run(2).pool.get_usage() == 0
    assert [not tale.run(6).hashed(block) for block in table] == [False] * 14 + [True]
    assert numbers(LESSON.story) == [tale.prompt(6, "R"), len(blocks), len(call.popped)]


def test_its_stops_stand_where_the_lesson_needs_them() -> None:
    assert [stop.at for stop in LESSON.stops] == [2, 4, 6, 6, 15]
    for text in (LESSON.story, LESSON.look_at, *(stop.note for stop in LESSON.stops)):
        assert text.endswith(".")
    assert all(len(sentences(stop.note)) == 1 for stop in LESSON.stops)


TOUR = [
    ("at=0", "5 stops", LESSON.story, None, "at=2"),
    ("at=2", "1 of 5", LESSON.stops[0].note, None, "at=4&sel=request:holder"),
    ("at=5", "5 stops", LESSON.look_at, "at=4&sel=request:holder", "at=6&sel=request:R"),
    ("at=6&sel=request:R", "3 of 5", LESSON.stops[2].note, "at=4&sel=request:holder", "at=6&sel=block:73"),
    ("at=6&sel=block:73", "4 of 5", LESSON.stops[3].note, "at=6&sel=request:R", "at=15&sel=request:second"),
    ("at=6&sel=block:1", "3 of 5", LESSON.stops[2].note, "at=4&sel=request:holder", "at=6&sel=block:73"),
    ("at=15", "5 of 5", LESSON.stops[4].note, "at=6&sel=block:73", None),
]


@pytest.mark.parametrize(("query", "where", "words", "back", "ahead"), TOUR)
def test_the_tour_tells_where_it_is(
    client: TestClient, query: str, where: str, words: str, back: str | None, ahead: str | None
) -> None:
    page = client.get(f"/story/one-call?{query}")
    assert link_in(page, "tour-back") == (f"?branch=main&{back}" if back else None)
    assert link_in(page, "tour-next") == (f"?branch=main&{ahead}" if ahead else None)
    assert where in text_of(page)
    assert f"hidden>{words}" not in page.text
    assert words in text_of(page)


def test_other_pages_have_no_tour(client: TestClient) -> None:
    for path in ("/new", "/story/one-call/block/3"):
        assert "tour-next" not in client.get(path).text
