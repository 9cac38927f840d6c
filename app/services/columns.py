"""What a branch remembers of every action, in compact columns: for marks, for `was`, and for the life of each block.

Folded once from each action as it is executed first; a session that is loaded again rebuilds them by its replay.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from app.services.aspects import Aspects
from app.services.cursor import Applied, BlockCounts, Cursor
from app.services.series import Series
from app.services.stories import Stories
from engine.actions import AddRequest, Step
from engine.kv_cache_block import Key
from engine.step_trace import BlockEvent

WHAT = ("popped", "evicted", "touched", "hashed", "freed", "let_go", "copied", "held", "moved")
WHY = (
    "",
    "new",
    "hit",
    "full",
    "partial",
    "longer prefix",
    "window",
    "preempted",
    "finished",
    "aborted",
    "stopped",
    "reset",
    "copied",
)
CODES = {(what, why): i * len(WHY) + j for i, what in enumerate(WHAT) for j, why in enumerate(WHY)}
NONE = -1


@dataclass(frozen=True, slots=True)
class Notable:
    """Something worth a mark in the time line; `what`: finished, refused, preempted or evicted."""

    what: str
    request: str | None
    count: int = 1


class Columns:
    """One branch's memory. Index k of a column by action is the action k; by moment, the moment after k actions."""

    def __init__(self, start: BlockCounts) -> None:
        self.counts: list[BlockCounts] = [start]
        """By moment."""
        self.steps = array("I", [0])
        """By moment: how many of the actions so far were steps."""
        self.last_call = array("i", [NONE])
        """By moment: the latest moment whose action made a call; -1 if none."""
        self.waiting = array("I", [0])
        """By moment: requests that wait."""
        self.running = array("I", [0])
        """By moment: requests that run."""
        self.scheduled = array("I", [0])
        """By moment: tokens scheduled by the action that led there."""
        self.changed = array("I", [0])
        """By moment: how many blocks the action that led there changed."""
        self.notable: dict[int, tuple[Notable, ...]] = {}
        """By action, only where there is something."""
        self.noted = {what: array("I") for what in ("finished", "refused", "preempted", "evicted")}
        """By kind of what is notable: the actions in which it happened."""
        self.numbers: dict[str, int] = {}
        """Request id -> its number in order of first add."""
        self._names: list[str] = []
        self._added_in = array("I")
        """By number of a request: the action of its first add."""
        self.series = Series(start)
        self.stories = Stories(self.numbers, self._names)
        self.aspects = Aspects(start)
        self._last_of: dict[int, int] = {}
        self._did = array("q")
        """By action: a hash of all that it did to blocks; alike in this process only."""
        self._columns = {
            name: array("i") for name in ("action", "block", "request", "group", "before", "after", "place")
        }
        self._kind = array("B")
        self._earlier = array("i")
        self._keys: dict[int, tuple[Key, ...]] = {}
        self._whys: dict[int, str] = {}
        """Reasons that are none of the usual ones."""

    def __len__(self) -> int:
        return len(self.counts) - 1

    def fork(self, at: int | None = None) -> Columns:
        """An independent copy, of the first `at` actions."""
        at = len(self) if at is None else at
        rows = bisect_left(self._columns["action"], at)
        requests = bisect_left(self._added_in, at)
        twin = object.__new__(Columns)
        twin.counts, twin.steps, twin.last_call = self.counts[: at + 1], self.steps[: at + 1], self.last_call[: at + 1]
        twin.waiting, twin.running = self.waiting[: at + 1], self.running[: at + 1]
        twin.scheduled, twin.changed = self.scheduled[: at + 1], self.changed[: at + 1]
        twin.notable = {action: notable for action, notable in self.notable.items() if action < at}
        twin.noted = {what: actions[: bisect_left(actions, at)] for what, actions in self.noted.items()}
        twin._names, twin._added_in = self._names[:requests], self._added_in[:requests]
        twin.numbers = {name: number for number, name in enumerate(twin._names)}
        twin.series, twin.stories = self.series.fork(at), self.stories.fork(twin.numbers, twin._names, at)
        twin.aspects = self.aspects.fork(at)
        twin._columns = {name: column[:rows] for name, column in self._columns.items()}
        twin._did = self._did[:at]
        twin._kind, twin._earlier = self._kind[:rows], self._earlier[:rows]
        twin._keys = {row: keys for row, keys in self._keys.items() if row < rows}
        twin._whys = {row: why for row, why in self._whys.items() if row < rows}
        twin._last_of = {block: row for block, last in self._last_of.items() if (row := self._before(last, rows)) >= 0}
        return twin

    def _before(self, row: int, rows: int) -> int:
        """The latest row of the same block among the first `rows`; -1 if there is none."""
        while row >= rows:
            row = self._earlier[row]
        return row

    def last_step(self, moment: int) -> int | None:
        """The moment after the last step among the first `moment` actions; None if there was none."""
        return bisect_left(self.steps, self.steps[moment], 0, moment + 1) if self.steps[moment] else None

    def absorb(self, applied: Applied, cursor: Cursor) -> None:
        """Fold in the next action, which has just led `cursor` to where it stands."""
        outcome, trace, now = applied.outcome, applied.trace, cursor.counts
        assert outcome.index == len(self), (outcome.index, len(self))
        if isinstance(outcome.action, AddRequest) and outcome.action.id not in self.numbers:
            self.numbers[outcome.action.id] = len(self.numbers)
            self._names.append(outcome.action.id)
            self._added_in.append(outcome.index)
        self.counts.append(now)
        self.steps.append(self.steps[-1] + isinstance(outcome.action, Step))
        waiting, running = cursor.queues
        self.waiting.append(waiting)
        self.running.append(running)
        self.scheduled.append(sum(outcome.output.num_scheduled_tokens.values()) if outcome.output else 0)
        self.changed.append(len(applied.changed_blocks))
        self.last_call.append(outcome.index + 1 if trace.calls else self.last_call[-1])
        if notable := tuple(_notable(applied)):
            self.notable[outcome.index] = notable
            for what in {one.what for one in notable}:
                self.noted[what].append(outcome.index)
        self.series.absorb(
            now,
            outcome.prefix_cache,
            running=running,
            waiting=waiting,
            preempted=len(trace.preemptions),
            reset=bool(outcome.reset),
        )
        self.stories.absorb(applied)
        self.aspects.absorb(applied, cursor)
        first = len(self._kind)
        for event in applied.events:
            self._remember(outcome.index, event)
        told = (self._columns[name][first:].tobytes() for name in ("block", "request", "group", "after"))
        self._did.append(hash((self._kind[first:].tobytes(), *told)))

    def _remember(self, action: int, event: BlockEvent) -> None:
        row, columns = len(self._kind), self._columns
        code = CODES.get((event.what, event.why))
        if code is None:
            code, self._whys[row] = CODES[event.what, ""], event.why
        self._kind.append(code)
        columns["action"].append(action)
        columns["block"].append(event.block)
        columns["request"].append(NONE if event.request is None else self.numbers[event.request])
        columns["group"].append(event.group)
        columns["before"].append(event.ref_before)
        columns["after"].append(event.ref_after)
        columns["place"].append(NONE if event.place is None else event.place)
        self._earlier.append(self._last_of.get(event.block, NONE))
        self._last_of[event.block] = row
        if event.keys:
            self._keys[row] = event.keys

    def events(self, action: int) -> list[BlockEvent]:
        """What an action did to which block, in order."""
        return [self._event(row) for row in self._rows(action)]

    def does_the_same(self, other: Columns, action: int) -> bool:
        """Whether an action did the same to every block, request and queue in both branches."""
        now = action + 1
        if (self.waiting[now], self.running[now], self.scheduled[now]) != (
            other.waiting[now],
            other.running[now],
            other.scheduled[now],
        ) or self.notable.get(action) != other.notable.get(action):
            return False
        return self._did[action] == other._did[action]

    def _rows(self, action: int) -> range:
        column = self._columns["action"]
        return range(bisect_left(column, action), bisect_left(column, action + 1))

    def life(self, block: int, until: int) -> Iterator[tuple[int, BlockEvent]]:
        """What happened to a block in the first `until` actions, latest first, each with its action."""
        row = self._last_of.get(block, NONE)
        while row != NONE:
            if self._columns["action"][row] < until:
                yield self._columns["action"][row], self._event(row)
            row = self._earlier[row]

    def _event(self, row: int) -> BlockEvent:
        value = {name: column[row] for name, column in self._columns.items()}
        what, why = divmod(self._kind[row], len(WHY))
        return BlockEvent(
            value["block"],
            WHAT[what],
            self._whys.get(row, WHY[why]),
            None if value["request"] == NONE else self._names[value["request"]],
            value["group"],
            value["before"],
            value["after"],
            None if value["place"] == NONE else value["place"],
            self._keys.get(row, ()),
        )


def _notable(applied: Applied) -> Iterator[Notable]:
    trace = applied.trace
    evicted = sum(event.what == "evicted" for event in applied.events)
    yield from (Notable("preempted", preemption.victim) for preemption in trace.preemptions)
    preempted = {preemption.by for preemption in trace.preemptions}
    yield from (
        Notable("refused", call.request) for call in trace.calls if not call.granted and call.request not in preempted
    )
    yield from (Notable("finished", finish.request) for finish in trace.finishes)
    if evicted:
        yield Notable("evicted", None, evicted)
