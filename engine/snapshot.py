"""The engine's state as plain data, read only when somebody asks: records (behaviour 0.5) and views."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

from engine.block_hash import short_hash
from engine.kv_cache_manager import KVCacheManager
from engine.request import Request
from engine.sched.scheduler import Scheduler


def request_state(request: Request, manager: KVCacheManager) -> dict[str, object]:
    """One request as records write it."""
    return {
        "status": request.status.value,
        "num_computed_tokens": request.num_computed_tokens,
        "num_tokens": request.num_tokens,
        "num_output_tokens": request.num_output_tokens,
        "num_preemptions": request.num_preemptions,
        "block_ids": [list(table) for table in manager.get_blocks(request.request_id)],
    }


def state(scheduler: Scheduler, order: Iterable[str]) -> dict[str, object]:
    """The whole state, keys in the order of records. `order`: ids as they were first added. O(pool)."""
    manager = scheduler.kv_cache_manager
    pool = manager.block_pool
    living = scheduler.requests
    free_queue = pool.free_queue.get_all_free_blocks()
    return {
        "running": [request.request_id for request in scheduler.running],
        "waiting": [request.request_id for request in (*scheduler.loads.holding, *scheduler.waiting)],
        "requests": {name: request_state(living[name], manager) for name in order if name in living},
        "free_queue": free_queue,
        "ref_cnt": {str(block): refs for block, refs in enumerate(pool.ref_cnt) if refs and block},
        "cached": sorted([short_hash(key[0]), key[1], pool.cached.blocks(key)] for key in pool.cached),
        "num_free_blocks": len(free_queue),
        "usage": round(pool.get_usage(), 9),
    }


def digest(scheduler: Scheduler) -> str:
    """16 hex digits that stand for the whole state: equal states have equal ones. O(pool), but quick."""
    manager = scheduler.kv_cache_manager
    pool = manager.block_pool
    lists = (scheduler.running, scheduler.loads.holding, scheduler.waiting)
    parts = [
        array("Q", pool.ref_cnt).tobytes(),
        array("Q", pool.free_queue).tobytes(),
        pool.cached.fingerprint(),
        repr(pool.secondary).encode(),
        repr([[request.request_id for request in some] for some in lists]).encode(),
        repr([(name, request_state(one, manager)) for name, one in scheduler.requests.items()]).encode(),
    ]
    return hashlib.sha256(b"|".join(parts)).hexdigest()[:16]
