"""The scripted outside world of a scenario (behaviour 0.3, 0.4).

What the model says, what the drafter proposes, what a connector holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.actions import External
from engine.request import Request
from engine.tokens import Span, tokens_of

WRONG_DRAFT = 7


@dataclass(slots=True)
class Script:
    """What the model will say for one request, and how far it got."""

    prompt: tuple[Span, ...]
    output_spans: tuple[Span, ...]
    accept: tuple[int, ...]
    output: Sequence[int] = field(init=False)
    num_output: int = 0
    """Tokens sampled and kept so far; stays after the request ended."""
    drafted: int = 0
    """How many times drafts were proposed for it."""

    def __post_init__(self) -> None:
        spans = self.output_spans
        one = len(spans) == 1
        self.output = range(spans[0].first, spans[0].first + spans[0].count) if one else tokens_of(spans)

    def so_far(self) -> list[Span]:
        """Prompt and output so far, in spans: what the next turn continues."""
        spans, left = list(self.prompt), self.num_output
        for span in self.output_spans:
            if left > 0:
                spans.append(Span(span.first, min(span.count, left)))
            left -= span.count
        return spans

    def sample(self, request: Request, drafts: Sequence[int]) -> list[int]:
        """The leading right drafts and one token more; nothing behind a prefill chunk (0.4 step 3)."""
        if request.num_computed_tokens < request.num_tokens:
            return []
        done = request.num_tokens - request.num_prompt_tokens
        truth = list(self.output[done : done + len(drafts) + 1])
        right = 0
        while right < len(drafts) and drafts[right] == truth[right]:
            right += 1
        return truth[: right + 1]

    def drafts(self, k: int) -> list[int]:
        """The next `k` drafts: as many right ones as `accept` says, then wrong ones (0.4 step 6)."""
        right = self.accept[self.drafted % len(self.accept)]
        self.drafted += 1
        truth = self.output[self.num_output : self.num_output + k]
        return [token if place < right else WRONG_DRAFT for place, token in enumerate(truth)]

    def fork(self) -> Script:
        """An independent copy."""
        twin = object.__new__(Script)
        for name in Script.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin


class ScriptedConnector:
    """A store that holds the first tokens of some prompts; an asynchronous load takes some steps (0.4)."""

    def __init__(self) -> None:
        self.plans: dict[str, External] = {}
        self.loading: dict[str, int] = {}
        """Request -> steps left, in the order the loads began."""

    def fork(self) -> ScriptedConnector:
        """An independent copy."""
        twin = ScriptedConnector()
        twin.plans, twin.loading = self.plans.copy(), self.loading.copy()
        return twin

    def get_num_new_matched_tokens(self, request: Request, num_local: int) -> tuple[int, bool]:
        """Tokens behind the local ones; nothing for a request that was ever preempted."""
        plan = self.plans.get(request.request_id)
        if plan is None or request.num_preemptions:
            return 0, False
        most = min(plan.tokens, request.num_tokens - (0 if plan.is_async else 1))
        tokens = max(0, most - num_local)
        return tokens, plan.is_async and tokens > 0

    def start_load(self, request: Request) -> None:
        """Begin to count down."""
        self.loading[request.request_id] = self.plans[request.request_id].steps

    def finish_step(self) -> list[str]:
        """One step has run: the loads that are complete, in the order they began."""
        for name in self.loading:
            self.loading[name] -= 1
        done = [name for name, left in self.loading.items() if left <= 0]
        for name in done:
            del self.loading[name]
        return done
