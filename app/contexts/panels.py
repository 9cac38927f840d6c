"""What is asked for on demand: a call of the step, a probe, a Why? card, help while composing a request."""

from __future__ import annotations

from dataclasses import dataclass

from app.contexts.calls import Call, Calls
from app.contexts.moment import View, Words
from app.contexts.pages import Field


@dataclass(frozen=True, slots=True)
class CallContext:
    """call.html: the calls of the step with another one chosen."""

    view: View
    calls: Calls
    whole_page: bool


@dataclass(frozen=True, slots=True)
class ProbeContext:
    """probe.html: `allocate_slots` with the reader's own arguments, on a copy."""

    view: View
    requests: tuple[str, ...]
    """Living ids, the waiting ones first, at most 200 and the chosen one."""
    request: str
    """The chosen one; "" if nobody lives."""
    fields: tuple[Field, ...]
    """The seven arguments in vLLM's order: what was typed ("" = left out), and as hint what is passed then."""
    call: Call | None
    """The answer; its `index` is -1. None: nothing was asked yet, or it was refused."""
    note: Words
    """What the scheduler would do before or instead of this call; () if there is nothing to say."""
    proof: str
    """That the state is unchanged; "" without an answer."""
    error: str
    """What is wrong with the choice of the request, or with no field in particular."""
    whole_page: bool


@dataclass(frozen=True, slots=True)
class WhyFact:
    """A fact that an answer rests on."""

    label: str
    """Short: "asked for", "step 3", "first block that differs"."""
    words: Words
    query: str | None = None
    """Leads to the moment that it tells of."""
    block: int | None = None
    """A block that it tells of."""


@dataclass(frozen=True, slots=True)
class WhyContext:
    """why.html: one question, one sentence of answer, and what it rests on."""

    view: View
    about: str
    """waiting, hit, preempted or usage."""
    head: str
    """The question: "Why is second waiting?"."""
    answer: Words
    facts: tuple[WhyFact, ...]
    whole_page: bool


@dataclass(frozen=True, slots=True)
class DraftContext:
    """draft.html: what the request in the composer would be if it were added now."""

    view: View
    words: str
    """Which way to give the prompt counts, tokens, blocks, and the hit; "" where something is wrong."""
    problem: str
    """What is wrong so far; "" if nothing is."""
    whole_page: bool
