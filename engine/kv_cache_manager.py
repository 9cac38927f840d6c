"""`get_computed_blocks` and `allocate_slots`: what a request hits, whether it gets its blocks (behaviour 4, 5)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.kv_cache_coordinator import Blocks, CacheHit, coordinator_of
from engine.kv_events import KVCacheEvent
from engine.request import Request, RequestStatus
from engine.trace import Emit, no_trace

RUNNING = RequestStatus.RUNNING


@dataclass(slots=True)
class PrefixCacheStats:
    """Prefix-cache counters since the last take, in tokens but for the two `requests` (4.4)."""

    requests: int = 0
    queries: int = 0
    hits: int = 0
    preempted_requests: int = 0
    preempted_queries: int = 0
    preempted_hits: int = 0

    def record(self, num_tokens: int, num_hits: int, *, preempted: bool) -> None:
        """Count one admission; those of requests that were preempted before are kept apart."""
        if preempted:
            self.preempted_requests += 1
            self.preempted_queries += num_tokens
            self.preempted_hits += num_hits
        else:
            self.requests += 1
            self.queries += num_tokens
            self.hits += num_hits


class KVCacheManager:
    """The scheduler's side of the pool: lookups, slots, frees."""

    def __init__(
        self, config: EngineConfig, *, log_stats: bool = True, events: bool = True, emit: Emit = no_trace
    ) -> None:
        self.emit = emit
        self.enable_caching = config.enable_prefix_caching
        self.max_model_len = config.max_model_len
        self.watermark_blocks = config.watermark_blocks
        self.log_stats = log_stats
        self.block_pool = BlockPool(
            config.num_blocks, enable_caching=self.enable_caching, enable_kv_cache_events=events, emit=emit
        )
        self.coordinator = coordinator_of(config, self.block_pool)
        self.prefix_cache_stats = PrefixCacheStats()
        self.empty_hit = CacheHit(self.coordinator.no_blocks, 0, ())

    def fork(self, emit: Emit) -> KVCacheManager:
        """An independent copy that reports to `emit`."""
        twin = object.__new__(KVCacheManager)
        twin.__dict__.update(self.__dict__)
        twin.emit = emit
        twin.block_pool = self.block_pool.fork(emit)
        twin.coordinator = self.coordinator.fork(twin.block_pool)
        twin.prefix_cache_stats = PrefixCacheStats()
        return twin

    def get_computed_blocks(self, request: Request) -> CacheHit:
        """The longest cached prefix, leaving at least one token to compute (4). Changes nothing."""
        if not self.lookup_enabled(request):
            request.shared_prefix_boundary = 0
            self.emit(("lookup", request.request_id, None, self.empty_hit.blocks, 0, (), 0))
            return self.empty_hit
        limit = request.num_tokens - 1
        hit = self.coordinator.find_longest_cache_hit(request.block_hashes, limit)
        request.shared_prefix_boundary = hit.shared_prefix_boundary
        self.emit(("lookup", request.request_id, limit, *hit))
        return hit

    def lookup_enabled(self, request: Request) -> bool:
        """Whether this request reads the cache at all (4 rule 1)."""
        return self.enable_caching and not request.skip_reading_prefix_cache

    def record_lookup(self, request: Request, num_hits: int) -> None:
        """Count the lookup of a request that was admitted (4.4)."""
        if self.log_stats and self.lookup_enabled(request):
            self.prefix_cache_stats.record(request.num_tokens, num_hits, preempted=request.num_preemptions > 0)

    def allocate_slots(
        self,
        request: Request,
        num_new_tokens: int,
        num_new_computed_tokens: int = 0,
        new_computed_blocks: Blocks | None = None,
        num_lookahead_tokens: int = 0,
        num_external_computed_tokens: int = 0,
        *,
        delay_cache_blocks: bool = False,
        full_sequence_must_fit: bool = False,
        reserved_blocks: int = 0,
        has_scheduled_reqs: bool = True,
    ) -> Blocks | None:
        """Slots for `num_new_tokens` more tokens: the new blocks of each group, or None when they do not fit (5).

        The tokens of the request, from the left:

            | comp | new_comp | ext_comp | new | lookahead |
              local = comp + new_comp
              total = local + ext_comp            known before this call
              main  = total + new                 what the step computes up to
              slots = main + lookahead            what must have a place
        """
        assert num_new_tokens or num_new_computed_tokens or num_external_computed_tokens, "no tokens to allocate for"
        emit, coordinator = self.emit, self.coordinator
        request_id = request.request_id
        hit = new_computed_blocks or coordinator.no_blocks
        local = request.num_computed_tokens + num_new_computed_tokens
        known = local + num_external_computed_tokens
        longest = self.max_model_len
        total = known if known < longest else longest
        main = total + num_new_tokens
        slots = main + num_lookahead_tokens
        if slots > longest:
            slots = longest
        # A running request may take the last block; an admission leaves some behind (5.2).
        headroom = self.watermark_blocks if has_scheduled_reqs and request.status is not RUNNING else 0
        free_queue = self.block_pool.free_queue
        free = free_queue.num_free_blocks
        emit((
            "call", request_id, request.num_computed_tokens, num_new_computed_tokens, num_external_computed_tokens,
            num_new_tokens, num_lookahead_tokens, hit, full_sequence_must_fit, headroom, reserved_blocks, free,
        ))  # fmt: skip

        # Stage 0, gate: the whole sequence must fit, or a long prompt would be admitted only to be preempted.
        if full_sequence_must_fit and not self._passes_gate(request, hit, (slots, main, local, known), headroom):
            emit(("return", None, free))
            return None

        # Stage 1, release: what left the window goes back first, so that this very call may take it.
        coordinator.remove_skipped_blocks(request_id, total)

        # Stage 2, count and check.
        needed, counts = coordinator.get_num_blocks_to_allocate(request_id, slots, main, hit, local, known)
        emit(("check", slots, counts, needed))
        if needed + headroom > free_queue.num_free_blocks - reserved_blocks:
            emit(("return", None, free_queue.num_free_blocks))
            return None

        # Stage 3, take: all touching comes before all popping, so growing never evicts the request's own hit.
        if num_external_computed_tokens or any(hit):
            coordinator.allocate_new_computed_blocks(request_id, hit, local, known, delayed=delay_cache_blocks)
        new_blocks = coordinator.allocate_new_blocks(request_id, slots, main)

        # Stage 4, register: drafts may be rejected, so never past the known tokens.
        if self.enable_caching and not delay_cache_blocks:
            coordinator.cache_blocks(request, main if main < request.num_tokens else request.num_tokens)
        emit(("return", new_blocks, free_queue.num_free_blocks))
        return new_blocks

    def _passes_gate(self, request: Request, hit: Blocks, lengths: tuple[int, int, int, int], headroom: int) -> bool:
        """Whether the whole sequence would fit (5.3).

        Where not, the trace also says what the check would count for its `lengths`: slots, main, local, known.
        """
        count = self.coordinator.get_num_blocks_to_allocate
        slots, main, local, known = lengths
        total = min(known, self.max_model_len)
        full = min(request.num_tokens, self.max_model_len)
        needed, counts = count(request.request_id, full, full, hit, local, total, capped=True)
        passes = needed + headroom <= self.block_pool.num_free_blocks
        check = None if passes else (slots, *count(request.request_id, slots, main, hit, local, known))
        self.emit(("gate", full, counts, needed, check))
        return passes

    def cache_blocks(self, request: Request, num_tokens: int) -> None:
        """Register what is full with the first `num_tokens` tokens: a load has been received (7.15)."""
        if self.enable_caching:
            self.coordinator.cache_blocks(request, num_tokens)

    def release_before_free(self, request: Request, num_computed_tokens: int) -> None:
        """With a connector, blocks outside the window are given back first when a request ends (7.15).

        `num_computed_tokens`: without those of a step that still runs.
        """
        self.coordinator.remove_skipped_blocks(request.request_id, num_computed_tokens)

    def free(self, request: Request) -> None:
        """Give back everything that the request holds (5.9)."""
        self.coordinator.free(request.request_id)

    def reset_prefix_cache(self) -> bool:
        """Forget every hash if nothing is held (1.10)."""
        return self.block_pool.reset_prefix_cache()

    def get_blocks(self, request_id: str) -> Blocks:
        """The request's table in each group; empty lists when it holds nothing."""
        return self.coordinator.get_blocks(request_id)

    def take_events(self) -> list[KVCacheEvent]:
        """KV events since the last take, oldest first (1.11)."""
        return self.block_pool.take_events()

    def make_prefix_cache_stats(self) -> PrefixCacheStats:
        """The counters since the last take (4.4)."""
        taken, self.prefix_cache_stats = self.prefix_cache_stats, PrefixCacheStats()
        return taken
