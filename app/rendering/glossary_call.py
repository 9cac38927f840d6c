"""The glossary of a call: the parts of its tokens, its stages, and the numbers in its formulas."""

from __future__ import annotations

from typing import Final

from app.contexts import Meaning, MeaningGroup

TOKENS: Final = MeaningGroup(
    "The tokens of a call",
    (
        Meaning(
            "comp",
            "comp",
            "num_computed_tokens: the request's tokens whose keys and values are in its blocks before the call.",
            is_code=True,
        ),
        Meaning(
            "new_comp",
            "new_comp",
            "Tokens of the prefix cache hit: they stand in cached blocks and are not computed again.",
            is_code=True,
        ),
        Meaning(
            "ext_comp",
            "ext_comp",
            "Tokens behind the hit that a KV connector brings from outside: they take blocks but are not computed.",
            is_code=True,
        ),
        Meaning(
            "new",
            "new",
            "Tokens that this step is to compute for the request, drafts included.",
            is_code=True,
        ),
        Meaning(
            "lookahead",
            "lookahead",
            "num_lookahead_tokens: extra slots that are reserved behind the new tokens.",
            is_code=True,
        ),
        Meaning(
            "later",
            "later",
            "Tokens that the request has already, but that are left for a later step.",
        ),
    ),
)
STAGES: Final = MeaningGroup(
    "The stages of a call",
    (
        Meaning(
            "gate",
            "gate",
            "Asked at an admission only: would all of the sequence known so far fit into what is free, and the "
            "watermark stay? If not, the call returns None and has changed nothing.",
        ),
        Meaning(
            "release",
            "release",
            "Blocks that are looked at no more, because they left the window or chunk or are older Mamba "
            "states, go back to the free queue; they stay there even if the check refuses.",
        ),
        Meaning(
            "count",
            "count",
            "How many blocks the call would take out of the free queue: those that its tokens need, less those "
            "held and hit, and the hits that lie in the queue themselves.",
        ),
        Meaning(
            "check",
            "check",
            "Do the blocks counted, and the watermark, fit into what is free and not reserved? If not, the call "
            "returns None and takes nothing.",
        ),
        Meaning(
            "touch",
            "touch",
            "The ref_cnt of each hit block goes up by one, and one that lay in the free queue leaves it: now "
            "nobody else can be handed it.",
        ),
        Meaning(
            "pop",
            "pop",
            "New blocks are taken from the head of the free queue; one that still carries a hash loses it.",
        ),
        Meaning(
            "hash",
            "hash",
            "Blocks that are now full of known tokens get their block hash; from here on they can be hit, even "
            "later in the same step.",
        ),
        Meaning(
            "return",
            "return",
            "The ids of the new blocks, a list a group; or None where the call was refused.",
        ),
    ),
)
NUMBERS: Final = MeaningGroup(
    "The numbers of a call",
    (
        Meaning(
            "need",
            "⌈tokens ÷ block size⌉",
            "Blocks that all tokens take up to the end of the call, lookahead included, rounded up to whole ones.",
        ),
        Meaning(
            "whole",
            "for all tokens",
            "Blocks that would leave the free queue if the whole sequence known so far were to be allocated now.",
        ),
        Meaning(
            "held-before",
            "held, in a formula",
            "Entries that the request's block table has before the count, null ones too.",
        ),
        Meaning(
            "skipped",
            "skipped",
            "Entries at the start that lie outside the window or chunk: they become null and take no block.",
        ),
        Meaning(
            "no-less",
            "never below 0",
            "The table is longer than what is needed: nothing is given back for that, and nothing is taken.",
        ),
        Meaning(
            "states",
            "states needed",
            "A Mamba group keeps only its latest states, so that this many blocks are enough for all its tokens.",
        ),
        Meaning(
            "idle-hits",
            "idle hits",
            "Hit blocks that nobody holds: they lie in the free queue and leave it when they are touched, so each "
            "counts as one to take.",
        ),
        Meaning(
            "copies",
            "copies",
            "A block that is hit only in part is copied first, which takes one new block.",
        ),
        Meaning(
            "new-blocks",
            "new blocks",
            "Blocks that come from the head of the free queue.",
        ),
        Meaning(
            "to-take",
            "to take",
            "Blocks that leave the free queue for this call: idle hits and new ones.",
        ),
        Meaning(
            "in-all",
            "in all",
            "The sum over all groups; what a window or chunk never needs at once is not counted.",
        ),
        Meaning(
            "must-wait",
            "must wait",
            "The Mamba state that is hit is only being made in this step: the count is set above the size of the "
            "pool, so that the request waits.",
        ),
        Meaning(
            "watermark",
            "watermark",
            "Blocks that an admission has to leave free while other requests run: the share watermark of "
            "num_blocks, rounded down; 0 where nothing runs.",
        ),
        Meaning(
            "free",
            "free",
            "Blocks in the free queue when the test is made, cached ones too.",
        ),
        Meaning(
            "reserved",
            "reserved",
            "Free blocks that an asynchronous load must leave to requests that still load or prefill; 0 for all "
            "other calls.",
        ),
        Meaning(
            "shortfall",
            "shortfall",
            "How many more blocks would have had to be free: the larger one of what gate and check lack.",
        ),
    ),
)
