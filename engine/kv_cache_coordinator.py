"""What the groups do together: prefix lookup, and the stages of `allocate_slots` group by group (behaviour 7.1)."""

from __future__ import annotations

from typing import NamedTuple

from engine.block_hash import BlockHash
from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.hybrid_lookup import HybridLookup
from engine.kv_cache_interface import specs_of
from engine.request import Request
from engine.single_type_kv_cache_manager import TOTAL, Count, Lookup, manager_of
from engine.trace import Search

Blocks = tuple[list[int], ...]
"""Block ids, one list a group; a null entry is 0."""


class CacheHit(NamedTuple):
    """What a prefix lookup found."""

    blocks: Blocks
    num_tokens: int
    rounds: tuple[Search, ...]
    shared_prefix_boundary: int = 0
    """A longer prefix that some group still has but another lacks; 0: none (7.5)."""


class KVCacheCoordinator:
    """Any number of groups over one pool, passed through one after the other. Without prefix caching this is all."""

    def __init__(self, config: EngineConfig, pool: BlockPool) -> None:
        self.config = config
        self.pool = pool
        self.managers = [manager_of(spec, pool, group, config) for group, spec in enumerate(specs_of(config))]
        self.no_blocks: Blocks = tuple([] for _ in self.managers)
        self._releasing = [manager for manager in self.managers if manager.releases]

    def fork(self, pool: BlockPool) -> KVCacheCoordinator:
        """An independent copy over `pool`."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.pool = pool
        twin.managers = [manager.fork(pool) for manager in self.managers]
        twin._releasing = [manager for manager in twin.managers if manager.releases]
        return twin

    def find_longest_cache_hit(self, hashes: list[BlockHash], limit: int) -> CacheHit:
        """The longest prefix of at most `limit` tokens that the cache still holds (4). Here: nothing is cached."""
        return CacheHit(self.no_blocks, 0, ())

    def new_step_starts(self) -> None:
        """`schedule()` begins (7.10)."""
        for manager in self.managers:
            manager.new_step_starts()

    def remove_skipped_blocks(self, request_id: str, num_computed_tokens: int) -> None:
        """Give back what left the windows (5.4)."""
        for manager in self._releasing:
            manager.remove_skipped_blocks(request_id, num_computed_tokens)

    def get_num_blocks_to_allocate(
        self, request_id: str, slots: int, main: int, hit: Blocks, local: int, known: int, *, capped: bool = False
    ) -> tuple[int, list[Count]]:
        """Blocks to take from the free queue, summed over the groups, and each group's terms (5.5)."""
        counts = [
            manager.get_num_blocks_to_allocate(request_id, slots, main, blocks, local, known, capped=capped)
            for manager, blocks in zip(self.managers, hit, strict=True)
        ]
        return sum(count[TOTAL] for count in counts), counts

    def allocate_new_computed_blocks(
        self, request_id: str, hit: Blocks, local: int, known: int, *, delayed: bool
    ) -> None:
        """Adopt the hit in every group, then find room for external tokens in every group (5.7 step 1, 7.15)."""
        for manager, blocks in zip(self.managers, hit, strict=True):
            manager.allocate_new_computed_blocks(request_id, blocks, local, known)
        if known > local:
            for manager in self.managers:
                listed = not (delayed and manager.group == 0)
                manager.allocate_external_blocks(request_id, known, known - local, listed=listed)

    def allocate_new_blocks(self, request_id: str, slots: int, main: int) -> Blocks:
        """Grow every group's table (5.7 step 2)."""
        return tuple([manager.allocate_new_blocks(request_id, slots, main) for manager in self.managers])

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Register what is full in every group (5.8)."""
        for manager in self.managers:
            manager.cache_blocks(request, num_tokens)

    def free(self, request_id: str) -> None:
        """Give back everything that the request holds, group by group (5.9)."""
        for manager in self.managers:
            manager.free(request_id)

    def get_blocks(self, request_id: str) -> Blocks:
        """The request's table in each group."""
        return tuple(manager.req_to_blocks.get(request_id, []) for manager in self.managers)

    def take_new_block_ids(self) -> list[int] | None:
        """Blocks to zero, group by group; None when there is none (7.13)."""
        return [block for manager in self.managers for block in manager.take_new_block_ids()] or None

    def take_copies(self) -> list[tuple[int, int]]:
        """(source, destination) of this step's copies, group by group; their ends are held no longer (7.12)."""
        copies = [copy for manager in self.managers for copy in manager.take_copies()]
        if copies:
            self.pool.emit(("copies", copies))
            self.pool.free_blocks([block for copy in copies for block in copy], 0)
        return copies


class UnitaryKVCacheCoordinator(KVCacheCoordinator):
    """One group, with prefix caching: every stage goes straight to its manager."""

    def __init__(self, config: EngineConfig, pool: BlockPool) -> None:
        super().__init__(config, pool)
        self._manager = self.managers[0]

    def fork(self, pool: BlockPool) -> UnitaryKVCacheCoordinator:
        """An independent copy over `pool`."""
        twin = super().fork(pool)
        assert isinstance(twin, UnitaryKVCacheCoordinator)
        twin._manager = twin.managers[0]
        return twin

    def find_longest_cache_hit(self, hashes: list[BlockHash], limit: int) -> CacheHit:
        """The group's finder, with its EAGLE rule (4.1 to 4.3)."""
        manager = self._manager
        lookup = Lookup(self.pool, hashes, manager.hash_size, manager.block_size, (0,), limit, manager.eagle)
        found = manager.find_longest_cache_hit(manager.spec, lookup)
        searched = Search(0, (0,), limit, manager.eagle, found.num_found, found.num_tokens, found.missing)
        return CacheHit(found.blocks, found.num_tokens, (searched,))

    def get_num_blocks_to_allocate(
        self, request_id: str, slots: int, main: int, hit: Blocks, local: int, known: int, *, capped: bool = False
    ) -> tuple[int, list[Count]]:
        """The group's count (5.5)."""
        count = self._manager.get_num_blocks_to_allocate(request_id, slots, main, hit[0], local, known, capped=capped)
        return count[TOTAL], [count]

    def allocate_new_blocks(self, request_id: str, slots: int, main: int) -> Blocks:
        """Grow the group's table (5.7 step 2)."""
        return (self._manager.allocate_new_blocks(request_id, slots, main),)

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Register what is full (5.8)."""
        self._manager.cache_blocks(request, num_tokens)


class HybridKVCacheCoordinator(KVCacheCoordinator):
    """Two or more groups, with prefix caching: a hit must be one for all of them."""

    def __init__(self, config: EngineConfig, pool: BlockPool) -> None:
        super().__init__(config, pool)
        self._lookup = HybridLookup(config, [manager.spec for manager in self.managers])

    def find_longest_cache_hit(self, hashes: list[BlockHash], limit: int) -> CacheHit:
        """The fixed point of all finders (7.5)."""
        return CacheHit(*self._lookup.find(self.pool, hashes, limit))

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Only aligned lengths can be hit; an EAGLE group needs one block more, which a lookup drops (7.7)."""
        config = self.config
        aligned = num_tokens if config.partial_hits else num_tokens - num_tokens % config.scheduler_block_size
        for manager in self.managers:
            eligible = min(num_tokens, aligned + manager.block_size) if manager.eagle and aligned else aligned
            manager.cache_blocks(request, eligible)


def coordinator_of(config: EngineConfig, pool: BlockPool) -> KVCacheCoordinator:
    """The coordinator for a config (7.1)."""
    if not config.enable_prefix_caching:
        return KVCacheCoordinator(config, pool)
    if len(config.groups) == 1:
        return UnitaryKVCacheCoordinator(config, pool)
    return HybridKVCacheCoordinator(config, pool)
