"""The records of a branch as JSON lines, written in slices of CPU time on an engine of their own."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from app.services.session import SLICE_SECONDS
from app.services.sessions import Sessions
from engine.actions import Action
from engine.record import apply_recorded, dumps
from engine.simulation import Simulation

SLICE_BYTES: Final = 1_000_000
"""A slice ends behind the record that goes over it."""


@dataclass(slots=True)
class RecordLines:
    """Executes actions that were executed before, one after the other.

    Attributes:
        simulation: an engine that nobody else uses; it stands before the first of the actions.
        actions: what to execute.
        seconds: CPU time it may take. What is left then is told by a last line in the one shape of errors.
    """

    simulation: Simulation
    actions: Sequence[Action]
    seconds: float
    written: int = 0
    spent: float = 0.0

    async def told(self, sessions: Sessions) -> AsyncIterator[bytes]:
        """Whole lines, some at a time."""
        while self.written < len(self.actions):
            if self.spent > self.seconds:
                yield self._cut_short()
                return
            yield await sessions.in_thread(self._slice)

    def _slice(self) -> bytes:
        start, lines, size = time.thread_time(), list[str](), 0
        while self.written < len(self.actions) and size < SLICE_BYTES and time.thread_time() - start < SLICE_SECONDS:
            lines.append(dumps(apply_recorded(self.simulation, self.actions[self.written])))
            self.written += 1
            size += len(lines[-1])
        self.spent += time.thread_time() - start
        return "".join(f"{line}\n" for line in lines).encode("ascii")

    def _cut_short(self) -> bytes:
        at = self.simulation.num_actions
        told = {
            "code": "too_long",
            "message": f"Writing these records takes longer than one request may: they end before action {at}.",
            "where": f"actions[{at}]",
            "expected": f"from={at} for the rest",
        }
        return f"{dumps({'error': told})}\n".encode("ascii")
