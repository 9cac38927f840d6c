"""The pool: who is free, who carries which hash, and in which order blocks are reused (behaviour 1)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.block_hash import BlockHash
from engine.errors import PoolExhaustedError
from engine.kv_cache_block import NULL_BLOCK, BlockHashToBlockMap, FreeKVCacheBlockQueue, Key, KVCacheBlock
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent
from engine.request import Request
from engine.trace import Emit, no_trace


class BlockPool:
    """N blocks with their reference counts, keys and free queue; block 0 is the null block (1.2)."""

    __slots__ = (
        "_events",
        "block_hash",
        "block_hash_num_tokens",
        "cached",
        "emit",
        "enable_caching",
        "enable_kv_cache_events",
        "free_queue",
        "num_blocks",
        "ref_cnt",
        "secondary",
    )

    def __init__(
        self, num_blocks: int, *, enable_caching: bool, enable_kv_cache_events: bool = True, emit: Emit = no_trace
    ) -> None:
        self.num_blocks = num_blocks
        self.enable_caching = enable_caching
        self.enable_kv_cache_events = enable_kv_cache_events
        self.emit = emit
        self.ref_cnt = [0] * num_blocks
        self.block_hash: list[Key | None] = [None] * num_blocks
        self.block_hash_num_tokens = [0] * num_blocks
        self.secondary: dict[int, dict[Key, None]] = {}
        self.cached = BlockHashToBlockMap()
        self.free_queue = FreeKVCacheBlockQueue(num_blocks)
        self._events: list[KVCacheEvent] = []
        self.free_queue.popleft()

    def fork(self, emit: Emit) -> BlockPool:
        """An independent copy that reports to `emit`."""
        twin = object.__new__(BlockPool)
        twin.num_blocks, twin.enable_caching, twin.emit = self.num_blocks, self.enable_caching, emit
        twin.enable_kv_cache_events = self.enable_kv_cache_events
        twin.ref_cnt, twin.block_hash = self.ref_cnt[:], self.block_hash[:]
        twin.block_hash_num_tokens = self.block_hash_num_tokens[:]
        twin.secondary = {block: keys.copy() for block, keys in self.secondary.items()}
        twin.cached, twin.free_queue = self.cached.fork(), self.free_queue.fork()
        twin._events = self._events[:]
        return twin

    # ---- reading

    @property
    def num_free_blocks(self) -> int:
        """Blocks in the free queue, hashed or not."""
        return self.free_queue.num_free_blocks

    def get_usage(self) -> float:
        """The share of the usable blocks that is held, 0 to 1; the integer 0 with only the null block (1.9)."""
        usable = self.num_blocks - 1
        return 1 - self.free_queue.num_free_blocks / usable if usable else 0

    def get_cached_block(self, block_hash: BlockHash, groups: Sequence[int]) -> list[int] | None:
        """The oldest block with this hash in each group, or None when any group lacks it (1.4)."""
        found = []
        for group in groups:
            block_id = self.cached.get_one_block((block_hash, group))
            if block_id is None:
                return None
            found.append(block_id)
        return found

    def keys_of(self, block_id: int) -> list[Key]:
        """Every key the block carries, the primary one first."""
        primary = self.block_hash[block_id]
        return [] if primary is None else [primary, *self.secondary.get(block_id, ())]

    def block(self, block_id: int) -> KVCacheBlock:
        """One block as it is now."""
        keys = self.keys_of(block_id)
        free = block_id in self.free_queue
        return KVCacheBlock(
            block_id=block_id,
            ref_cnt=0 if block_id == NULL_BLOCK else self.ref_cnt[block_id],
            block_hash=keys[0] if keys else None,
            block_hash_num_tokens=self.block_hash_num_tokens[block_id],
            secondary=tuple(keys[1:]),
            is_null=block_id == NULL_BLOCK,
            place=self.free_queue.place(block_id) if free else None,
        )

    # ---- taking and giving back

    def get_new_blocks(self, n: int, group: int) -> list[int]:
        """Hand out the first `n` free blocks; their hashes are lost (1.5).

        Raises:
            PoolExhaustedError: there are fewer; nothing was taken.
        """
        if n > self.free_queue.num_free_blocks:
            raise PoolExhaustedError(f"{n} of {self.free_queue.num_free_blocks} free blocks")
        blocks = self.free_queue.popleft_n(n)
        ref_cnt, hashes = self.ref_cnt, self.block_hash
        evicted = []
        for place, block_id in enumerate(blocks):
            if hashes[block_id] is not None:
                evicted.append((place, block_id, self.evict(block_id)))
            ref_cnt[block_id] = 1
        self.emit(("pop", group, blocks, evicted))
        return blocks

    def touch(self, blocks: Sequence[int], group: int) -> None:
        """One more holder for each block; free ones leave the queue and keep their keys (1.6)."""
        ref_cnt = self.ref_cnt
        blocks = [block_id for block_id in blocks if block_id != NULL_BLOCK]
        before = [ref_cnt[block_id] for block_id in blocks]
        places = []
        for block_id in blocks:
            places.append(None if ref_cnt[block_id] else self.free_queue.remove(block_id))
            ref_cnt[block_id] += 1
        self.emit(("touch", group, blocks, before, places))

    def free_blocks(self, ordered: Sequence[int], group: int) -> None:
        """One holder less for each block (1.7).

        Those that nobody holds any more go back to the queue: unhashed ones to the front, hashed ones to the back, each
        in the given order.
        """
        ref_cnt, hashes, caching = self.ref_cnt, self.block_hash, self.enable_caching
        free = self.free_queue.num_free_blocks
        front: list[int] = []
        back: list[int] = []
        held: list[tuple[int, int]] = []
        for block_id in ordered:
            if block_id == NULL_BLOCK:
                continue
            refs = ref_cnt[block_id] - 1
            ref_cnt[block_id] = refs
            if refs:
                held.append((block_id, refs))
            elif caching and hashes[block_id] is not None:
                back.append(block_id)
            else:
                front.append(block_id)
        if front:
            self.free_queue.prepend_n(front)
        if back:
            self.free_queue.append_n(back)
        self.emit(("free", group, ordered, front, back, held, free))

    # ---- keys

    def insert_key(self, key: Key, block_id: int, num_tokens: int) -> None:
        """Give the block a key for the prefix of `num_tokens` tokens: the primary one if it has none yet (1.8)."""
        primary = self.block_hash[block_id]
        if primary == key or not self.cached.insert(key, block_id):
            return
        if primary is None:
            self.block_hash[block_id] = key
            self.block_hash_num_tokens[block_id] = num_tokens
        else:
            self.secondary.setdefault(block_id, {})[key] = None

    def evict(self, block_id: int) -> list[Key]:
        """Take every key from the block, with `removed` events (1.5 step 3); returns those that were in the map."""
        lost = [key for key in self.keys_of(block_id) if self.cached.pop(key, block_id)]
        self.block_hash[block_id] = None
        self.block_hash_num_tokens[block_id] = 0
        self.secondary.pop(block_id, None)
        if self.enable_kv_cache_events:
            self._events.extend(BlockRemoved(*key) for key in lost)
        return lost

    def _replace_keys(self, block_id: int) -> None:
        """A longer prefix will take the place of the one that the block stands for."""
        self.emit(("replace", block_id, self.evict(block_id)))

    def evict_blocks(self, block_ids: Sequence[int]) -> None:
        """Take the keys from these blocks; counts, queue and tables stay (1.10)."""
        for block_id in block_ids:
            self.evict(block_id)

    def cache_full_blocks(
        self,
        request: Request,
        table: Sequence[int],
        first: int,
        end: int,
        block_size: int,
        group: int,
        mask: Sequence[bool] | None = None,
    ) -> None:
        """Register table entries `first` .. `end` - 1, those that `mask` chooses and that are not null (1.8).

        The `stored` event covers the whole range, chosen or not, and comes even when nothing was chosen.
        """
        if first >= end:
            return
        fine = block_size // request.hash_size
        block_hashes = request.block_hashes
        before = block_hashes[first * fine - 1] if first else None
        chosen, hashes, indexes, parents = [], [], [], []
        parent = before
        for index in range(first, end):
            block_id = table[index]
            last, block_hash = parent, block_hashes[(index + 1) * fine - 1]
            parent = block_hash
            if block_id == NULL_BLOCK or (mask is not None and not mask[index - first]):
                continue
            if self.block_hash[block_id] is not None:
                self._replace_keys(block_id)
            self.insert_key((block_hash, group), block_id, (index + 1) * block_size)
            chosen.append(block_id)
            hashes.append(block_hash)
            indexes.append(index)
            parents.append(last)
        self.emit(("hash", group, first, end, chosen, hashes, before, indexes, parents))
        if self.enable_kv_cache_events:
            self._store(request, tuple(hashes), before, (first * block_size, end * block_size), block_size, group)

    def cache_partial_block(self, request: Request, block_id: int, num_tokens: int, group: int) -> None:
        """Register a prefix of `num_tokens` tokens, a multiple of H, on the block that holds its last part (7.12)."""
        if block_id == NULL_BLOCK:
            return
        size = request.hash_size
        index = num_tokens // size - 1
        block_hash = request.block_hashes[index]
        key = (block_hash, group)
        if key in self.keys_of(block_id):
            return
        if self.block_hash[block_id] is not None and self.block_hash_num_tokens[block_id] < num_tokens:
            self._replace_keys(block_id)
        self.insert_key(key, block_id, num_tokens)
        parent = request.block_hashes[index - 1] if index else None
        self.emit(("hash_partial", group, block_id, block_hash, parent, num_tokens))
        if self.enable_kv_cache_events:
            self._store(request, (block_hash,), parent, (num_tokens - size, num_tokens), size, group)

    def move_keys(self, source: int, target: int) -> None:
        """Every key of `source` goes on in `target`; no events (7.10 Grow 6)."""
        keys, num_tokens = self.keys_of(source), self.block_hash_num_tokens[source]
        for key in keys:
            self.cached.pop(key, source)
        self.block_hash[source] = None
        self.block_hash_num_tokens[source] = 0
        self.secondary.pop(source, None)
        for key in keys:
            self.insert_key(key, target, num_tokens)
        self.emit(("move_keys", source, target, keys))

    def _store(
        self,
        request: Request,
        hashes: tuple[BlockHash, ...],
        parent: BlockHash | None,
        span: tuple[int, int],
        block_size: int,
        group: int,
    ) -> None:
        lora, salt = request.lora, request.cache_salt
        extra: list[tuple[str, ...] | None] = [(lora,) if lora is not None else None] * len(hashes)
        if hashes and salt and hashes[0] == request.block_hashes[block_size // request.hash_size - 1]:
            extra[0] = (*(extra[0] or ()), salt)
        tokens = tuple(request.token_ids(*span))
        self._events.append(BlockStored(hashes, parent, tokens, block_size, group, lora, tuple(extra)))

    # ---- the whole pool

    def reset_prefix_cache(self) -> bool:
        """Forget every hash, if no usable block is held; the queue keeps its order (1.10). False: refused."""
        if self.num_blocks - self.free_queue.num_free_blocks != 1:
            return False
        self.emit(("clear", [(block, self.keys_of(block)) for block, key in enumerate(self.block_hash) if key]))
        self.cached.clear()
        self.block_hash = [None] * self.num_blocks
        self.block_hash_num_tokens = [0] * self.num_blocks
        self.secondary.clear()
        if self.enable_kv_cache_events:
            self._events.append(AllBlocksCleared())
        return True

    def take_events(self) -> list[KVCacheEvent]:
        """The KV events since the last take, oldest first."""
        taken, self._events = self._events, []
        return taken
