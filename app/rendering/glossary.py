"""The glossary: every word of the page in one plain sentence, as `docs/engine-behaviour.md` has it."""

from __future__ import annotations

from typing import Final

from app.contexts import Meaning, MeaningGroup
from app.rendering.glossary_call import NUMBERS, STAGES, TOKENS

BLOCKS: Final = MeaningGroup(
    "Blocks",
    (
        Meaning(
            "block",
            "block",
            "A piece of KV-cache memory with slots for the keys and values of block_size tokens; only whole "
            "blocks are handed out.",
        ),
        Meaning(
            "null-block",
            "null block",
            "Block 0, a placeholder in block tables where keys and values are not kept; it is never handed out, "
            "hashed or freed, so that of N blocks N − 1 are usable.",
        ),
        Meaning(
            "ref-cnt",
            "ref_cnt",
            "How many requests hold the block, and pending copies of it; while it is 0 the block lies in the free "
            "queue.",
            is_code=True,
        ),
        Meaning(
            "block-hash",
            "block hash",
            "What stands for the content of a full block: computed from its tokens and the hash of the block "
            "before it, so that it stands for the whole prefix.",
        ),
        Meaning(
            "hashed",
            "hashed",
            "The block carries a block hash: a prefix lookup can find it, whether somebody holds it or it lies in "
            "the free queue.",
        ),
        Meaning(
            "held",
            "held",
            "A block that some request has in its block table; its ref_cnt is 1 or more.",
        ),
        Meaning(
            "shared",
            "shared",
            "A block that two or more requests hold at once.",
        ),
        Meaning(
            "cached",
            "free, cached",
            "Nobody holds the block, but it keeps its hash and can still be hit, until it is handed out.",
        ),
        Meaning(
            "empty",
            "free, empty",
            "Nobody holds the block, and it carries no hash: nothing can find it.",
        ),
        Meaning(
            "free-queue",
            "free queue",
            "The blocks that nobody holds, in the order in which they are handed out from its head; freed blocks "
            "with a hash go to its tail, those without one to its head.",
        ),
        Meaning(
            "evicted",
            "evicted",
            "The block lost its hash, as a rule because it was handed out for other tokens; it can't be hit by "
            "that hash any more.",
        ),
        Meaning(
            "duplicate",
            "duplicate",
            "Another block with the same hash: nothing is merged, and a lookup returns the one that has had the "
            "hash longest.",
        ),
        Meaning(
            "block-table",
            "block table",
            "A request's list of block ids in one group: with blocks of B tokens, entry j covers its tokens jB to "
            "jB + B − 1.",
        ),
        Meaning(
            "group",
            "KV-cache group",
            "Layers that share one block table; a model with several kinds of attention has several groups, and "
            "all of them take from one pool.",
        ),
    ),
)
CACHE: Final = MeaningGroup(
    "Prefix cache",
    (
        Meaning(
            "lookup",
            "prefix lookup",
            "Before an admission the hashes of the request's blocks are looked for in the cache; its last token "
            "is always left to be computed.",
        ),
        Meaning(
            "hit",
            "hit",
            "A block that the prefix lookup found, so that its tokens need not be computed again; in a formula, "
            "the number of these blocks.",
        ),
        Meaning(
            "hit-rate",
            "hit rate",
            "Tokens that were hit as a share of the tokens looked up, over every first admission since the start "
            "or the last reset.",
        ),
    ),
)
STEP: Final = MeaningGroup(
    "A step",
    (
        Meaning(
            "running-pass",
            "running pass",
            "The first part of a step: each running request in turn gets slots for its next tokens; where they "
            "don't fit, somebody is preempted.",
        ),
        Meaning(
            "waiting-pass",
            "waiting pass",
            "The second part, unless somebody was preempted: requests are admitted from the head of the waiting "
            "queue, and the first one that can't be ends it.",
        ),
        Meaning(
            "admission",
            "admission",
            "A waiting request gets its blocks and joins the running list.",
        ),
        Meaning(
            "preempted",
            "preempted",
            "A running request gives back all its blocks, goes back to the waiting queue, and begins again from "
            "what is still cached; it keeps its output.",
        ),
        Meaning(
            "chunk",
            "chunk",
            "A part of a prompt: what is too much for the token budget of a step is computed over several steps.",
        ),
        Meaning(
            "draft",
            "draft",
            "A token that speculative decoding proposes and the next step verifies; blocks given to rejected ones "
            "are kept.",
        ),
    ),
)
FULLNESS: Final = MeaningGroup(
    "How full it is",
    (
        Meaning(
            "usage",
            "kv_cache_usage_perc",
            "Block usage: held blocks as a share of the N − 1 usable ones, full or not; free blocks that are "
            "cached don't count.",
            is_code=True,
        ),
        Meaning(
            "slots-filled",
            "slots filled",
            "Slots that hold a computed token, of those in held blocks; a shared block counts once.",
        ),
        Meaning(
            "occupancy",
            "token occupancy",
            "Slots that hold a computed token, of all slots in the pool: less than block usage wherever blocks "
            "are only partly full.",
        ),
    ),
)
GLOSSARY: Final = (BLOCKS, TOKENS, STAGES, NUMBERS, STEP, CACHE, FULLNESS)
MEANINGS: Final = {one.key: one for group in GLOSSARY for one in group.meanings}


def meanings(*keys: str) -> tuple[Meaning, ...]:
    """The words with these keys, each once, in this order.

    Raises:
        KeyError: the glossary lacks one.
    """
    return tuple(MEANINGS[key] for key in dict.fromkeys(keys))
