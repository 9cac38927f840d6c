"""A recording's cards say of every block at every moment what the server's cards say, in golden scenarios."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from app.rendering.block_card import block_card
from app.rendering.moment import Moment
from app.rendering.recorded_cards import RecordedCards
from app.services.session import Branch, Session
from tests.app.recorded import Cards, plain
from tests.app.test_every_question import moments
from tests.app.test_figures import GOLDEN, scenario_of


def told(kept: list[Moment], first: int) -> Cards:
    """What a recording from the moment `first` on holds."""
    cards = RecordedCards(kept[first])
    for moment in kept[first + 1 :]:
        cards.add(moment)
    return Cards(orjson.loads(orjson.dumps(cards.told(kept[-1]))), first)


def check(cards: Cards, moment: Moment) -> None:
    assert cards.queue == list(moment.pool.free_queue)
    for block in range(moment.pool.num_blocks):
        card, mine = block_card(moment, block, whole_page=False), cards.card(block)
        assert mine == {
            "state": card.state,
            "ref_cnt": card.ref_cnt,
            "owners": [[owner.number, owner.entry] for owner in card.owners],
            "hashes": [[line.hash, line.parent, line.tokens] for line in card.hashes],
            "place": moment.pool.block(block).place,
            "life": [[event.at, event.label, plain(event.words)] for event in card.life],
            "before": card.life_before,
        }, (moment.at, block)


@pytest.mark.parametrize("path", GOLDEN[::5], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_cards_are_the_servers(path: Path) -> None:
    scenario = scenario_of(path)
    kept = moments(Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions)))
    for first in (0, len(kept) // 2):
        cards = told(kept, first)
        check(cards, kept[first])
        for moment in kept[first + 1 :]:
            cards.go_on()
            check(cards, moment)
