"""Where two branches part, in one sentence."""

from __future__ import annotations

from typing import Final, Protocol

from app.contexts import Piece, Words
from app.rendering.moment import Moment
from app.rendering.transport import doing
from app.rendering.words import count, runs
from app.services.columns import Notable
from app.services.comparing import Parting
from app.services.session import Branch

NAME: Final = -1
"""The number of a piece that is a name, but of a branch."""


class Side(Protocol):
    """One of the two."""

    @property
    def branch(self) -> Branch:
        """Replayed to its end."""

    @property
    def moment(self) -> Moment:
        """Any of it."""

    @property
    def name(self) -> str:
        """What it is called."""


Told = list[str | Piece]


def sentence(a: Side, b: Side, part: Parting | None) -> Words:
    """As "They part in step 11: second is refused in main; in gate off it gets 7 blocks."."""
    return tuple(piece if isinstance(piece, Piece) else Piece(piece) for piece in _sentence(a, b, part))


def _sentence(a: Side, b: Side, part: Parting | None) -> Told:
    if part is None:
        return ["They do not differ: every action does the same in both."]
    k = part.at - 1
    if part.kind == "end":
        shorter, longer = (a, b) if a.branch.end < b.branch.end else (b, a)
        ends: Told = [_of(shorter), f" ends after {k}, ", _of(longer), " goes on."]
        return ["They do not differ as far as both go: ", *ends]
    if part.kind == "action":
        on: Told = [_of(a), f" goes on with {doing(a.moment, part.at)}, ", _of(b), f" with {doing(b.moment, part.at)}."]
        return [f"They part after {count(k, 'action')}: ", *on]
    return [f"They part in {doing(a.moment, part.at)}: ", *_how(a, b, part.kind, k), "."]


def _of(side: Side) -> Piece:
    return Piece(side.name, NAME)


def _how(a: Side, b: Side, kind: str, k: int) -> Told:
    mine, theirs = a.branch.columns, b.branch.columns
    if kind == "notable":
        return _notably(a, b, k)
    if kind == "scheduled":
        tokens = mine.scheduled[k + 1], theirs.scheduled[k + 1]
        return [_of(a), f" schedules {count(tokens[0], 'token')}, ", _of(b), f" {tokens[1] or 'none'}"]
    if kind == "queues":
        lists = [(columns.running[k + 1] or "none", columns.waiting[k + 1] or "none") for columns in (mine, theirs)]
        here: Told = [f"{lists[0][0]} running and {lists[0][1]} waiting in ", _of(a)]
        return [*here, f", {lists[1][0]} and {lists[1][1]} in ", _of(b)]
    taken = [[event.block for event in side.branch.columns.events(k) if event.what == "popped"] for side in (a, b)]
    if taken[0] != taken[1]:
        words = [f"{count(len(blocks), 'block')} ({runs(blocks)})" if blocks else "no block" for blocks in taken]
        return [_of(a), f" takes {words[0]} from the free queue, ", _of(b), f" {words[1]}"]
    counts = [len(side.branch.columns.events(k)) for side in (a, b)]
    same = f"the same blocks are taken, but {counts[0]} things happen to blocks in "
    return [same, _of(a), f" and {counts[1]} in ", _of(b)]


def _notably(a: Side, b: Side, k: int) -> Told:
    """What was notable, or only on one side."""
    found = [side.branch.columns.notable.get(k, ()) for side in (a, b)]
    if all(found):
        return [*_things(found[0]), " in ", _of(a), ", ", *_things(found[1]), " in ", _of(b)]
    side, other = (a, b) if found[0] else (b, a)
    things = found[0] or found[1]
    where: Told = [*_things(things), " in ", _of(side)]
    if len(things) == 1 and things[0].what == "refused" and (got := _given(other, k, things[0].request)):
        return [*where, "; in ", _of(other), f" it gets {got}"]
    return [*where, ", and not in ", _of(other)]


def _given(side: Side, k: int, request: str | None) -> str:
    """Which blocks a request got in an action: "7 blocks, 2 of them hits"; "" for none."""
    events = [event.what for event in side.branch.columns.events(k) if event.request == request]
    new, hits = events.count("popped"), events.count("touched")
    if not new + hits:
        return ""
    return count(new + hits, "block") + (f", {hits} of them {'a hit' if hits == 1 else 'hits'}" if hits else "")


def _things(notable: tuple[Notable, ...]) -> Told:
    """As "R is refused, S finishes and 2 more"; nothing is []."""
    told: Told = []
    for one in notable[:3]:
        told += [", "] if told else []
        if one.request is None:
            told.append(f"{count(one.count, 'hash', 'hashes')} evicted")
        else:
            told += [Piece(one.request, NAME), " finishes" if one.what == "finished" else f" is {one.what}"]
    return [*told, f" and {len(notable) - 3} more"] if len(notable) > 3 else told
