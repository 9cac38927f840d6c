"""What one `schedule()` has decided so far."""

from __future__ import annotations

from engine.kv_cache_coordinator import Blocks
from engine.sched.output import SchedulerOutput

RUNNING_PASS, WAITING_PASS = "running", "waiting"


class Step:
    """Budget left, and what was scheduled, by either pass."""

    __slots__ = ("admitted", "budget", "new_blocks", "output", "preempted", "prefill_seen", "threshold")

    def __init__(self, budget: int, threshold: int) -> None:
        self.budget = budget
        self.threshold = threshold
        self.output = SchedulerOutput()
        self.new_blocks: dict[str, Blocks] = {}
        self.admitted: dict[str, bool] = {}
        """Admissions of this step; True: it had run before."""
        self.preempted = False
        self.prefill_seen = False
        """Whether the running pass went on with a prompt that was cut before (6.3 step 4)."""

    @property
    def num_from_running(self) -> int:
        """Requests that the running pass scheduled."""
        return len(self.output.num_scheduled_tokens) - len(self.admitted)

    def admit(self, request_id: str, tokens: int, blocks: Blocks, *, resumed: bool) -> None:
        """The waiting pass let a request run."""
        self.output.num_scheduled_tokens[request_id] = tokens
        self.new_blocks[request_id] = blocks
        self.admitted[request_id] = resumed
        self.budget -= tokens

    def undo(self, request_id: str) -> int:
        """Take back what a victim was scheduled in this step; its tokens, 0 if none (6.3 step 2b)."""
        tokens = self.output.num_scheduled_tokens.pop(request_id, 0)
        if tokens:
            self.budget += tokens
            self.output.scheduled_spec_decode_tokens.pop(request_id, None)
            del self.new_blocks[request_id]
        return tokens
