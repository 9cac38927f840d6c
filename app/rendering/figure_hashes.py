"""The hashed blocks' data: the prefix tree as chains; in a change only the chains that changed."""

from __future__ import annotations

from typing import Any, Final

from app.rendering.moment import Moment
from app.services.prefix_tree import Chain
from engine.kv_cache_block import Key

EDGE: Final = 30
"""A chain of more than twice as many cells is told by its first and last ones."""

Data = dict[str, Any]


def whole_hashes(moment: Moment) -> Data:
    """Every chain, in order of ids. O(chains)."""
    chains = moment.cursor.tree.chains
    return {
        "total": len(moment.cursor.tree),
        "chains": [_chain(moment, chains[chain_id]) for chain_id in sorted(chains)],
    }


def changed_hashes(moment: Moment, was_changed: bool) -> Data:
    """`hashes`, or nothing if no chain changed and no ring is to be cleared."""
    tree = moment.cursor.tree
    changed = set(tree.changed)
    for block in moment.changed:
        for key in moment.pool.keys_of(block):
            chain = tree.chain_of(key)
            if chain is not None:
                changed.add(chain.id)
    for event in moment.applied.events if moment.applied else ():
        for key in event.keys:
            chain = tree.chain_of(key)
            if chain is not None:
                changed.add(chain.id)
    if not (changed or tree.gone or was_changed):
        return {}
    chains = [_chain(moment, tree.chains[chain_id]) for chain_id in sorted(changed)]
    return {"hashes": {"total": len(tree), "chains": chains, "gone": sorted(tree.gone)}}


def nothing_hashed(moment: Moment) -> str:
    """Why the picture is empty."""
    if not moment.cursor.simulation.config.enable_prefix_caching:
        return "Nothing is hashed: prefix caching is off."
    if moment.cursor.is_loading:
        return "Nothing is hashed yet: what is loaded is hashed when its request goes on."
    return "Nothing is hashed: no block is full." if moment.counts.live else "Nothing is hashed."


def _chain(moment: Moment, chain: Chain) -> Data:
    keys = chain.keys
    listed = keys if len(keys) <= 2 * EDGE else keys[:EDGE] + keys[-EDGE:]
    lineage = moment.history.lineage.get(keys[0])
    size = moment.cursor.simulation.config.groups[keys[0][1]].block_size
    return {
        "id": chain.id,
        "group": keys[0][1],
        "parent": chain.parent.id if chain.parent else None,
        "at": len(chain.parent.keys) - 1 if chain.parent else 0,
        "depth": max(lineage.num_tokens // size - 1, 0) if lineage else 0,
        "cells": [_cell(moment, key) for key in listed],
        "total": len(keys),
        "label": _label(moment, keys[-1]),
    }


def _cell(moment: Moment, key: Key) -> list[int]:
    """[block, live, changed, copies]: the oldest block under the hash, whether it is held, whether any has changed."""
    pool = moment.pool
    blocks = pool.cached.blocks(key)
    changed = any(block in moment.changed for block in blocks)
    return [blocks[0], int(pool.ref_cnt[blocks[0]] > 0), int(changed), len(blocks)]


def _label(moment: Moment, key: Key) -> str:
    """Who holds the end of the chain: one or two ids, or how many; "" when nobody does."""
    names: dict[str, None] = {}
    for block in moment.pool.cached.blocks(key):
        names.update(dict.fromkeys(moment.history.holders.get(block, ())))
    first = ", ".join(list(names)[:2])
    return f"{first} and {len(names) - 2} more" if len(names) > 2 else first
