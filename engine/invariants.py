"""What holds between any two actions, whatever happened before (behaviour 1.1): named checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from engine.block_pool import BlockPool
from engine.kv_cache_block import NULL_BLOCK
from engine.kv_cache_manager import KVCacheManager
from engine.request import RequestStatus
from engine.sched.scheduler import Scheduler
from engine.simulation import Simulation

Broken = Iterator[tuple[str, str]]
"""(name of the invariant, where it does not hold)."""


def check(engine: Simulation | Scheduler) -> None:
    """Check every invariant. O(pool).

    Raises:
        AssertionError: the first that does not hold, by name, and where.
    """
    scheduler = engine.scheduler if isinstance(engine, Simulation) else engine
    manager = scheduler.kv_cache_manager
    pool = manager.block_pool
    queue = list(islice(pool.free_queue, pool.num_blocks + 1))  # a broken list would go round for ever
    named = Counter(block for table in _tables(manager) for block in table if block != NULL_BLOCK)
    for name, where in chain(
        _queue(pool, queue), _blocks(pool, set(queue), named), _keys(pool), _owners(scheduler), _requests(scheduler)
    ):
        raise AssertionError(f"{name}: {where}")


def _tables(manager: KVCacheManager) -> Iterator[list[int]]:
    for group in manager.coordinator.managers:
        yield from group.req_to_blocks.values()


def _queue(pool: BlockPool, queue: list[int]) -> Broken:
    if not len(queue) == len(set(queue)) == pool.num_free_blocks:
        yield "queue length", f"{len(queue)} blocks, {len(set(queue))} distinct ones, {pool.num_free_blocks} counted"
        return
    if queue != pool.free_queue.last(pool.num_blocks):
        yield "queue links", "it reads differently from the tail"
    places = [pool.free_queue.place(block) for block in queue]
    if places != list(range(len(queue))):
        yield "queue places", f"{places} do not ascend by one from 0"
    usable = pool.num_blocks - 1
    usage = 1 - len(queue) / usable if usable else 0
    if pool.get_usage() != usage:
        yield "usage", f"{pool.get_usage()}, not {usage}"


def _blocks(pool: BlockPool, queue: set[int], named: Counter[int]) -> Broken:
    if NULL_BLOCK in queue or pool.keys_of(NULL_BLOCK):
        yield "null block", "it is free or carries a hash"
    for block in range(1, pool.num_blocks):
        refs = pool.ref_cnt[block]
        if block in queue and named[block]:
            yield "free or held", f"block {block} is free, and in a table"
        if (block in queue) != (refs == 0):
            yield "I1", f"block {block} has ref_cnt {refs} and is {'' if block in queue else 'not '}free"
        if named[block] != refs:
            yield "I4", f"block {block} is named {named[block]} times and has ref_cnt {refs}"


def _keys(pool: BlockPool) -> Broken:
    for key in pool.cached:  # I2: whether the block is free or held makes no difference to a lookup
        if pool.get_cached_block(key[0], [key[1]]) != pool.cached.blocks(key)[:1]:
            yield "I2", f"a lookup of {key} does not return the oldest block"
    carried = Counter((key, block) for block in range(pool.num_blocks) for key in pool.keys_of(block))
    listed = Counter((key, block) for key in pool.cached for block in pool.cached.blocks(key))
    if carried != listed or any(count > 1 for count in carried.values()):
        yield "I3", f"carried but not listed: {carried - listed}; listed but not carried: {listed - carried}"
    for block, primary in enumerate(pool.block_hash):
        num_tokens, secondary = pool.block_hash_num_tokens[block], pool.secondary.get(block)
        if (primary is None) != (num_tokens == 0) or (primary is None and secondary):
            yield "keys of a block", f"block {block}: primary key, prefix length and secondary keys do not fit"
    if len(pool.cached) and not pool.enable_caching:
        yield "caching off", "yet something is cached"


def _owners(scheduler: Scheduler) -> Broken:
    manager = scheduler.kv_cache_manager
    for group in manager.coordinator.managers:
        for request, table in group.req_to_blocks.items():
            if request not in scheduler.requests:
                yield "table owners", f"{request} has a table and is not alive"
            if any(block != NULL_BLOCK and manager.block_pool.ref_cnt[block] < 1 for block in table):
                yield "tables name held blocks", f"that of {request} does not: {table}"
            if group.num_cached_block.get(request, 0) > len(table):
                yield "tracking", f"{request} is tracked past its table"


def _requests(scheduler: Scheduler) -> Broken:
    running = {request.request_id for request in scheduler.running}
    if not len(scheduler.running) == len(running) <= scheduler.config.max_num_seqs:
        yield "running list", f"{len(scheduler.running)} entries for {len(running)} requests"
    for request in scheduler.requests.values():
        if (request.status is RequestStatus.RUNNING) != (request.request_id in running):
            yield "running list", f"{request.request_id} is {request.status.value}"
    if any(request.request_id in running for request in scheduler.waiting):
        yield "run or wait", "a request does both"
