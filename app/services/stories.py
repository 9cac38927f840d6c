"""What happened to each request, and why each step admitted no more, in compact columns: for the Why? cards."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.services.cursor import Applied
from engine.actions import AddRequest
from engine.sched.step import WAITING_PASS

WHAT: Final = ("added", "looked_up", "refused", "admitted", "resumed", "preempted", "finished")
NAMES: Final = ("action", "value", "other", "earlier")
NONE: Final = -1
MOST: Final = 2**63 - 1
"""What a value can be; a shortfall can be larger, for a lookahead may be as long as numbers go."""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """Something that happened to a request in an action.

    `value`: looked_up: tokens hit; refused: how many more blocks were missing; admitted, resumed: tokens computed
    before; preempted: tokens of that step that were taken back. `other`: for whom it was preempted; None: for a reset.
    """

    what: str
    action: int
    value: int
    other: str | None


@dataclass(frozen=True, slots=True)
class WaitingHalt:
    """Why the waiting pass of a step ended, and before whom."""

    reason: str
    request: str | None


class Stories:
    """One branch's requests. `numbers` is the branch's own mapping from ids to numbers."""

    def __init__(self, numbers: Mapping[str, int], names: list[str]) -> None:
        self._numbers = numbers
        self._names = names
        self._last_of: dict[int, int] = {}
        self._what = array("B")
        self._columns = {name: array("q" if name == "value" else "i") for name in NAMES}
        self._reasons: list[str] = []
        self._halts = array("h", [NONE])
        """By moment: the reason's place in `_reasons`; -1 if no waiting pass ended early in the action before."""
        self._halted = array("i", [NONE])

    def fork(self, numbers: Mapping[str, int], names: list[str], at: int) -> Stories:
        """An independent copy of the first `at` actions, over the copied names."""
        rows = bisect_left(self._columns["action"], at)
        twin = Stories(numbers, names)
        twin._what, twin._reasons = self._what[:rows], self._reasons[:]
        twin._columns = {name: column[:rows] for name, column in self._columns.items()}
        twin._halts, twin._halted = self._halts[: at + 1], self._halted[: at + 1]
        for number, last in self._last_of.items():
            while last >= rows:
                last = self._columns["earlier"][last]
            if last != NONE:
                twin._last_of[number] = last
        return twin

    def absorb(self, applied: Applied) -> None:
        """Fold in the next action."""
        action, trace = applied.outcome.index, applied.trace
        if isinstance(applied.outcome.action, AddRequest):
            self._put(action, "added", applied.outcome.action.id, 0)
        for lookup in trace.lookups:
            self._put(action, "looked_up", lookup.request, lookup.num_tokens)
        for call in trace.calls:
            if not call.granted:
                self._put(action, "refused", call.request, call.shortfall)
        for admission in trace.admissions:
            self._put(action, "resumed" if admission.resumed else "admitted", admission.request, admission.computed)
        for preemption in trace.preemptions:
            self._put(action, "preempted", preemption.victim, preemption.undone, preemption.by)
        for finish in trace.finishes:
            self._put(action, "finished", finish.request, 0)
        halt = next((halt for halt in trace.halts if halt.in_pass == WAITING_PASS), None)
        self._halts.append(NONE if halt is None else self._reason(halt.reason))
        self._halted.append(NONE if halt is None or halt.request is None else self._numbers[halt.request])

    def _reason(self, reason: str) -> int:
        if reason not in self._reasons:
            self._reasons.append(reason)
        return self._reasons.index(reason)

    def _put(self, action: int, what: str, request: str, value: int, other: str | None = None) -> None:
        number, row, columns = self._numbers[request], len(self._what), self._columns
        self._what.append(WHAT.index(what))
        columns["action"].append(action)
        columns["value"].append(min(value, MOST))
        columns["other"].append(NONE if other is None else self._numbers[other])
        columns["earlier"].append(self._last_of.get(number, NONE))
        self._last_of[number] = row

    def of(self, request: str, until: int) -> Iterator[RequestEvent]:
        """What happened to a request in the first `until` actions, latest first."""
        row = self._last_of.get(self._numbers.get(request, NONE), NONE)
        columns = self._columns
        while row != NONE:
            action, other = columns["action"][row], columns["other"][row]
            if action < until:
                name = None if other == NONE else self._names[other]
                yield RequestEvent(WHAT[self._what[row]], action, columns["value"][row], name)
            row = columns["earlier"][row]

    def latest(self, request: str, until: int, *what: str) -> RequestEvent | None:
        """The latest of these events since the request was added last; None if there is none."""
        for event in self.of(request, until):
            if event.what in what:
                return event
            if event.what == "added":
                return None
        return None

    def halt(self, moment: int) -> WaitingHalt | None:
        """Why the waiting pass of the step that led to a moment ended early; None: it didn't."""
        reason, halted = self._halts[moment], self._halted[moment]
        if reason == NONE:
            return None
        return WaitingHalt(self._reasons[reason], None if halted == NONE else self._names[halted])
