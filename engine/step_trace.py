"""A whole step as frozen classes made from its log (behaviour 6).

Lookups, chunks, admissions, preemptions, why a pass ended; and what happened to each block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from engine.call_trace import CallTrace, GivenBack, read_calls
from engine.kv_cache_block import NULL_BLOCK, Key
from engine.trace import Entry, Search


@dataclass(frozen=True, slots=True)
class Lookup:
    """A prefix lookup of the request at the head of the queue (4)."""

    request: str
    limit: int | None
    """`num_tokens` - 1, for the last token is always computed; None: the lookup was not enabled."""
    blocks: tuple[tuple[int, ...], ...]
    num_tokens: int
    searches: tuple[Search, ...]
    shared_prefix_boundary: int
    """A longer prefix, in tokens, that some group still holds but another lacks; 0: none (7.5)."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """How the tokens of a request in this step came about, in tokens (6.3 step 1, 6.4 steps 3 to 7)."""

    in_pass: str
    request: str
    computed: int
    wanted: int
    threshold: int
    """The long-prefill threshold in this step; 0: off."""
    budget: int
    room: int
    """Up to `max_model_len`."""
    uncut: int
    """Before a Mamba split."""
    tokens: int
    padding: int
    """Placeholder drafts among them."""

    @property
    def cut_by(self) -> str | None:
        """What made it smaller than wanted: "threshold", "budget", "room" or "split"; None: nothing."""
        if self.tokens < self.uncut:
            return "split"
        if self.tokens >= self.wanted:
            return None
        if 0 < self.threshold == self.tokens:
            return "threshold"
        return "budget" if self.tokens == self.budget else "room"


@dataclass(frozen=True, slots=True)
class Admission:
    """The waiting pass let a request run, from `computed` tokens on."""

    request: str
    computed: int
    tokens: int
    resumed: bool


@dataclass(frozen=True, slots=True)
class Preemption:
    """`victim` lost its blocks to `by`, to itself, or to a reset (None); `undone`: its tokens of this step."""

    victim: str
    by: str | None
    undone: int


@dataclass(frozen=True, slots=True)
class Halt:
    """A pass ended with requests left.

    `reason`: budget, self_preempted (running pass); budget, preempted, max_num_seqs, padding, whole_prefill, no_blocks
    (waiting pass). `request`: the one that was next.
    """

    in_pass: str
    reason: str
    request: str | None


@dataclass(frozen=True, slots=True)
class DraftsScheduled:
    """Drafts that are verified in this step, and those that were cut off and lost (6.3 step 5)."""

    request: str
    scheduled: int
    lost: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """What came of a request's tokens: drafts verified, accepted ones, ids kept, and where it stands (6.8)."""

    request: str
    drafts: int
    accepted: int
    tokens: int
    computed: int


@dataclass(frozen=True, slots=True)
class Finish:
    """A request left: FINISHED_STOPPED, FINISHED_LENGTH_CAPPED or FINISHED_ABORTED."""

    request: str
    status: str


@dataclass(frozen=True, slots=True)
class ExternalTokens:
    """What a connector can supply behind a local hit of `local` tokens, at once or over some steps (7.15)."""

    request: str
    local: int
    tokens: int
    is_async: bool


@dataclass(frozen=True, slots=True)
class Load:
    """A load of a request at one of its stages: begun, going on, received, used (7.15)."""

    request: str
    stage: str


@dataclass(frozen=True, slots=True)
class Copy:
    """`source` is copied to `copy` for `request` (7.12); `moved`: the cached state moves to the copy (7.10)."""

    group: int
    request: str
    source: int
    copy: int
    moved: bool


LOAD_STAGES = {"load": "begun", "loading": "going on", "received": "received", "arrived": "used"}


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Everything that one action told, in order within each kind. `budget` and `threshold` are None but for a step."""

    budget: int | None
    threshold: int | None
    lookups: tuple[Lookup, ...]
    chunks: tuple[Chunk, ...]
    calls: tuple[CallTrace, ...]
    admissions: tuple[Admission, ...]
    preemptions: tuple[Preemption, ...]
    halts: tuple[Halt, ...]
    drafts: tuple[DraftsScheduled, ...]
    sampled: tuple[Sampled, ...]
    finishes: tuple[Finish, ...]
    external: tuple[ExternalTokens, ...]
    loads: tuple[Load, ...]
    copies: tuple[Copy, ...]


def read_step(log: Iterable[Entry]) -> StepTrace:
    """The trace of one action."""
    kinds: dict[str, list[Entry]] = {}
    undone: dict[str, int] = {}
    log = list(log)
    for entry in log:
        kinds.setdefault(entry[0], []).append(entry[1:])
        if entry[0] == "undo":
            undone[entry[1]] = entry[2]
    budget, threshold = kinds["step"][0][:2] if "step" in kinds else (None, None)
    return StepTrace(
        budget,
        threshold,
        tuple(_lookup(entry) for entry in kinds.get("lookup", ())),
        tuple(Chunk(*entry) for entry in kinds.get("chunk", ())),
        tuple(read_calls(log)),
        tuple(Admission(*entry) for entry in kinds.get("admit", ())),
        tuple(Preemption(victim, by, undone.get(victim, 0)) for victim, by in kinds.get("preempt", ())),
        tuple(Halt(*entry) for entry in kinds.get("halt", ())),
        tuple(DraftsScheduled(*entry) for entry in kinds.get("drafts", ())),
        tuple(Sampled(*entry) for entry in kinds.get("sampled", ())),
        tuple(Finish(*entry) for entry in kinds.get("finish", ())),
        tuple(ExternalTokens(*entry) for entry in kinds.get("external", ())),
        tuple(Load(entry[1], LOAD_STAGES[entry[0]]) for entry in log if entry[0] in LOAD_STAGES),
        tuple(_copy(entry) for entry in kinds.get("copy", ())),
    )


def _copy(entry: Entry) -> Copy:
    group, request, source, copy, held = entry
    return Copy(group, request, source, copy, held == source)


def _lookup(entry: Entry) -> Lookup:
    request, limit, blocks, num_tokens, searches, shared = entry
    return Lookup(request, limit, tuple(map(tuple, blocks)), num_tokens, searches, shared)


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """One thing that happened to one block.

    `what`: popped, evicted, touched, hashed, copied (to another block), held (by a copy, until the step is scheduled),
    freed (nobody holds it any more) or let_go (others still hold it). `why`: new, hit, full, partial, longer prefix,
    window, copied, preempted, finished, aborted, stopped or reset; `request`: for or by whom.
    `place`: in the free queue, where it left or entered it.
    """

    block: int
    what: str
    why: str
    request: str | None
    group: int
    ref_before: int
    ref_after: int
    place: int | None = None
    keys: tuple[Key, ...] = ()
    """Keys lost or given."""


WHY_FREED = {
    "FINISHED_STOPPED": "stopped",
    "FINISHED_LENGTH_CAPPED": "finished",
    "FINISHED_ABORTED": "aborted",
}


def block_events(log: Iterable[Entry]) -> Iterator[BlockEvent]:
    """What happened to which block, in order."""
    request: str | None = None
    why = ""
    refs: dict[int, int] = {}
    groups: dict[int, int] = {}
    """Of blocks that a copy holds; all of them are given back together."""
    for entry in log:
        kind = entry[0]
        if kind == "call":
            request, why = entry[1], "window"
        elif kind == "preempt":
            request, why = entry[1], "preempted" if entry[2] else "reset"
        elif kind == "finish":
            request, why = entry[1], WHY_FREED[entry[2]]
        elif kind == "touch":
            _, group, blocks, counts, places = entry
            for block, before, place in zip(blocks, counts, places, strict=True):
                refs[block] = before + 1
                yield BlockEvent(block, "touched", "hit", request, group, before, before + 1, place)
        elif kind == "pop":
            refs.update(dict.fromkeys(entry[2], 1))
            yield from _pops(entry, request)
        elif kind in ("hash", "hash_partial", "replace"):
            yield from _keys(entry, request, refs)
        elif kind == "move_keys":
            yield from _moves(entry, request, refs)
        elif kind == "clear":
            for block, keys in entry[1]:
                yield BlockEvent(block, "evicted", "reset", None, keys[0][1], 0, 0, None, tuple(keys))
        elif kind == "copy":
            _, group, request, source, copy, end = entry
            groups[source] = groups[copy] = group
            held = refs.get(source, 1)
            yield BlockEvent(source, "copied", f"to {copy}", request, group, held, held)
            held = refs.get(end, 1)
            refs[end] = held + 1
            yield BlockEvent(end, "held", "copied", request, group, held, held + 1)
        elif kind == "copies":
            request, why = None, "copied"
        elif kind == "received":
            request, why = entry[1], "aborted"
        elif kind == "free":
            for event in _frees(GivenBack.of(entry), request, why):
                refs[event.block] = event.ref_after
                yield replace(event, group=groups[event.block]) if why == "copied" else event


def _pops(entry: Entry, request: str | None) -> Iterator[BlockEvent]:
    _, group, blocks, evicted = entry
    lost = {block: tuple(keys) for _, block, keys in evicted}
    for place, block in enumerate(blocks):
        if block in lost:
            yield BlockEvent(block, "evicted", "new", request, group, 0, 0, place, lost[block])
        yield BlockEvent(block, "popped", "new", request, group, 0, 1, place)


def _keys(entry: Entry, request: str | None, refs: Mapping[int, int]) -> Iterator[BlockEvent]:
    """Keys given, or lost to a longer prefix. `refs`: counts of blocks that may be held more than once."""
    what, why = "hashed", "partial"
    if entry[0] == "hash":
        _, group, _, _, blocks, hashes, *_ = entry
        why = "full"
        given = [(block, ((block_hash, group),)) for block, block_hash in zip(blocks, hashes, strict=True)]
    elif entry[0] == "hash_partial":
        _, group, block, block_hash, *_ = entry
        given = [(block, ((block_hash, group),))]
    else:
        _, block, keys = entry
        what, why, group = "evicted", "longer prefix", keys[0][1]
        given = [(block, tuple(keys))]
    for block, keys in given:
        held = refs.get(block, 1)
        yield BlockEvent(block, what, why, request, group, held, held, None, keys)


def _moves(entry: Entry, request: str | None, refs: Mapping[int, int]) -> Iterator[BlockEvent]:
    """A cached state that was copied away: its keys go on in the copy (7.10)."""
    _, source, target, keys = entry
    for block, why in ((source, f"to {target}"), (target, f"from {source}")):
        held = refs.get(block, 1)
        yield BlockEvent(block, "moved", why, request, keys[0][1] if keys else 0, held, held, None, tuple(keys))


def _frees(given: GivenBack, request: str | None, why: str) -> Iterator[BlockEvent]:
    held = list(given.held)  # a block that two copies were made of is given back twice
    for block in given.blocks:
        if held and held[0][0] == block:
            _, after = held.pop(0)
            yield BlockEvent(block, "let_go", why, request, given.group, after + 1, after)
        elif block != NULL_BLOCK:
            yield BlockEvent(block, "freed", why, request, given.group, 1, 0, given.place(block))
