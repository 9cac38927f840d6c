"""What a step did and why: the vocabulary between the engine and everybody who looks at it.

While running, the engine hands plain tuples to a sink, `emit(entry)`: entry[0] names the stage, the rest its values. At
most one entry a stage (and group); a stage with nothing to tell, such as touching no block, emits none. The default
sink forgets. Lists in an entry are never changed afterwards. `engine.call_trace` and `engine.step_trace` make frozen
classes of a log when somebody reads it.

Entries, in the order in which a step can produce them:

`step, budget, threshold, running, waiting`
    `schedule()` starts; the sizes of the two lists (6.2).
`lookup, request, limit, hits, length, searches, shared`
    Prefix lookup (4, 7.5). limit None: not enabled. shared: a longer prefix that some groups still hold.
`external, request, local, tokens, is_async`; `load, request, local, tokens`; `loading, request`
    What a connector can supply behind a local hit; an asynchronous load begins, or goes on (7.15).
`arrived, request, computed`
    A load was received before; its request is looked at again (7.15).
`chunk, pass, request, computed, wanted, threshold, budget, room, uncut, tokens, padding`
    How a chunk was cut (6.3, 6.4); uncut: before a Mamba split.
`call, request, comp, new_comp, ext_comp, new, lookahead, hit, gated, headroom, reserved, free`
    `allocate_slots` begins (5).
`gate, tokens, counts, needed, would_check`
    The whole-sequence test (5.3); would_check: (tokens, needed, counts) of the check, only where the gate failed.
`check, tokens, counts, needed`
    The test for this call (5.6).
`touch, group, blocks, ref_cnt before, places`
    Hits adopted (1.6); place None: it was not free.
`pop, group, blocks, evicted`
    New blocks from the head (1.5); evicted: (place, block, keys).
`hash, group, first, end, blocks, hashes, parent, indexes, parents`
    Table entries first .. end-1 registered (1.8); of those that were chosen: block, hash, index and parent.
`hash_partial, group, block, hash, parent, tokens`; `move_keys, source, target, keys`
    A prefix that ends inside the block (7.12); a cached state moves to its copy (7.10).
`replace, block, keys`
    Keys that make way for a longer prefix (1.8, 7.12).
`copy, group, request, source, copy, held`
    A copy is queued; held: the end that is held by one more until the step is scheduled (7.12).
`return, new_blocks, free`
    The call ends; new_blocks None: refused.
`admit, request, computed, tokens, resumed`; `drafts, request, scheduled, dropped`
    The waiting pass let it run (6.4); drafts that are verified in this step, or were cut off (6.3).
`undo, request, tokens`; `preempt, victim, by`
    A victim's tokens of this very step are taken back (6.3); by None: a reset (6.5); its blocks follow.
`halt, pass, reason, request`
    Why a pass ended early.
`copies, pairs`
    (source, destination) of this step; both are given back (7.12).
`sampled, request, drafts, accepted, tokens, computed`; `finish, request, status`; `received, request`
    `update_from_output` (6.8): it leaves, its blocks follow; a load is complete (7.15).
`free, group, blocks, front, back, held, free`
    Blocks given back (1.7); free: before; held: (block, `ref_cnt` after).
`clear, blocks`; `reset, done`
    `reset_prefix_cache` (6.10); (block, keys) of every block that had any and loses them (1.10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.block_hash import BlockHash

Entry = tuple[Any, ...]
Emit = Callable[[Entry], object]


class Search(NamedTuple):
    """One search, for the trace: in which round, which groups, up to where, and what came of it."""

    round: int
    groups: tuple[int, ...]
    limit: int
    dropped: bool
    """Whether the EAGLE rule applied."""
    found: int
    """Blocks before a drop or an alignment cut."""
    num_tokens: int
    missing: BlockHash | None
    """The first hash that was not cached; None: the limit ended the search."""


STAGES = ("gate", "release", "count", "check", "touch", "pop", "hash", "return")


def no_trace(entry: Entry) -> None:
    """The default sink: forgets."""
