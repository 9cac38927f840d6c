"""The actions of a scenario (0.3).

Each keeps the JSON it was read from, so that files and links give back what was written.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, TypeAlias

from engine.tokens import Part, Span

DEFAULT_ACCEPT: Final = (0,)
DEFAULT_LOAD_STEPS: Final = 2


def _source() -> dict[str, object]:
    return {}


@dataclass(frozen=True, slots=True)
class External:
    """What the connector's store holds of a request (0.3, 7.15).

    Attributes:
        tokens: the first so many tokens of the prompt.
        is_async: whether they are loaded while the request waits.
        steps: how many steps an async load takes; less than 1 means 1.
    """

    tokens: int
    is_async: bool = False
    steps: int = DEFAULT_LOAD_STEPS

    def to_json(self) -> dict[str, object]:
        """The object as one writes it."""
        return {"tokens": self.tokens, "async": self.is_async, "steps": self.steps}


@dataclass(frozen=True, slots=True)
class AddRequest:
    """A request arrives. `output` is what the model will say; None takes `default_output`.

    `accept`: how many of its drafts are right, over and over in this order (0.4). `source` is the JSON it was read
    from, or {}; it takes no part in comparisons.
    """

    do: ClassVar[str] = "add_request"

    id: str
    prompt: tuple[Part, ...]
    max_tokens: int
    output: tuple[Span, ...] | None = None
    stop_token_ids: tuple[int, ...] = ()
    priority: int = 0
    cache_salt: str | None = None
    lora: str | None = None
    skip_reading_prefix_cache: bool = False
    accept: tuple[int, ...] = DEFAULT_ACCEPT
    external: External | None = None
    source: dict[str, object] = field(default_factory=_source, compare=False, repr=False)

    @property
    def carries_external(self) -> bool:
        """Whether the key `external` was written, be it null: one such action gives the scenario a connector (0.4)."""
        return self.external is not None or "external" in self.source

    def output_spans(self, nth: int, drafts: int) -> tuple[Span, ...]:
        """What the model will say; `nth`: which add_request this is, from 1; `drafts`: k."""
        return self.output or (default_output(nth, self.max_tokens, drafts),)

    def with_prompt(self, spans: tuple[Span, ...]) -> "AddRequest":
        """The same request with its prompt written in spans."""
        source = {**self.to_json(), "prompt": [span.to_json() for span in spans]}
        return replace(self, prompt=spans, source=source)

    def to_json(self) -> dict[str, object]:
        """The action as it was written, or else in full."""
        if self.source:
            return self.source
        written: dict[str, object] = {"do": self.do, "id": self.id, "prompt": [part.to_json() for part in self.prompt]}
        written["max_tokens"] = self.max_tokens
        if self.output:
            written["output"] = [span.to_json() for span in self.output]
        if self.accept != DEFAULT_ACCEPT:
            written["accept"] = list(self.accept)
        if self.stop_token_ids:
            written["stop_token_ids"] = list(self.stop_token_ids)
        if self.external is not None:
            written["external"] = self.external.to_json()
        for key in ("priority", "cache_salt", "lora", "skip_reading_prefix_cache"):
            if value := getattr(self, key):
                written[key] = value
        return written


@dataclass(frozen=True, slots=True)
class Step:
    """One engine step; the requests in `abort` are aborted while it runs (0.4)."""

    do: ClassVar[str] = "step"

    abort: tuple[str, ...] = ()
    source: dict[str, object] = field(default_factory=_source, compare=False, repr=False)

    def to_json(self) -> dict[str, object]:
        """The action as it was written, or else in full."""
        return self.source or {"do": self.do, **({"abort": list(self.abort)} if self.abort else {})}


@dataclass(frozen=True, slots=True)
class Abort:
    """A request is aborted between steps; an unknown id does nothing (6.9)."""

    do: ClassVar[str] = "abort"

    id: str
    source: dict[str, object] = field(default_factory=_source, compare=False, repr=False)

    def to_json(self) -> dict[str, object]:
        """The action as it was written, or else in full."""
        return self.source or {"do": self.do, "id": self.id}


@dataclass(frozen=True, slots=True)
class ResetPrefixCache:
    """The prefix cache is emptied, with `reset_running_requests` after preempting everybody (6.10)."""

    do: ClassVar[str] = "reset_prefix_cache"

    reset_running_requests: bool = False
    source: dict[str, object] = field(default_factory=_source, compare=False, repr=False)

    def to_json(self) -> dict[str, object]:
        """The action as it was written, or else in full."""
        running: dict[str, object] = {"reset_running_requests": True} if self.reset_running_requests else {}
        return self.source or {"do": self.do, **running}


Action: TypeAlias = AddRequest | Step | Abort | ResetPrefixCache


def default_output(nth: int, max_tokens: int, drafts: int = 0) -> Span:
    """What the model says by default: long enough to answer `drafts` drafts at every step (0.3).

    Args:
        nth: which add_request of the scenario it is, from 1.
        max_tokens: of the request.
        drafts: k.
    """
    return Span(1_000_000 + 100_000 * nth, max_tokens + max(64, drafts + 1))
