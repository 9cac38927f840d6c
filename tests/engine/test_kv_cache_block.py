"""The free queue (1.3) against a plain list, and the hash map (1.4)."""

from __future__ import annotations

import random

import pytest

from engine.kv_cache_block import BlockHashToBlockMap, FreeKVCacheBlockQueue

KEY, OTHER = (b"one", 0), (b"two", 0)


def agrees(queue: FreeKVCacheBlockQueue, model: list[int]) -> None:
    """Everything that can be read of the queue is what the list says."""
    assert queue.get_all_free_blocks() == model
    assert queue.num_free_blocks == len(model)
    assert [queue.place(block) for block in model] == list(range(len(model)))
    assert queue.last(len(model) + 3) == model
    assert queue.last(2) == model[-2:]


# ---- the free queue


def test_the_queue_starts_with_all_ids_in_order() -> None:
    agrees(FreeKVCacheBlockQueue(5), [0, 1, 2, 3, 4])


def test_pop_takes_the_head_and_keeps_the_order() -> None:
    queue = FreeKVCacheBlockQueue(6)
    assert queue.popleft() == 0
    assert queue.popleft_n(3) == [1, 2, 3]
    assert queue.popleft_n(0) == []
    agrees(queue, [4, 5])


def test_prepend_and_append_keep_the_order_of_the_list() -> None:
    queue = FreeKVCacheBlockQueue(8)
    queue.popleft_n(6)
    queue.prepend_n([3, 1, 2])
    queue.append_n([5, 4])
    queue.append(0)
    queue.prepend_n([])
    queue.append_n([])
    agrees(queue, [3, 1, 2, 6, 7, 5, 4, 0])


@pytest.mark.parametrize("block", [0, 2, 5], ids=["head", "middle", "tail"])
def test_any_member_can_be_removed(block: int) -> None:
    queue = FreeKVCacheBlockQueue(6)
    assert queue.remove(block) == block
    assert block not in queue
    agrees(queue, [one for one in range(6) if one != block])


def test_remove_returns_the_place_that_the_block_had() -> None:
    queue = FreeKVCacheBlockQueue(9)
    queue.popleft()
    assert [queue.remove(block) for block in (3, 5, 1, 8)] == [2, 3, 0, 4]


def test_popping_too_many_is_an_error_and_changes_nothing() -> None:
    queue = FreeKVCacheBlockQueue(3)
    with pytest.raises(AssertionError, match="4 of 3 free blocks"):
        queue.popleft_n(4)
    agrees(queue, [0, 1, 2])
    queue.popleft_n(3)
    with pytest.raises(AssertionError, match="1 of 0 free blocks"):
        queue.popleft()
    agrees(queue, [])


def test_removing_a_non_member_is_an_error() -> None:
    queue = FreeKVCacheBlockQueue(4)
    queue.popleft()
    with pytest.raises(AssertionError, match="block 0 is not free"):
        queue.remove(0)
    with pytest.raises(AssertionError, match="block 0 is not free"):
        queue.place(0)
    agrees(queue, [1, 2, 3])


def test_putting_a_member_in_again_is_an_error() -> None:
    queue = FreeKVCacheBlockQueue(4)
    with pytest.raises(AssertionError, match="block 2 is free already"):
        queue.append(2)
    with pytest.raises(AssertionError, match="block 1 is free already"):
        queue.prepend_n([1])


def test_an_emptied_queue_is_filled_again_from_both_ends() -> None:
    queue = FreeKVCacheBlockQueue(4)
    queue.remove(2)
    queue.popleft_n(3)
    queue.prepend_n([2, 0])
    queue.append_n([1, 3])
    agrees(queue, [2, 0, 1, 3])
    queue.popleft_n(4)
    queue.append_n([3])
    queue.prepend_n([1])
    agrees(queue, [1, 3])


def test_places_are_right_after_many_gaps_are_closed() -> None:
    """Taking 400 blocks out of the middle closes the gaps several times on the way."""
    queue = FreeKVCacheBlockQueue(500)
    model = list(range(500))
    for block in random.Random(1).sample(range(1, 499), 400):
        assert queue.remove(block) == model.index(block)
        model.remove(block)
        assert queue.place(499) == len(model) - 1
    agrees(queue, model)


@pytest.mark.parametrize(("size", "seed"), [(1, 0), (2, 1), (7, 2), (40, 3), (40, 4), (200, 5), (200, 6)])
def test_the_queue_is_a_list_under_random_operations(size: int, seed: int) -> None:
    choose = random.Random(seed)
    queue, model, out = FreeKVCacheBlockQueue(size), list(range(size)), list[int]()
    for turn in range(1500):
        count = choose.randint(0, min(5, len(model)))
        back = [out.pop(choose.randrange(len(out))) for _ in range(choose.randint(0, min(5, len(out))))]
        match choose.choice(["pop", "remove", "remove", "remove", "prepend", "append", "fork"]):
            case "pop":
                assert queue.popleft_n(count) == model[:count]
                out += model[:count]
                del model[:count]
            case "remove" if model:
                block = choose.choice(model)
                assert queue.remove(block) == model.index(block)
                model.remove(block)
                out.append(block)
            case "prepend":
                queue.prepend_n(back)
                model[:0] = back
                back = []
            case "fork":
                twin, queue = queue, queue.fork()
                if model:
                    twin.popleft()
            case _:
                queue.append_n(back)
                model += back
                back = []
        out += back
        if turn % 10 == 0 or size < 50:
            agrees(queue, model)
        assert all(block not in queue for block in out)
    agrees(queue, model)


# ---- the hash map


def test_a_lookup_returns_the_oldest_block() -> None:
    cached = BlockHashToBlockMap()
    assert cached.get_one_block(KEY) is None
    assert [cached.insert(KEY, block) for block in (5, 2, 9)] == [True, True, True]
    assert cached.get_one_block(KEY) == 5
    assert cached.blocks(KEY) == [5, 2, 9]
    assert cached.blocks(OTHER) == []
    assert (len(cached), list(cached)) == (1, [KEY])


def test_pop_takes_just_that_block_and_the_others_keep_their_order() -> None:
    cached = BlockHashToBlockMap()
    for block in (5, 2, 9, 7):
        cached.insert(KEY, block)
    assert cached.pop(KEY, 2)
    assert cached.blocks(KEY) == [5, 9, 7]
    assert cached.pop(KEY, 5)
    assert cached.get_one_block(KEY) == 9
    assert cached.blocks(KEY) == [9, 7]


def test_an_emptied_key_disappears() -> None:
    cached = BlockHashToBlockMap()
    cached.insert(KEY, 5)
    cached.insert(KEY, 2)
    assert cached.pop(KEY, 5)
    assert cached.pop(KEY, 2)
    assert (len(cached), list(cached), cached.get_one_block(KEY)) == (0, [], None)


def test_popping_what_is_not_there_changes_nothing() -> None:
    cached = BlockHashToBlockMap()
    assert not cached.pop(KEY, 5)
    cached.insert(KEY, 5)
    assert not cached.pop(KEY, 6)
    cached.insert(KEY, 2)
    assert not cached.pop(KEY, 6)
    assert not cached.pop(OTHER, 5)
    assert cached.blocks(KEY) == [5, 2]


def test_a_block_removed_and_inserted_again_goes_to_the_end() -> None:
    cached = BlockHashToBlockMap()
    for block in (5, 2, 9):
        cached.insert(KEY, block)
    cached.pop(KEY, 5)
    cached.insert(KEY, 5)
    assert cached.blocks(KEY) == [2, 9, 5]


@pytest.mark.parametrize("block", [5, 2], ids=["oldest", "younger"])
def test_inserting_a_listed_block_does_nothing(block: int) -> None:
    cached = BlockHashToBlockMap()
    cached.insert(KEY, 5)
    cached.insert(KEY, 2)
    assert not cached.insert(KEY, block)
    assert cached.blocks(KEY) == [5, 2]


def test_clear_forgets_every_key() -> None:
    cached = BlockHashToBlockMap()
    for key, block in ((KEY, 5), (KEY, 2), (OTHER, 7)):
        cached.insert(key, block)
    cached.clear()
    assert (len(cached), cached.blocks(KEY)) == (0, [])


def test_a_fork_of_the_map_is_independent() -> None:
    cached = BlockHashToBlockMap()
    for block in (5, 2):
        cached.insert(KEY, block)
    twin = cached.fork()
    twin.insert(KEY, 9)
    twin.pop(KEY, 5)
    assert (cached.blocks(KEY), twin.blocks(KEY)) == ([5, 2], [2, 9])
