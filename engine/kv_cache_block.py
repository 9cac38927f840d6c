"""Blocks, the free queue and the hash map, as flat columns over block ids (behaviour 1.1 to 1.4).

A block is an id. What it carries lies in lists indexed by that id, so that a pool of a million blocks is built in well
under a second and copied with a few list copies.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.block_hash import BlockHash

Key = tuple[BlockHash, int]
"""What the prefix-cache map is indexed by: (block hash, group id)."""

NULL_BLOCK = 0


class KVCacheBlock(NamedTuple):
    """One block as it is now, for readers; the pool itself keeps columns (1.1)."""

    block_id: int
    ref_cnt: int
    block_hash: Key | None
    block_hash_num_tokens: int
    secondary: tuple[Key, ...]
    is_null: bool
    place: int | None
    """Place in the free queue, 0 = handed out next; None when not in it."""


class FreeKVCacheBlockQueue:
    """The free blocks in the order in which they will be handed out, a doubly linked list (1.3).

    A deque could not take a block out of the middle in O(1). Ids 0 .. N-1 link to each other; N is the sentinel before
    the head and behind the tail; a block that links to itself is not in the queue. Labels number the places, ascending
    from head to tail; `_gaps` are the labels of blocks taken out of the middle. So no walk is needed to know a place.
    """

    __slots__ = ("_end", "_gaps", "_label", "_next", "_prev", "_tail_label", "num_free_blocks")

    def __init__(self, num_blocks: int) -> None:
        """A queue of the ids 0 .. `num_blocks` - 1, in this order."""
        ids = list(range(num_blocks + 1))
        self._end = num_blocks
        self._next = ids[1:] + ids[:1]
        self._prev = ids[-1:] + ids[:-1]
        self._label = ids
        self._tail_label = num_blocks - 1
        self._gaps: list[int] = []
        self.num_free_blocks = num_blocks

    def __contains__(self, block_id: int) -> bool:
        return self._next[block_id] != block_id

    def __iter__(self) -> Iterator[int]:
        at = self._next[self._end]
        while at != self._end:
            yield at
            at = self._next[at]

    def popleft(self) -> int:
        """Take the head. The queue must not be empty."""
        return self.popleft_n(1)[0]

    def popleft_n(self, n: int) -> list[int]:
        """Take the first `n` ids, in queue order. There must be as many."""
        assert n <= self.num_free_blocks, f"{n} of {self.num_free_blocks} free blocks"
        links, end = self._next, self._end
        taken: list[int] = []
        at = links[end]
        for _ in range(n):
            taken.append(at)
            after = links[at]
            links[at] = at
            at = after
        links[end] = at
        self._prev[at] = end
        self.num_free_blocks -= n
        return taken

    def remove(self, block_id: int) -> int:
        """Take one id out of anywhere; returns the place it had."""
        place = self.place(block_id)
        before, after = self._prev[block_id], self._next[block_id]
        self._next[before] = after
        self._prev[after] = before
        self._next[block_id] = block_id
        self.num_free_blocks -= 1
        if before != self._end:
            insort(self._gaps, self._label[block_id])
            if len(self._gaps) > self.num_free_blocks + 64:
                self._number_again()
        return place

    def append(self, block_id: int) -> None:
        """Put one id at the tail."""
        self.append_n((block_id,))

    def append_n(self, block_ids: Sequence[int]) -> None:
        """Put the ids at the tail, keeping their order."""
        links, back, labels, end, label = self._next, self._prev, self._label, self._end, self._tail_label
        last = back[end]
        for block_id in block_ids:
            assert links[block_id] == block_id, f"block {block_id} is free already"
            links[last] = block_id
            back[block_id] = last
            label += 1
            labels[block_id] = label
            links[block_id] = end
            last = block_id
        links[last] = end
        back[end] = last
        self._tail_label = label
        self.num_free_blocks += len(block_ids)

    def prepend_n(self, block_ids: Sequence[int]) -> None:
        """Put the ids in front of the old head, keeping their order."""
        links, back, labels, end = self._next, self._prev, self._label, self._end
        first = links[end]
        label = self._tail_label + 1 if first == end else labels[first]
        del self._gaps[: bisect_left(self._gaps, label)]
        for block_id in reversed(block_ids):
            assert links[block_id] == block_id, f"block {block_id} is free already"
            links[block_id] = first
            back[first] = block_id
            label -= 1
            labels[block_id] = label
            first = block_id
        links[end] = first
        back[first] = end
        self.num_free_blocks += len(block_ids)

    def place(self, block_id: int) -> int:
        """How many blocks are handed out before this one. It must be in the queue."""
        assert self._next[block_id] != block_id, f"block {block_id} is not free"
        head, label = self._label[self._next[self._end]], self._label[block_id]
        gaps = self._gaps
        return label - head - (bisect_left(gaps, label) - bisect_right(gaps, head)) if gaps else label - head

    def neighbours(self, block_id: int) -> tuple[int, int]:
        """The ids before and behind it, N at either end of the queue; its own twice where it is not in the queue.

        Of N, which stands before the head and behind the tail: the last and the first one.
        """
        after = self._next[block_id]
        return (block_id, block_id) if after == block_id != self._end else (self._prev[block_id], after)

    def get_all_free_blocks(self) -> list[int]:
        """Every free id, head first."""
        return list(self)

    def last(self, n: int) -> list[int]:
        """The last `n` free ids at the most, in queue order."""
        at = self._prev[self._end]
        found: list[int] = []
        while at != self._end and len(found) < n:
            found.append(at)
            at = self._prev[at]
        return found[::-1]

    def fork(self) -> FreeKVCacheBlockQueue:
        """An independent copy."""
        twin = object.__new__(FreeKVCacheBlockQueue)
        twin._end, twin._tail_label, twin.num_free_blocks = self._end, self._tail_label, self.num_free_blocks
        twin._next, twin._prev, twin._label, twin._gaps = self._next[:], self._prev[:], self._label[:], self._gaps[:]
        return twin

    def _number_again(self) -> None:
        """Close the gaps; at most once for as many removals as there are free blocks."""
        label = -1
        for label, block_id in enumerate(self):
            self._label[block_id] = label
        self._tail_label = label
        self._gaps.clear()


class BlockHashToBlockMap:
    """Key -> the blocks that carry it, the oldest first (1.4). The same content may lie in several blocks."""

    __slots__ = ("_oldest", "_younger")

    def __init__(self) -> None:
        self._oldest: dict[Key, int] = {}
        self._younger: dict[Key, list[int]] = {}

    def __len__(self) -> int:
        return len(self._oldest)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._oldest)

    def get_one_block(self, key: Key) -> int | None:
        """The block that has been under the key longest, or None."""
        return self._oldest.get(key)

    def blocks(self, key: Key) -> list[int]:
        """All blocks under the key, the oldest first."""
        oldest = self._oldest.get(key)
        return [] if oldest is None else [oldest, *self._younger.get(key, ())]

    def fingerprint(self) -> bytes:
        """Bytes that are equal for equal maps, made without walking them in Python."""
        hashes, groups = zip(*self._oldest, strict=True) if self._oldest else ((), ())
        ids = array("Q", groups).tobytes() + array("Q", self._oldest.values()).tobytes()
        return b"".join(hashes) + ids + repr(self._younger).encode()

    def insert(self, key: Key, block_id: int) -> bool:
        """Put the block behind those already under the key; False if it was there."""
        oldest = self._oldest.get(key)
        if oldest is None:
            self._oldest[key] = block_id
            return True
        younger = self._younger.get(key, [])
        if oldest == block_id or block_id in younger:
            return False
        self._younger[key] = younger
        younger.append(block_id)
        return True

    def pop(self, key: Key, block_id: int) -> bool:
        """Take just this block from the key; False if it was not there."""
        oldest = self._oldest.get(key)
        younger = self._younger.get(key)
        if oldest == block_id:
            if younger is None:
                del self._oldest[key]
                return True
            self._oldest[key] = younger.pop(0)
        elif younger is not None and block_id in younger:
            younger.remove(block_id)
        else:
            return False
        if not younger:
            del self._younger[key]
        return True

    def clear(self) -> None:
        """Forget every key."""
        self._oldest.clear()
        self._younger.clear()

    def fork(self) -> BlockHashToBlockMap:
        """An independent copy."""
        twin = BlockHashToBlockMap()
        twin._oldest = self._oldest.copy()
        twin._younger = {key: ids[:] for key, ids in self._younger.items()}
        return twin
