"""Mamba: a block holds a state, and only the newest is needed (behaviour 7.6, 7.8, 7.10, 7.12, 7.14)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.kv_cache_block import NULL_BLOCK, Key
from engine.kv_cache_interface import KVCacheSpec, MambaSpec, cdiv
from engine.request import Request
from engine.sched.mamba_split import last_boundary
from engine.single_type_kv_cache_manager.base import Count, Found, Lookup, SingleTypeKVCacheManager
from engine.single_type_kv_cache_manager.retention import reachable_positions


def never_fits(count: Count, pool: BlockPool) -> Count:
    """The count of a hit whose state is only being made: more than there are, so the request waits (7.10)."""
    return (*count[:7], pool.num_blocks + 1)


class MambaManager(SingleTypeKVCacheManager):
    """Modes other than "align": a table as long as the sequence, plus q blocks for drafts (7.14)."""

    spec: MambaSpec
    zeroed = False

    def __init__(self, spec: KVCacheSpec, pool: BlockPool, group: int, config: EngineConfig) -> None:
        super().__init__(spec, pool, group, config)
        self.extra = self.spec.num_speculative_blocks
        self.fresh_keys: set[Key] = set()
        """Keys registered in this step: their states are not computed yet, so nobody may read them."""

    def fork(self, pool: BlockPool) -> SingleTypeKVCacheManager:
        """An independent copy over `pool`."""
        twin = super().fork(pool)
        assert isinstance(twin, MambaManager)
        twin.fresh_keys = self.fresh_keys.copy()
        return twin

    @staticmethod
    def find_longest_cache_hit(spec: KVCacheSpec, lookup: Lookup) -> Found:
        """From the right: one cached state is enough, everything before it is null. EAGLE never drops it."""
        size, alignment, hash_size = spec.block_size, lookup.alignment, lookup.hash_size
        partial = alignment < size and size % alignment == 0
        unit = hash_size if partial else size
        steps = min(lookup.bound // unit, len(lookup.hashes) * hash_size // unit)
        missing = None
        for index in range(steps - 1, -1, -1):
            length = (index + 1) * unit
            if not partial and length % alignment:
                continue
            block_hash = lookup.hashes[length // hash_size - 1]
            cached = lookup.pool.get_cached_block(block_hash, lookup.members)
            if cached is not None:
                nulls = index * unit // size
                tables = tuple([NULL_BLOCK] * nulls + [block] for block in cached)
                return Found(tables, length, nulls + 1, missing)
            missing = missing or block_hash
        return Found(tuple([] for _ in lookup.members), 0, 0, missing)

    def get_num_skipped_tokens(self, num_computed_tokens: int) -> int:
        """All but the newest state."""
        return max(num_computed_tokens - 1, 0)

    def new_step_starts(self) -> None:
        """States of the step before are computed now."""
        self.fresh_keys.clear()

    def waits_for_state(self, hit: Sequence[int]) -> bool:
        """Whether the hit's state is only being made in this very step (7.10 Count 1)."""
        return bool(hit) and self.pool.block_hash[hit[-1]] in self.fresh_keys

    def get_num_blocks_to_allocate(
        self, request_id: str, slots: int, main: int, hit: Sequence[int], local: int, known: int, *, capped: bool
    ) -> Count:
        """As for attention, with q blocks more; a state made in this step can never fit."""
        slots += self.extra * self.block_size
        count = super().get_num_blocks_to_allocate(request_id, slots, main, hit, local, known, capped=capped)
        return never_fits(count, self.pool) if self.waits_for_state(hit) else count

    def allocate_new_blocks(self, request_id: str, slots: int, main: int) -> list[int]:
        """Grow to `slots` tokens and q blocks."""
        return super().allocate_new_blocks(request_id, slots + self.extra * self.block_size, main)

    def reachable_block_mask(self, request: Request, first: int, end: int) -> list[bool] | None:
        """A state every retention interval, and one before each position that a retained hit can end at (7.8)."""
        interval, size, alignment = self.config.prefix_cache_retention_interval, self.block_size, self.config.alignment
        if interval is None or 0 < interval // size <= 1:
            return None
        per = interval // size
        chosen = [bool(per) and (index + 1) % per == 0 for index in range(first, end)]
        for position in reachable_positions(self.config, request):
            index = position // alignment * alignment // size - 1
            if first <= index < end:
                chosen[index - first] = True
        return chosen

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Register, and keep everybody from reading the new states in this step (7.10)."""
        request_id = request.request_id
        first = self.num_cached_block.get(request_id, 0)
        super().cache_blocks(request, num_tokens)
        table = self.req_to_blocks[request_id]
        for block in table[first : num_tokens // self.block_size]:
            key = self.pool.block_hash[block]
            if block != NULL_BLOCK and key is not None:
                self.fresh_keys.add(key)


class MambaAlignManager(MambaManager):
    """Mode "align": states at block edges; one running state moves along, tables are mostly null (7.10)."""

    def __init__(self, spec: KVCacheSpec, pool: BlockPool, group: int, config: EngineConfig) -> None:
        super().__init__(spec, pool, group, config)
        self.started: set[str] = set()
        """Requests that had an allocation since their last admission."""
        self._passed: dict[str, int] = {}
        """Leading table entries that were released or passed over before."""

    def fork(self, pool: BlockPool) -> SingleTypeKVCacheManager:
        """An independent copy over `pool`."""
        twin = super().fork(pool)
        assert isinstance(twin, MambaAlignManager)
        twin.started, twin._passed = self.started.copy(), self._passed.copy()
        return twin

    def get_num_blocks_to_allocate(
        self, request_id: str, slots: int, main: int, hit: Sequence[int], local: int, known: int, *, capped: bool
    ) -> Count:
        """One running state, q for drafts at first, and a copy where the hit is partial; lookahead is ignored."""
        need = cdiv(main, self.block_size) + self.extra
        held = len(self.req_to_blocks.get(request_id, ()))
        nulls = max(need - self.extra - 1, 0)
        if self.waits_for_state(hit):
            return never_fits((need, held, nulls, len(hit), 0, 0, 0, 0), self.pool)
        fresh = need - len(hit) - held
        copies = 1 if (hit and local % self.block_size) or request_id in self.pending else 0
        if copies:
            fresh = max(fresh, 0) + 1
        if fresh > 0:
            fresh = min(fresh, 1 + copies + (0 if request_id in self.started else self.extra))
        idle = self.count_idle(hit)
        return need, held, nulls, len(hit), fresh - copies, idle, copies, fresh + idle

    def remove_skipped_blocks(self, request_id: str, num_computed_tokens: int) -> None:
        """Give back every state before the running one, passing over nulls (7.10)."""
        table = self.req_to_blocks.get(request_id)
        if not table:
            return
        end = min((num_computed_tokens - 1) // self.block_size, len(table))
        start = self._passed.get(request_id, 0)
        if end <= start:
            return
        released = [block for block in reversed(table[start:end]) if block != NULL_BLOCK]
        table[start:end] = [NULL_BLOCK] * (end - start)
        self._passed[request_id] = end
        if released:
            self.pool.free_blocks(released, self.group)

    def allocate_new_blocks(self, request_id: str, slots: int, main: int) -> list[int]:
        """Move the draft states along and append the running one (7.10 Grow)."""
        table = self.req_to_blocks.setdefault(request_id, [])
        pending = self.pending.get(request_id)
        need = cdiv(main, self.block_size) + self.extra
        started = request_id in self.started
        old = len(table)
        self.started.add(request_id)
        if need <= old and pending is None:
            return []
        running = need - self.extra - 1
        table += [NULL_BLOCK] * (running - old)
        if started:
            for index in range(old - self.extra, min(old, running)):
                table.append(table[index])
                table[index] = NULL_BLOCK
        blocks = self.new_blocks(max(need - len(table), 0) + (pending is not None))
        result = table[old:]
        if pending is not None:
            copy, *blocks = blocks  # the list itself is in the trace
            result = self._copy_state(request_id, table, copy, started=started) + result
        table += blocks
        return result + blocks

    def _copy_state(self, request_id: str, table: list[int], copy: int, *, started: bool) -> list[int]:
        """Copy-on-write of a state; returns what was added to the table (7.10 Grow 6).

        A request that reads a cached state gets the copy. One that made the state goes on with it, and the copy takes
        over its place in the cache.
        """
        index, source = self.pending.pop(request_id)
        if not started:
            table[index] = copy
            self.queue_copy(request_id, source, copy, held=copy)
            return [copy]
        self.pool.move_keys(source, copy)
        self.queue_copy(request_id, source, copy, held=source)
        key = self.pool.block_hash[copy]
        if key is not None:
            self.fresh_keys.add(key)
        return []

    def caches_partial_tail(self) -> bool:
        """Always: the boundary's state is kept from readers once more, also where it fills a block."""
        return True

    def cache_partial_tail(self, request: Request, num_tokens: int) -> None:
        """The state at the prompt's last hash boundary; the next allocation copies it away first (7.12)."""
        size, request_id = self.block_size, request.request_id
        if num_tokens <= 0 or num_tokens % self.hash_size:
            return
        if num_tokens != last_boundary(request.num_prompt_tokens, self.hash_size, eagle=self.config.use_eagle):
            return
        table = self.req_to_blocks[request_id]
        index = cdiv(num_tokens, size) - 1
        if index >= len(table) or table[index] == NULL_BLOCK:
            return
        self.pool.cache_partial_block(request, table[index], num_tokens, self.group)
        key = (request.block_hashes[num_tokens // self.hash_size - 1], self.group)
        self.fresh_keys.add(key)
        if num_tokens % size:
            self.pending[request_id] = (index, table[index])
            self.num_cached_block[request_id] = index

    def free(self, request_id: str) -> None:
        """Drop everything that is kept of the request."""
        self.started.discard(request_id)
        self._passed.pop(request_id, None)
        super().free(request_id)
