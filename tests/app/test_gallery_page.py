"""The first page: what it links to, and its pictures, which show what the engine holds."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from app.gallery import LESSON, TELLING, TOPICS, every_story
from app.rendering.gallery import gallery
from app.rendering.miniature import MOST_CELLS, laid_out, miniature
from app.rendering.moment import Moment
from app.services.session import Branch
from app.settings import Settings
from app.store import Store
from engine.actions import AddRequest, Step
from engine.config import EngineConfig
from engine.tokens import Own
from tests.app.reading import figures_of, tags_of, text_of
from tests.app.test_gallery import Told

STORIES = every_story()


def cards_of(client: TestClient, query: str = "") -> list[str]:
    """The links of the stories that are shown."""
    shown, links = False, []
    for tag, attributes in tags_of(client.get(f"/{query}")):
        if tag == "li" and "story" in (attributes.get("class") or ""):
            shown = "hidden" not in attributes
        elif tag == "a" and (attributes.get("href") or "").startswith("story/") and "id" not in attributes and shown:
            links.append(str(attributes["href"]))
    return links


def test_it_offers_the_lesson_a_blank_session_and_every_story(client: TestClient, settings: Settings) -> None:
    page = client.get("/")
    words = text_of(page)
    hrefs = [attributes.get("href") for tag, attributes in tags_of(page) if tag == "a"]
    assert {"story/one-call", "new"} <= set(hrefs)
    assert [href.partition("?")[0] for href in cards_of(client)] == [
        f"story/{slug}" for slugs in TOPICS.values() for slug in slugs
    ]
    for story in STORIES.values():
        assert story.title in words
        if story.slug != LESSON:
            assert story.story in words
    assert "9 blocks of 16" in words
    assert Store(settings.data).count() == (0, 0)


@pytest.mark.parametrize("slug", STORIES)
def test_a_card_opens_at_the_stop_that_it_draws(client: TestClient, slug: str) -> None:
    story = STORIES[slug]
    assert 0 <= TELLING[slug] < len(story.stops)
    card = next((card for card in gallery("").cards if card.slug == slug), gallery("").lesson)
    page = client.get(f"/{card.href}")
    assert figures_of(page)["at"] == story.telling.at
    assert story.telling.note in text_of(page)


def test_a_topic_shows_its_stories_alone(client: TestClient) -> None:
    for name, slugs in TOPICS.items():
        key = re.sub("[^a-z]+", "-", name.lower())
        assert [href.partition("?")[0].removeprefix("story/") for href in cards_of(client, f"?topic={key}")] == [*slugs]
        current = [
            attributes for _, attributes in tags_of(client.get(f"/?topic={key}")) if "aria-current" in attributes
        ]
        assert [attributes["data-topic"] for attributes in current] == [key]
    assert len(cards_of(client, "?topic=<nothing>")) == 24
    assert "<nothing>" not in client.get("/?topic=<nothing>").text


@pytest.mark.parametrize("slug", STORIES)
def test_a_miniature_shows_the_engines_state(slug: str) -> None:
    story = STORIES[slug]
    card = next((card for card in gallery("").cards if card.slug == slug), gallery("").lesson)
    run = Told(story).run(story.telling.at)
    cells = [cell for row in card.miniature.rows for cell in row]
    assert [cell.block for cell in cells] == list(range(1, story.scenario.config.num_blocks))
    for cell in cells:
        assert cell.block is not None
        owners = run.history.holders.get(cell.block, ())
        hashed = run.hashed(cell.block)
        assert (cell.owners, cell.hashed) == (len(owners), hashed)
        assert cell.state == (["empty", "cached"][hashed] if not owners else "held" if len(owners) == 1 else "shared")
        assert len(cell.hues) == min(len(owners), 2)
    held = sum(cell.state in ("held", "shared") for cell in cells)
    assert f"{held} of {len(cells)} blocks held" in card.miniature.alt


def test_the_rings_of_the_watermark_story() -> None:
    card = next(card for card in gallery("").cards if card.slug == "watermark")
    assert [cell.block for row in card.miniature.rows for cell in row if cell.changed] == [4]
    assert card.miniature.rings == ((0, 3, 1),)


def test_the_lessons_call_has_the_numbers_of_its_trace(client: TestClient) -> None:
    picture = gallery("").picture
    assert [(part.kind, part.tokens, part.start) for part in picture.parts] == [
        ("new_comp", 128, 0),
        ("new", 100, 128),
        ("later", 72, 228),
    ]
    assert picture.ticks == (("comp", 0), ("ext_comp", 128), ("lookahead", 228))
    assert [cell.block for cell in picture.cells] == [*range(1, 9), *range(67, 74), None, None, None, None]
    assert [cell.state for cell in picture.cells[:3]] == ["shared", "shared", "held"]
    assert (picture.hits, picture.filled) == (8, 4)
    path = ["17 + 5 ≤ 40", "0", "13", "13 + 5 ≤ 40", "8", "7", "6"]
    assert [stop.number for stop in picture.path] == path
    assert "17 + 5 ≤ 40" in text_of(client.get("/"))


def moment_of(num_blocks: int, tokens: int) -> Moment:
    branch = Branch(EngineConfig(num_blocks, max_model_len=10**6, max_num_batched_tokens=10**6))
    branch.append(AddRequest("a", (Own(tokens),), 5))
    branch.append(Step())
    return Moment(branch.head, branch.columns, branch.actions, "", "")


def test_a_large_pool_is_200_equal_slices_in_the_state_of_most_of_their_blocks() -> None:
    picture = miniature(moment_of(2001, 16 * 1005))  # 1005 blocks held: half a slice more than 100
    cells = [cell for row in picture.rows for cell in row]
    assert len(cells) == MOST_CELLS
    assert [cell.state for cell in cells] == ["held"] * 101 + ["empty"] * 99
    assert [cell.block for cell in cells] == [None] * 200
    assert sum(cell.changed for cell in cells) == 101
    uneven = [cell for row in miniature(moment_of(100_000, 16)).rows for cell in row]
    assert len(uneven) == MOST_CELLS


@pytest.mark.parametrize(
    ("blocks", "columns", "pitch"), [(1, 1, 36), (8, 4, 36), (32, 11, 24), (60, 15, 14), (200, 29, 9)]
)
def test_cells_are_as_large_as_fits(blocks: int, columns: int, pitch: int) -> None:
    picture = laid_out([*([gallery("").blank.rows[0][0]] * blocks)], "")
    assert (len(picture.rows[0]), picture.pitch) == (columns, pitch)
    assert sum(map(len, picture.rows)) == blocks
    assert len(picture.rows) * pitch <= 72


def test_the_blank_session(client: TestClient, settings: Settings) -> None:
    page = client.get("/new")
    data = figures_of(page)
    assert (data["at"], data["pool"]["num_blocks"], data["queue"]["free"]) == (0, 101, 100)
    assert "Blank session" in text_of(page)
    assert Store(settings.data).count() == (0, 0)
    answer = client.post("/new/add", data={"at": "0", "id": "A", "tokens": "40", "max_tokens": "2"})
    assert (answer.status_code, Store(settings.data).count()) == (303, (1, 1))
    assert figures_of(client.get("/new"))["at"] == 0
