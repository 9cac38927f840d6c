"""The pool (1): taking, touching, giving back, keys, reset."""

from __future__ import annotations

import pytest

from engine.block_hash import HASH_FUNCTIONS, BlockHasher, init_none_hash
from engine.block_pool import BlockPool
from engine.errors import PoolExhaustedError
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored
from engine.request import Request
from tests.engine.helpers import Run, events, removed, short

HASHER = BlockHasher(HASH_FUNCTIONS["sha256_cbor"], init_none_hash(HASH_FUNCTIONS["sha256_cbor"]), 4)


def pool_of(num_blocks: int, caching: bool = True) -> BlockPool:
    return BlockPool(num_blocks, enable_caching=caching)


def request_of(tokens: int, first: int = 10, hasher: BlockHasher = HASHER, **options: str) -> Request:
    return Request("r", range(first, first + tokens), 8, hasher, **options)  # type: ignore[arg-type]


def queue(pool: BlockPool) -> list[int]:
    return pool.free_queue.get_all_free_blocks()


def key(name: bytes) -> tuple[bytes, int]:
    return name, 0


# ---- blocks, null block, usage, 1.1, 1.2, 1.9


def test_block_0_is_the_null_block_and_never_free() -> None:
    pool = pool_of(4)
    assert queue(pool) == [1, 2, 3]
    assert pool.num_free_blocks == 3
    null = pool.block(0)
    assert (null.is_null, null.ref_cnt, null.place, null.block_hash) == (True, 0, None, None)


def test_the_null_block_is_never_freed_and_its_count_means_nothing() -> None:
    pool = pool_of(4)
    pool.touch([0], 0)
    pool.free_blocks([0, 0], 0)
    assert queue(pool) == [1, 2, 3]
    assert pool.block(0).ref_cnt == 0


def test_usage_is_the_share_of_the_usable_blocks() -> None:
    pool = pool_of(4)
    assert pool.get_usage() == 0
    pool.get_new_blocks(2, 0)
    assert pool.get_usage() == 1 - 1 / 3
    pool.get_new_blocks(1, 0)
    assert pool.get_usage() == 1


def test_usage_of_a_pool_with_only_the_null_block_is_the_integer_0() -> None:
    usage = pool_of(1).get_usage()
    assert (usage, type(usage)) == (0, int)


# ---- get_new_blocks, touch, free_blocks, 1.5 to 1.7


def test_new_blocks_come_from_the_head_with_one_holder() -> None:
    pool = pool_of(6)
    assert pool.get_new_blocks(3, 0) == [1, 2, 3]
    assert pool.ref_cnt[1:] == [1, 1, 1, 0, 0]
    assert queue(pool) == [4, 5]


def test_more_than_the_free_blocks_is_an_error_and_nothing_changes() -> None:
    pool = pool_of(4)
    with pytest.raises(PoolExhaustedError, match="4 of 3 free blocks"):
        pool.get_new_blocks(4, 0)
    assert (queue(pool), pool.ref_cnt) == ([1, 2, 3], [0, 0, 0, 0])


def test_a_popped_block_loses_all_its_keys_the_primary_one_first() -> None:
    pool = pool_of(3)
    pool.insert_key(key(b"one"), 1, 4)
    pool.insert_key(key(b"two"), 1, 2)
    pool.insert_key(key(b"one"), 2, 4)
    assert pool.get_new_blocks(2, 0) == [1, 2]
    assert pool.take_events() == [BlockRemoved(b"one", 0), BlockRemoved(b"two", 0), BlockRemoved(b"one", 0)]
    assert (len(pool.cached), pool.keys_of(1), pool.keys_of(2), pool.block_hash_num_tokens) == (0, [], [], [0, 0, 0])


def test_touch_takes_a_free_block_out_of_the_queue_and_keeps_its_keys() -> None:
    pool = pool_of(5)
    pool.insert_key(key(b"one"), 2, 4)
    pool.touch([2, 4], 0)
    pool.touch([2], 0)
    assert queue(pool) == [1, 3]
    assert (pool.ref_cnt[2], pool.ref_cnt[4]) == (2, 1)
    assert pool.get_cached_block(b"one", [0]) == [2]
    assert pool.take_events() == []


def test_unhashed_blocks_go_to_the_front_and_hashed_ones_to_the_back() -> None:
    pool = pool_of(9)
    pool.get_new_blocks(5, 0)
    pool.insert_key(key(b"one"), 2, 4)
    pool.insert_key(key(b"two"), 4, 8)
    pool.free_blocks([5, 4, 3, 2, 1], 0)
    assert queue(pool) == [5, 3, 1, 6, 7, 8, 4, 2]
    assert pool.take_events() == []


def test_a_block_with_other_holders_stays_out_of_the_queue() -> None:
    pool = pool_of(4)
    pool.get_new_blocks(2, 0)
    pool.touch([1], 0)
    pool.free_blocks([2, 1], 0)
    assert (queue(pool), pool.ref_cnt[1]) == ([2, 3], 1)
    pool.free_blocks([1], 0)
    assert queue(pool) == [1, 2, 3]


def test_with_caching_off_every_block_goes_to_the_front() -> None:
    pool = pool_of(6, caching=False)
    pool.get_new_blocks(3, 0)
    pool.free_blocks([3, 2, 1], 0)
    assert queue(pool) == [3, 2, 1, 4, 5]


def test_with_caching_off_a_hash_makes_no_difference() -> None:
    pool = pool_of(6, caching=False)
    pool.get_new_blocks(3, 0)
    pool.insert_key(key(b"one"), 2, 4)
    pool.free_blocks([3, 2, 1], 0)
    assert queue(pool) == [3, 2, 1, 4, 5]


# ---- W1 and W2, 1.7, 1.11, as scenarios


def test_w1_a_block_filled_by_computed_tokens_is_hashed_and_reused_last() -> None:
    run = Run(9)
    run.add("a", [(10, 10)], max_tokens=3)
    run.step()
    assert run.table("a") == [1, 2, 3]
    run.step()
    assert run.request("a").num_tokens == 12
    assert [run.hashed(block) for block in (1, 2, 3)] == [True, True, False]
    last = run.step()
    assert [kind for kind, *_ in events(last)] == ["stored"]
    assert run.queue == [4, 5, 6, 7, 8, 3, 2, 1]


def test_w1_with_max_tokens_2_the_last_block_stays_unhashed_and_is_reused_first() -> None:
    run = Run(9)
    run.add("a", [(10, 10)], max_tokens=2)
    run.steps(2)
    assert run.queue == [3, 4, 5, 6, 7, 8, 2, 1]


def test_w1_with_caching_off_the_table_goes_reversed_to_the_front() -> None:
    run = Run(9, enable_prefix_caching=False)
    run.add("a", [(10, 10)], max_tokens=3)
    run.steps(3)
    assert run.queue == [3, 2, 1, 4, 5, 6, 7, 8]


def two_with_one_prompt(num_blocks: int, max_tokens_a: int = 2) -> Run:
    run = Run(num_blocks)
    run.add("a", [(100, 8)], max_tokens=max_tokens_a)
    run.add("b", [(100, 8)], max_tokens=9)
    run.step()
    return run


def test_w2_equal_content_lies_in_two_blocks_and_the_oldest_is_hit() -> None:
    run = two_with_one_prompt(9)
    assert (run.table("a"), run.table("b")) == ([1, 2], [1, 3])
    assert run.listed(run.hashes("b")[1]) == [2, 3]
    run.step()
    assert run.table("b") == [1, 3, 5]
    assert run.queue == [4, 6, 7, 8, 2]
    run.add("c", [(100, 9)])
    assert run.step().calls[-1].hit_blocks == ((1, 2),)
    assert run.table("c")[:2] == [1, 2]


def test_w2_after_the_oldest_is_evicted_the_next_is_hit() -> None:
    run = two_with_one_prompt(6)
    second = run.hashes("b")[1]
    run.step()  # a ends with [1,2,4], b has [1,3,5]: 4 and 2 are free
    run.add("x", 5, max_tokens=1)
    assert removed(run.step()) == short([second])
    assert run.listed(second) == [3]
    run.add("c", [(100, 9)])
    assert run.step().calls[-1].hit_blocks == ((1, 3),)


def test_w2_evicting_both_emits_two_equal_removed_events() -> None:
    run = two_with_one_prompt(6, max_tokens_a=1)
    second = short([run.hashes("b")[1]])[0]
    run.abort("b")
    assert run.queue == [4, 5, 2, 3, 1]
    run.add("x", 16)
    assert removed(run.step()) == [second, second]


# ---- keys, 1.8


def test_the_first_key_is_the_primary_one_and_later_ones_are_secondary() -> None:
    pool = pool_of(4)
    pool.insert_key(key(b"one"), 2, 4)
    pool.insert_key(key(b"two"), 2, 2)
    block = pool.block(2)
    assert (block.block_hash, block.block_hash_num_tokens, block.secondary) == (key(b"one"), 4, (key(b"two"),))
    assert pool.keys_of(2) == [key(b"one"), key(b"two")]


def test_a_key_that_the_block_carries_is_not_inserted_again() -> None:
    pool = pool_of(4)
    pool.insert_key(key(b"one"), 2, 4)
    pool.insert_key(key(b"one"), 3, 4)
    pool.insert_key(key(b"one"), 2, 8)
    assert pool.cached.blocks(key(b"one")) == [2, 3]
    assert pool.block_hash_num_tokens[2] == 4


def test_one_group_without_the_hash_makes_the_lookup_a_miss() -> None:
    pool = pool_of(4)
    pool.insert_key((b"one", 0), 2, 4)
    pool.insert_key((b"one", 1), 3, 4)
    assert pool.get_cached_block(b"one", [1, 0]) == [3, 2]
    assert pool.get_cached_block(b"one", [0, 1, 2]) is None


def test_registration_stores_the_range_behind_its_parent() -> None:
    pool, request = pool_of(9), request_of(12)
    table = pool.get_new_blocks(3, 0)
    pool.cache_full_blocks(request, table, 0, 1, 4, 0)
    pool.cache_full_blocks(request, table, 1, 3, 4, 0)
    hashes = request.block_hashes
    assert pool.take_events() == [
        BlockStored((hashes[0],), None, (10, 11, 12, 13), 4, 0, None, (None,)),
        BlockStored((hashes[1], hashes[2]), hashes[0], tuple(range(14, 22)), 4, 0, None, (None, None)),
    ]
    assert pool.block_hash_num_tokens[1:4] == [4, 8, 12]


def test_an_empty_range_registers_nothing_and_emits_nothing() -> None:
    pool, request = pool_of(9), request_of(12)
    pool.cache_full_blocks(request, pool.get_new_blocks(3, 0), 2, 2, 4, 0)
    assert (pool.take_events(), len(pool.cached)) == ([], 0)


def test_null_and_masked_entries_are_skipped_but_the_event_covers_the_range() -> None:
    pool, request = pool_of(9), request_of(16)
    one, two = pool.get_new_blocks(2, 0)
    pool.cache_full_blocks(request, [0, one, two, 5], 0, 3, 4, 0, [True, False, True])
    assert pool.take_events() == [
        BlockStored((request.block_hashes[2],), None, tuple(range(10, 22)), 4, 0, None, (None,))
    ]
    pool.cache_full_blocks(request, [0, 0, two, 5], 0, 2, 4, 0)
    assert pool.take_events() == [BlockStored((), None, tuple(range(10, 18)), 4, 0, None, ())]


def test_a_block_with_a_shorter_prefix_loses_it_when_it_is_registered_in_full() -> None:
    pool, request = pool_of(9), request_of(8)
    table = pool.get_new_blocks(2, 0)
    pool.insert_key(key(b"part"), table[1], 6)
    pool.cache_full_blocks(request, table, 0, 2, 4, 0)
    assert [type(event) for event in pool.take_events()] == [BlockRemoved, BlockStored]
    assert pool.keys_of(table[1]) == [(request.block_hashes[1], 0)]


def test_a_block_twice_as_large_as_a_hash_takes_the_hash_that_ends_with_it() -> None:
    fine = BlockHasher(HASH_FUNCTIONS["sha256_cbor"], HASHER.none_hash, 2)
    pool, request = pool_of(9), request_of(12, hasher=fine)
    table = pool.get_new_blocks(3, 0)
    pool.cache_full_blocks(request, table, 1, 3, 4, 0)
    event = pool.take_events()[0]
    assert isinstance(event, BlockStored)
    assert event.block_hashes == (request.block_hashes[3], request.block_hashes[5])
    assert event.parent_block_hash == request.block_hashes[1]


# ---- reset and evict, 1.10


def test_a_reset_with_a_block_in_use_is_refused_and_changes_nothing() -> None:
    pool, request = pool_of(5), request_of(4)
    pool.cache_full_blocks(request, pool.get_new_blocks(1, 0), 0, 1, 4, 0)
    pool.take_events()
    assert not pool.reset_prefix_cache()
    assert (len(pool.cached), pool.take_events(), queue(pool)) == (1, [], [2, 3, 4])


def test_a_reset_forgets_every_hash_with_one_event_and_keeps_the_queue() -> None:
    pool, request = pool_of(6), request_of(12)
    table = pool.get_new_blocks(3, 0)
    pool.cache_full_blocks(request, table, 0, 2, 4, 0)
    pool.insert_key(key(b"part"), table[0], 2)
    pool.free_blocks(table[::-1], 0)
    pool.take_events()
    assert queue(pool) == [3, 4, 5, 2, 1]
    assert pool.reset_prefix_cache()
    assert pool.take_events() == [AllBlocksCleared()]
    assert queue(pool) == [3, 4, 5, 2, 1]
    assert (len(pool.cached), [pool.keys_of(block) for block in range(6)]) == (0, [[]] * 6)
    assert pool.block_hash_num_tokens == [0] * 6


def test_a_pool_with_nothing_cached_can_be_reset() -> None:
    pool = pool_of(3)
    assert pool.reset_prefix_cache()
    assert pool.take_events() == [AllBlocksCleared()]


def test_evicting_takes_only_the_keys() -> None:
    pool, request = pool_of(6), request_of(12)
    table = pool.get_new_blocks(3, 0)
    pool.cache_full_blocks(request, table, 0, 3, 4, 0)
    pool.take_events()
    pool.evict_blocks([table[2], table[0], 5])
    assert pool.take_events() == [BlockRemoved(request.block_hashes[2], 0), BlockRemoved(request.block_hashes[0], 0)]
    assert (pool.ref_cnt[1:4], queue(pool), list(pool.cached)) == ([1, 1, 1], [4, 5], [(request.block_hashes[1], 0)])


def test_with_events_off_nothing_is_kept() -> None:
    pool = BlockPool(4, enable_caching=True, enable_kv_cache_events=False)
    pool.cache_full_blocks(request_of(4), pool.get_new_blocks(1, 0), 0, 1, 4, 0)
    pool.free_blocks([1], 0)
    pool.get_new_blocks(3, 0)
    pool.free_blocks([1, 2, 3], 0)
    assert pool.reset_prefix_cache()
    assert pool.take_events() == []
