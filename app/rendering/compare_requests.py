"""Two branches side by side: the requests that live on either side, in words, with what differs marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from app.contexts import ComparedRequest, Marked
from app.rendering.groups import short_name
from app.rendering.moment import Moment
from app.rendering.transport import doing
from app.rendering.words import count, runs
from engine.actions import Step
from engine.kv_cache_block import NULL_BLOCK
from engine.request import RequestStatus

MOST_ROWS: Final = 24
MOST_TOLD: Final = 2
VERB: Final = {
    "running": "runs",
    "waiting": "waits",
    "loading": "is loading",
    "finished": "has finished",
    "": "is not there",
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The requests that get a row, in order of their numbers, and what is said of the others."""

    shown: list[str]
    more: str


def chosen(a: Moment, b: Moment) -> Chosen:
    """Who holds blocks or runs on either side comes before who waits, who differs before who doesn't."""
    living = sorted(a.scheduler.requests.keys() | b.scheduler.requests.keys(), key=a.number)
    if len(living) <= MOST_ROWS:
        return Chosen(living, "")
    differs = {name for name in living if _tell(a, name) != _tell(b, name)}
    busy = {name for moment in (a, b) for name in living if name in moment.history.hit_blocks or _blocks(moment, name)}
    ranked = sorted(living, key=lambda name: (name not in busy, name not in differs, a.number(name)))
    left = ranked[MOST_ROWS:]
    words = f"{count(len(left), 'more request')}, {len(differs.intersection(left)) or 'none'} of them different"
    return Chosen(sorted(ranked[:MOST_ROWS], key=a.number), words)


def compared(mine: Moment, theirs: Moment, name: str) -> ComparedRequest:
    """One request as it is on this side."""
    here, there = _tell(mine, name), _tell(theirs, name)
    what, other_what = (here.status, here.step), (there.status, there.step)
    size, other_size = (here.tokens, here.blocks), (there.tokens, there.blocks)
    return ComparedRequest(
        id=name,
        number=mine.number(name),
        what=tuple(_marked(what, other_what)),
        size=tuple(_marked(size, other_size)),
        tables=tuple(_tables(mine, theirs, name)),
    )


def _marked(mine: tuple[str, ...], theirs: tuple[str, ...]) -> list[Marked]:
    return [Marked(text, text != other) for text, other in zip(mine, theirs, strict=True) if text]


@dataclass(frozen=True, slots=True)
class _Told:
    status: str
    step: str
    tokens: str
    blocks: str


def _tell(moment: Moment, name: str) -> _Told:
    status, request = _status(moment, name), moment.scheduler.requests.get(name)
    tokens = f"{request.num_computed_tokens} of {request.num_tokens} computed" if request else ""
    held = count(_blocks(moment, name), "block") if request else ""
    return _Told(status or "not there", _step(moment, name), tokens, held.replace("no ", "0 "))


def _status(moment: Moment, name: str) -> str:
    request = moment.scheduler.requests.get(name)
    if request is None:
        return "finished" if name in moment.cursor.simulation.scripts else ""
    if request.status is RequestStatus.RUNNING:
        return "running"
    return "loading" if request in moment.scheduler.loads.holding else "waiting"


def _step(moment: Moment, name: str) -> str:
    """What the step did to a request; "" where the action was no step, or it isn't there."""
    applied = moment.applied
    if applied is None or not isinstance(applied.outcome.action, Step):
        return ""
    trace, output = applied.trace, applied.outcome.output
    if any(one.victim == name for one in trace.preemptions):
        return "preempted"
    refused = [call.shortfall for call in trace.calls if call.request == name and not call.granted]
    if refused:
        return f"refused: {count(refused[-1], 'more free block')} needed"
    tokens = output.num_scheduled_tokens.get(name, 0) if output else 0
    if tokens:
        return f"{count(tokens, 'token')} scheduled"
    return "not scheduled" if name in moment.scheduler.requests else ""


def _blocks(moment: Moment, name: str) -> int:
    return sum(len(table) - table.count(NULL_BLOCK) for table in moment.manager.get_blocks(name))


def _tables(mine: Moment, theirs: Moment, name: str) -> list[Marked]:
    """Its table of each group in words."""
    tables, others = mine.manager.get_blocks(name), theirs.manager.get_blocks(name)
    config = mine.cursor.simulation.config
    told = []
    for group, table in enumerate(tables):
        if not table:
            continue
        differs = group >= len(others) or table != others[group]
        where = f"{short_name(config, group)}: " if len(tables) > 1 else ""
        told.append(Marked(f"{where}{runs(table)}", differs))
    return told or [Marked("holds no block", any(others))]


class Side(Protocol):
    """One of the two."""

    @property
    def moment(self) -> Moment:
        """Where it stands."""

    @property
    def name(self) -> str:
        """What it is called."""


def here(a: Side, b: Side, at: int, blocks: int) -> str:
    """What differs at this moment: "Here, in step 45, second waits in main and runs in gate off. 33 blocks differ."."""
    doings = [doing(side.moment, side.moment.at) for side in (a, b)]
    where = f"Here, in {doings[0]}," if doings[0] == doings[1] else f"Here, after {count(at, 'action')},"
    words = ", ".join(_apart(a, b))
    if not blocks:
        return f"{'Here, at the start,' if not at else where} {words or 'every block is the same in both'}."
    usable = [side.moment.pool.num_blocks - 1 for side in (a, b)]
    many = f"{blocks} of {usable[0]} blocks" if usable[0] == usable[1] else count(blocks, "block")
    differ = f"{many} {'differs' if blocks == 1 else 'differ'}."
    return f"{where} {words}. {differ}" if words else f"{where} {differ}"


def _apart(a: Side, b: Side) -> list[str]:
    """As "second waits in main and runs in gate off"; of many requests the first two."""
    living = sorted(a.moment.scheduler.requests.keys() | b.moment.scheduler.requests.keys(), key=a.moment.number)
    states = [(name, _status(a.moment, name), _status(b.moment, name)) for name in living]
    apart = [(name, mine, theirs) for name, mine, theirs in states if mine != theirs]
    told = [f"{name} {VERB[mine]} in {a.name} and {VERB[theirs]} in {b.name}" for name, mine, theirs in apart]
    return [*told[:MOST_TOLD], f"and so on for {len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else told
