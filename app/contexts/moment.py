"""One moment: where time stands, the requests, the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a sentence; a request's id carries its `number` and is set apart."""

    text: str
    number: int | None = None


Words = tuple[Piece, ...]
"""A sentence in pieces, to be written one behind the other without spaces between."""


@dataclass(frozen=True, slots=True)
class View:
    """Which moment of which branch is shown."""

    base: str
    """What every relative URL but `?…` starts with: "SESSION/" on `/s/SESSION`, "" on `/p/CODE/`."""
    title: str
    branch: str
    at: int
    """K: actions executed."""
    end: int
    """n: actions there are."""
    query: str
    """`?branch=main&at=K` of this moment."""
    summary: str
    """The config in a few words: "101 blocks of 16 tokens, watermark 5 blocks"."""
    makes: str = ""
    """What acting here makes, in a sentence: a branch, a session of one's own, or both; "" where it only goes on."""
    recorded: bool = False
    """It stands in a file: there is no server that could be asked anything or told to act."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One action on the time line.

    `kind`: step, add, abort or reset; `notable`: finished, refused, preempted, evicted.
    """

    at: int
    query: str
    kind: str
    label: str
    """In words: "step 3", "+ R", "abort R", "reset"."""
    notable: tuple[str, ...]
    note: str
    """The notable things in words: "warm finished"; "" if there are none."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Something notable on a long time line: the first of several neighbours; `notable` as in `Mark`."""

    at: int
    notable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UntilStop:
    """A condition that a run may be told to stop at, and where it would, as far as that is recorded."""

    what: str
    """finish, preempt, refuse, evict or idle."""
    sign: str
    """As on the time line; "idle" for the empty waiting queue."""
    words: str
    at: int | None
    """The moment; None: nothing that is recorded meets it."""
    where: str
    """ "step 14"; "here" where it is met already."""
    who: str
    """ "second", "6 hashes"; "" where there is nobody to name."""
    further: str
    """ "4 on"."""


@dataclass(frozen=True, slots=True)
class Transport:
    """Where time stands and where it can go; a query is None where there is nothing to go to."""

    first: str | None
    back: str | None
    forward: str | None
    """The recorded next moment; None at the end."""
    last: str | None
    label: str
    """ "after 6 of 15"."""
    doing: str
    """What the action just executed was: "step 3", "add_request R"; "the start" at 0."""
    marks: tuple[Mark, ...]
    """The actions around this moment, at most 60 in all, in order."""
    before: int
    """Actions before the first mark that are not listed."""
    after: int
    """Actions behind the last mark that are not listed."""
    ticks: tuple[Tick, ...]
    """What is notable in the whole of it, where not all actions have marks."""
    branch: str
    """The name of the branch."""
    branches: int
    """How many there are."""
    instead: bool
    """Whether a step would differ from the action recorded here."""
    until: tuple[UntilStop, ...]


@dataclass(frozen=True, slots=True)
class BarPart:
    """A part of a token bar, in tokens.

    `kind`: comp, new_comp, ext_comp, new, lookahead, or later (known but not reached).
    """

    kind: str
    tokens: int


@dataclass(frozen=True, slots=True)
class WhyLink:
    """A question that a Why? card answers; `query` is whole, as `?branch=main&at=3&about=waiting&id=R`."""

    label: str
    query: str


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A living request."""

    id: str
    number: int
    status: str
    tag: str
    """What this action did to it in one word.

    added, admitted, resumed, preempted, refused, loading; "" if nothing of these.
    """
    tokens: int
    """Known: prompt and output so far."""
    prompt_tokens: int
    output_tokens: int
    computed: int
    now: int
    """Tokens scheduled in this step."""
    blocks: int
    """Table entries in all groups, null entries left out."""
    preemptions: int
    bar: tuple[BarPart, ...]
    """comp, new_comp (reused), ext_comp (supplied by a connector), new (now), later; parts of length 0 are left out."""
    caption: str
    """ "945 + 1 now", "128 hit + 100 now, 72 to go", or "loading 8 tokens, step 2 of 3"."""
    facts: tuple[str, ...]
    """What differs from a plain request: "priority 3", "salt x", "LoRA y", "preempted twice"."""
    whys: tuple[WhyLink, ...] = ()
    is_loading: bool = False
    """It holds blocks that a connector fills, or has filled."""


@dataclass(frozen=True, slots=True)
class FinishedRow:
    """A request that left in this action; `how` in words: "reached max_tokens"."""

    id: str
    number: int
    how: str


@dataclass(frozen=True, slots=True)
class Requests:
    """Waiting queue and running list in true order, at most 100 rows each, and who left in this action.

    Those whose load is under way, or has arrived, stand before the others that wait.
    """

    waiting: tuple[RequestRow, ...]
    waiting_total: int
    waiting_note: str
    """A sentence for the empty queue; "" otherwise."""
    running: tuple[RequestRow, ...]
    running_total: int
    running_note: str
    leaving: tuple[RequestRow, ...]
    """Aborted ones whose blocks a load still writes to."""
    finished: tuple[FinishedRow, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A line of the log.

    `kind`: schedule, lookup, load, chunk, admit, blocks, refusal, copy, zero, preempt, halt, draft, finish, event,
    action.
    """

    kind: str
    words: Words
    requests: tuple[int, ...] = ()
    """The numbers of the requests that it names, each once."""


@dataclass(frozen=True, slots=True)
class KVEvent:
    """A KV event as vLLM publishes it; `kind`: BlockStored, BlockRemoved or AllBlocksCleared.

    Hashes are 16 hex digits; of more than 8 the first ones are listed, `more` are left out. Of a kind that lacks a
    field it is "" or 0.
    """

    kind: str
    hashes: tuple[str, ...] = ()
    more: int = 0
    parent: str = ""
    tokens: int = 0
    """How many token ids it carries."""
    block_size: int = 0
    group: int = 0
    lora: str = ""
    extra_keys: int = 0
    """How many of its hashes carry an adapter's name or a salt."""
    medium: str = ""
    requests: tuple[int, ...] = ()
    """The numbers of the requests whose calls caused it."""


@dataclass(frozen=True, slots=True)
class Log:
    """What the action did, in sentences; and its KV events, at most 60 of them."""

    head: str
    """ "step 3", or what else the action was."""
    sentences: tuple[Sentence, ...]
    events: tuple[KVEvent, ...] = ()
    events_total: int = 0
