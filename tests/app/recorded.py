"""Reads a recording, as the page in it does."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

from app.contexts import Words

HELD = re.compile(r'<script type="application/json\+deflate;base64" id="recording"([^>]*)>([A-Za-z0-9+/=]*)</script>')
MOST_EVENTS = 100


def held_in(page: str) -> dict[str, Any]:
    """What a recording holds beside its page."""
    found = HELD.findall(page)
    assert len(found) == 1
    held: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found[0][1]), wbits=-15))
    return held


class Cards:
    """The cards of blocks, put together from what a recording holds, moment by moment."""

    def __init__(self, held: dict[str, Any], first: int) -> None:
        self.held, self.first = held, first
        self.facts = {block: fact for block, *fact in held["blocks"]}
        self.queue = list(held["free"])
        self.at = first

    def go_on(self) -> None:
        """To the next moment."""
        step = self.at - self.first
        for what, blocks in self.held["moves"][step]:
            if what == "out":
                self.queue = [block for block in self.queue if block not in blocks]
            else:
                self.queue = [*blocks, *self.queue] if what == "front" else [*self.queue, *blocks]
        self.facts |= {block: fact for block, *fact in self.held["changes"][step]}
        self.at += 1

    def card(self, block: int) -> dict[str, Any]:
        """State, ref_cnt, owners, hashes, place and life, in words."""
        nobody: list[Any] = ["free and empty" if block else "null", 0, [], []]
        state, refs, owners, hashes = self.facts.get(block, nobody)
        life = [event for event in self.held["lives"].get(str(block), ()) if event[0] <= self.at]
        shown = life[-MOST_EVENTS:]
        return {
            "state": state,
            "ref_cnt": refs,
            "owners": owners,
            "hashes": hashes,
            "place": self.queue.index(block) if block in self.queue else None,
            "life": [[at, self.label(at), self.words(pieces)] for at, *pieces in shown],
            "before": self.held["earlier"].get(str(block), 0) + len(life) - len(shown),
        }

    def label(self, at: int) -> str:
        before, now = self.held["steps"][at - 1 : at + 1]
        return f"step {now}" if now > before else f"action {at}"

    def words(self, pieces: list[str | int]) -> str:
        return "".join(piece if isinstance(piece, str) else self.held["names"][piece] for piece in pieces)


def plain(words: Words) -> str:
    return "".join(piece.text for piece in words)
