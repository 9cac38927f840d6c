"""What the cards of blocks say at every moment of a recording: `static/recording/cards.js` puts them together.

A card changes when something happens to its block; only its place in the free queue changes with others, so the
queue's order is told once and then what left and entered it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from app.contexts import Words
from app.rendering.block_card import MOST_EVENTS, MOST_OWNERS, event_words, hash_line, owner_of, state_words
from app.rendering.moment import Moment
from engine.kv_cache_block import NULL_BLOCK
from engine.trace import Entry

Data = dict[str, Any]
MOST_BEFORE: Final = 50_000
"""Events before a recording that are told in all, the latest ones of each block."""


class RecordedCards:
    """Takes the moments of a recording one after the other."""

    def __init__(self, moment: Moment) -> None:
        """From the first moment."""
        pool = moment.pool
        told = set(moment.history.holders).union(*(pool.cached.blocks(key) for key in pool.cached))
        self._free = list(pool.free_queue)
        self._blocks = _facts(moment, sorted(told))
        self._moves: list[list[list[Any]]] = []
        self._changes: list[list[list[Any]]] = []
        self._lives: dict[int, list[list[Any]]] = {}
        self._earlier: Counter[int] = Counter()
        self._tell_past(moment)

    def _tell_past(self, moment: Moment) -> None:
        """Events up to the first moment."""
        most = min(MOST_EVENTS, MOST_BEFORE // moment.pool.num_blocks)
        for block in range(moment.pool.num_blocks):
            life = moment.columns.life(block, moment.at)
            latest = [[action + 1, *_pieces(event_words(moment, event))] for action, event in islice(life, most)]
            if latest:
                self._lives[block] = latest[::-1]
            if left := sum(1 for _ in life):
                self._earlier[block] = left

    def add(self, moment: Moment) -> None:
        """The next moment."""
        applied = moment.applied
        assert applied is not None
        self._moves.append(list(_moves(applied.outcome.log)))
        self._changes.append(_facts(moment, sorted(moment.changed)))
        for event in applied.events:
            told = [moment.at, *_pieces(event_words(moment, event))]
            self._lives.setdefault(event.block, []).append(told)

    def told(self, moment: Moment) -> Data:
        """All of it; `moment` is any of the branch."""
        return {
            "names": list(moment.columns.numbers),
            "steps": list(moment.columns.steps),
            "free": self._free,
            "blocks": self._blocks,
            "moves": self._moves,
            "changes": self._changes,
            "lives": {str(block): life for block, life in self._lives.items()},
            "earlier": {str(block): count for block, count in self._earlier.items()},
        }


def _facts(moment: Moment, blocks: Iterable[int]) -> list[list[Any]]:
    """[block, state, ref_cnt, [[request, entry], …], [[hash, parent, tokens], …]] of each but the null block."""
    return [_fact(moment, block) for block in blocks if block != NULL_BLOCK]


def _fact(moment: Moment, block_id: int) -> list[Any]:
    block = moment.pool.block(block_id)
    holders = moment.history.holders.get(block_id, ())[:MOST_OWNERS]
    owners = [owner_of(moment, name, block_id) for name in holders]
    hashes = [hash_line(moment, key) for key in moment.pool.keys_of(block_id)]
    return [
        block_id,
        state_words(block),
        block.ref_cnt,
        [[owner.number, owner.entry] for owner in owners],
        [[line.hash, line.parent, line.tokens] for line in hashes],
    ]


def _moves(log: Iterable[Entry]) -> Iterator[list[Any]]:
    """["out", blocks], ["front", blocks] (the first of them stands at the head then) and ["back", blocks], in order."""
    for entry in log:
        match entry:
            case ("touch", _, blocks, _, places):
                gone = [block for block, place in zip(blocks, places, strict=True) if place is not None]
                yield from [["out", gone]] if gone else []
            case ("pop", _, blocks, _):
                yield from [["out", list(blocks)]] if blocks else []
            case ("free", _, _, front, back, _, _):
                yield from [["front", list(front)]] if front else []
                yield from [["back", list(back)]] if back else []


def _pieces(words: Words) -> list[str | int]:
    """A sentence in which a request is its number."""
    return [piece.text if piece.number is None else piece.number for piece in words]
