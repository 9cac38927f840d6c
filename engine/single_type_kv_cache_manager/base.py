"""Block tables of one KV-cache group, the rules common to every kind (behaviour 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from engine.block_hash import BlockHash
from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.kv_cache_block import NULL_BLOCK
from engine.kv_cache_interface import KVCacheSpec, cdiv
from engine.request import Request

Count = tuple[int, int, int, int, int, int, int, int]
"""The terms of 5.5: blocks needed in all, held, out of the window, hits, new ones, idle hits, copies, and the total to
take. "Idle" hits lie in the free queue and leave it."""

TOTAL = 7


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a finder works with: one search over the member groups of a spec group (7.5, 7.6).

    All members must hold a block for it to count as cached. `bound`: at most so many tokens; `drop`: the EAGLE rule.
    """

    pool: BlockPool
    hashes: Sequence[BlockHash]
    hash_size: int
    alignment: int
    members: tuple[int, ...]
    bound: int
    drop: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a finder found: blocks of each member (null entries 0), and the tokens they cover.

    For the trace: how many blocks it had before a drop or cut, and the first hash that was missing.
    """

    blocks: tuple[list[int], ...]
    num_tokens: int
    num_found: int
    missing: BlockHash | None = None


class SingleTypeKVCacheManager(ABC):
    """The tables of one group. A request is *tracked* once it adopted a hit or registered blocks (5.8)."""

    releases = True
    """Whether blocks of a running request can become unneeded (5.4)."""
    zeroed = True
    """Whether new blocks of this kind are reported for zeroing (7.13)."""

    def __init__(self, spec: KVCacheSpec, pool: BlockPool, group: int, config: EngineConfig) -> None:
        self.spec = spec
        self.block_size = spec.block_size
        self.pool = pool
        self.group = group
        self.config = config
        self.eagle = config.eagle_groups[group]
        self.hash_size = config.hash_size
        self.max_blocks = self.admission_cap()
        self.has_partial_tail = self.caches_partial_tail()
        self.req_to_blocks: dict[str, list[int]] = {}
        self.num_cached_block: dict[str, int] = {}
        self.pending: dict[str, tuple[int, int]] = {}
        """Request -> (table entry, its source): the entry must be copied before it is written to (7.12)."""
        self.copies: list[tuple[int, int]] = []
        self.new_block_ids: list[int] | None = [] if self.zeroed and _zeroing(config) else None

    def fork(self, pool: BlockPool) -> SingleTypeKVCacheManager:
        """An independent copy over `pool`, a fork of this manager's pool."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.pool = pool
        twin.req_to_blocks = {request: table[:] for request, table in self.req_to_blocks.items()}
        twin.num_cached_block, twin.pending = self.num_cached_block.copy(), self.pending.copy()
        twin.copies = self.copies[:]
        twin.new_block_ids = None if self.new_block_ids is None else self.new_block_ids[:]
        return twin

    # ---- what a kind decides

    @staticmethod
    @abstractmethod
    def find_longest_cache_hit(spec: KVCacheSpec, lookup: Lookup) -> Found:
        """The longest cached prefix that this kind can use (4, 7.6)."""

    def get_num_skipped_tokens(self, num_computed_tokens: int) -> int:
        """Leading tokens that are no longer needed once `num_computed_tokens` are computed (5.4)."""
        return 0

    def admission_cap(self) -> int | None:
        """The most blocks that one request ever holds at once, for the gate; None: no cap (5.3)."""
        return None

    def reachable_block_mask(self, request: Request, first: int, end: int) -> list[bool] | None:
        """Which of the entries `first` .. `end` - 1 a later lookup can reach; None: all (7.8)."""
        return None

    def caches_partial_tail(self) -> bool:
        """Whether the kind registers prefixes that end inside a block (7.12)."""
        return False

    def cache_partial_tail(self, request: Request, num_tokens: int) -> None:
        """Register the prefix that ends inside a block (7.12)."""

    def new_step_starts(self) -> None:
        """`schedule()` begins (7.10)."""

    # ---- stages of allocate_slots

    def remove_skipped_blocks(self, request_id: str, num_computed_tokens: int) -> None:
        """Give back the blocks that left the window, the highest first, leaving null entries (5.4)."""
        table = self.req_to_blocks.get(request_id)
        if not table:
            return
        end = min(self.get_num_skipped_tokens(num_computed_tokens) // self.block_size, len(table))
        released = []
        for index in range(end - 1, -1, -1):
            if table[index] == NULL_BLOCK:
                break
            released.append(table[index])
            table[index] = NULL_BLOCK
        if released:
            self.pool.free_blocks(released, self.group)

    def get_num_blocks_to_allocate(
        self, request_id: str, slots: int, main: int, hit: Sequence[int], local: int, known: int, *, capped: bool
    ) -> Count:
        """The terms of the count (5.5).

        Args:
            request_id: whose table it is.
            slots: tokens that must have a place.
            main: the same without lookahead.
            hit: blocks of the local hit.
            local: computed tokens with the hit.
            known: `local` plus external tokens.
            capped: the gate's count, no more than the request ever holds at once (5.3).
        """
        need = -(-slots // self.block_size)
        if capped and self.max_blocks is not None:
            need = min(need, self.max_blocks)
        held = len(self.req_to_blocks.get(request_id, ()))
        skipped = self.get_num_skipped_tokens(known) // self.block_size if self.releases else 0
        if request_id in self.num_cached_block:
            fresh = need - held if need > held else 0
            return need, held, skipped, 0, fresh, 0, 0, fresh
        fresh = max(need - max(skipped, len(hit) + held), 0)
        idle = self.count_idle(hit[max(0, skipped - held) :])
        copies = 1 if hit and local % self.block_size else 0
        return need, held, skipped, len(hit), fresh, idle, copies, fresh + idle + copies

    def count_idle(self, hit: Sequence[int]) -> int:
        """Hit blocks that lie in the free queue: adopting them takes them out of it (5.5 step 5)."""
        ref_cnt = self.pool.ref_cnt
        return sum(1 for block in hit if block != NULL_BLOCK and not ref_cnt[block])

    def allocate_new_computed_blocks(self, request_id: str, hit: Sequence[int], local: int, known: int) -> None:
        """Adopt the hit: touch its blocks and make them the table; from now on the request is tracked (5.7 step 1).

        A tracked request keeps its table: a load of a whole one-token prompt leaves it at 0 tokens, to be loaded again.
        """
        if request_id in self.num_cached_block:
            return
        skipped = self.get_num_skipped_tokens(known) // self.block_size
        kept = list(hit[skipped:])
        if kept:
            self.pool.touch(kept, self.group)
        self.req_to_blocks[request_id] = [NULL_BLOCK] * skipped + kept
        self.num_cached_block[request_id] = len(self.req_to_blocks[request_id])
        if hit and local % self.block_size:
            self.num_cached_block[request_id] = local // self.block_size
            self.pending[request_id] = (local // self.block_size, hit[-1])

    def allocate_external_blocks(self, request_id: str, known: int, external: int, *, listed: bool) -> None:
        """Blocks for tokens that a connector supplies; `listed`: they are reported for zeroing (7.15)."""
        if min(known - self.get_num_skipped_tokens(known), external) > 0:
            table = self.req_to_blocks[request_id]
            missing = cdiv(known, self.block_size) - len(table)
            if missing > 0:
                table += self.new_blocks(missing, listed=listed)

    def allocate_new_blocks(self, request_id: str, slots: int, main: int) -> list[int]:
        """Grow the table to `slots` tokens; returns what was added, nothing when it is long enough (5.7 step 2)."""
        table = self.req_to_blocks.get(request_id)
        if table is None:
            table = self.req_to_blocks[request_id] = []
        copied = self.copy_pending(request_id, table) if self.pending else []
        missing = -(-slots // self.block_size) - len(table)
        if missing <= 0:
            return copied
        blocks = self.new_blocks(missing)
        table += blocks
        return copied + blocks if copied else blocks

    def copy_pending(self, request_id: str, table: list[int]) -> list[int]:
        """A partly hit block is shared but will be written to: give the request a copy of its own (7.12)."""
        pending = self.pending.pop(request_id, None)
        if pending is None:
            return []
        index, source = pending
        copy = self.new_blocks(1)[0]
        table[index] = copy
        self.queue_copy(request_id, source, copy, held=copy)
        return [copy]

    def queue_copy(self, request_id: str, source: int, copy: int, *, held: int) -> None:
        """Copy `source` to `copy` in this step; both ends, `held` by one more, stay until it is scheduled (7.12)."""
        self.copies.append((source, copy))
        self.pool.emit(("copy", self.group, request_id, source, copy, held))
        self.pool.ref_cnt[held] += 1

    def new_blocks(self, n: int, *, listed: bool = True) -> list[int]:
        """`n` blocks from the pool, remembered for zeroing if this kind is zeroed (7.13)."""
        blocks = self.pool.get_new_blocks(n, self.group)
        if listed and self.new_block_ids is not None:
            self.new_block_ids += blocks
        return blocks

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Register the blocks that are full with the first `num_tokens` tokens and were not registered before (5.8)."""
        request_id = request.request_id
        done = self.num_cached_block.get(request_id, 0)
        full = num_tokens // self.block_size
        if done < full:
            table = self.req_to_blocks[request_id]
            mask = self.reachable_block_mask(request, done, full)
            self.pool.cache_full_blocks(request, table, done, full, self.block_size, self.group, mask)
            self.num_cached_block[request_id] = full
        if self.has_partial_tail:
            self.cache_partial_tail(request, num_tokens)

    def free(self, request_id: str) -> None:
        """Drop table and tracking; the last block is given back first (5.9)."""
        table = self.req_to_blocks.pop(request_id, None)
        self.num_cached_block.pop(request_id, None)
        self.pending.pop(request_id, None)
        if table:
            self.pool.free_blocks(table[::-1], self.group)

    def take_new_block_ids(self) -> list[int]:
        """Blocks handed out since the last take, for zeroing (7.13)."""
        taken = self.new_block_ids
        if not taken:
            return []
        self.new_block_ids = []
        return taken

    def take_copies(self) -> list[tuple[int, int]]:
        """(source, destination) block ids queued since the last take (7.12)."""
        taken, self.copies = self.copies, []
        return taken


def _zeroing(config: EngineConfig) -> bool:
    return config.needs_kv_cache_zeroing or any(group.kind == "mamba" for group in config.groups)
