"""The waiting pass: admit from the head of the queue; any obstacle there ends it (behaviour 6.4, 7.15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.kv_cache_coordinator import CacheHit
from engine.request import Request, RequestStatus
from engine.sched.output import PLACEHOLDER_DRAFT
from engine.sched.step import WAITING_PASS, Step

if TYPE_CHECKING:
    from engine.sched.request_queue import RequestQueue
    from engine.sched.scheduler import Scheduler


class WaitingPass:
    """One waiting pass of a scheduler."""

    def __init__(self, scheduler: Scheduler, step: Step) -> None:
        self.scheduler = scheduler
        self.step = step
        self.config = scheduler.config
        self.manager = scheduler.kv_cache_manager
        self.loads = scheduler.loads
        self.emit = scheduler.emit
        self.aside: list[Request] = []
        """Requests with a load under way; they go back to the front of their queue afterwards."""

    def run(self) -> None:
        """Admit as many as go, in order."""
        obstacle: str | None = None
        while obstacle is None and (queue := self._queue()):
            request = queue.peek()
            if self.step.budget <= 0:
                obstacle = "budget"
            elif len(self.scheduler.running) >= self.config.max_num_seqs:
                obstacle = "max_num_seqs"
            else:
                obstacle = self._serve(request, queue)
            if obstacle is not None:
                self.emit(("halt", WAITING_PASS, obstacle, request.request_id))
        self.loads.put_back(self.aside)

    def _queue(self) -> RequestQueue:
        """Those that hold blocks already come first."""
        return self.loads.holding or self.scheduler.waiting

    def _serve(self, request: Request, queue: RequestQueue) -> str | None:
        """Let the head run, begin to load, or go on waiting for its load; the obstacle if it can't have its blocks."""
        if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS:
            if request.request_id not in self.loads.arrived:
                self.emit(("loading", request.request_id))
                self.aside.append(queue.pop())
                return None
            self.loads.use_arrived(request, self.manager)
        if request.num_computed_tokens:
            return self._admit(request, queue, self.manager.empty_hit, 0, looked_up=False)
        hit = self.manager.get_computed_blocks(request)
        external, is_async = self.loads.ask(request, hit.num_tokens)
        if is_async:
            return self._begin_load(request, queue, hit, external)
        return self._admit(request, queue, hit, external, looked_up=True)

    def _begin_load(self, request: Request, queue: RequestQueue, hit: CacheHit, external: int) -> str | None:
        """Take blocks for an asynchronous load; it costs neither budget nor a running slot (7.15 step 4)."""
        blocks = self.manager.allocate_slots(
            request,
            0,
            hit.num_tokens,
            hit.blocks,
            0,
            external,
            delay_cache_blocks=True,
            full_sequence_must_fit=self.config.scheduler_reserve_full_isl,
            reserved_blocks=self.loads.reserved_blocks(self.manager),
            has_scheduled_reqs=bool(self.scheduler.running),
        )
        if blocks is None:
            return "no_blocks"
        self.manager.record_lookup(request, hit.num_tokens)
        self.loads.begin(request, hit.num_tokens + external)
        self.emit(("load", request.request_id, hit.num_tokens, external))
        self.aside.append(queue.pop())
        return None

    def _admit(
        self, request: Request, queue: RequestQueue, hit: CacheHit, external: int, *, looked_up: bool
    ) -> str | None:
        """Cut its first chunk, ask for the blocks and, if granted, let it run (6.4 steps 3-10)."""
        computed = request.num_computed_tokens or hit.num_tokens + external
        tokens, padding, obstacle = self.cut_chunk(request, computed)
        if obstacle is not None:
            return obstacle
        blocks = self.manager.allocate_slots(
            request,
            tokens,
            hit.num_tokens,
            hit.blocks,
            self.config.num_lookahead_tokens,
            external,
            full_sequence_must_fit=self.config.scheduler_reserve_full_isl,
            has_scheduled_reqs=bool(self.scheduler.running),
        )
        if blocks is None:
            return "no_blocks"
        if looked_up:
            self.manager.record_lookup(request, hit.num_tokens)
        resumed = request.status is RequestStatus.PREEMPTED
        self.scheduler.running.append(queue.pop())
        request.status = RequestStatus.RUNNING
        request.num_computed_tokens = computed
        if self.loads.connector is not None and computed + tokens < request.num_tokens:
            self.loads.prefilling[request.request_id] = request
        self.step.admit(request.request_id, tokens, blocks, resumed=resumed)
        if padding:
            self.step.output.scheduled_spec_decode_tokens[request.request_id] = [PLACEHOLDER_DRAFT] * padding
        self.emit(("admit", request.request_id, computed, tokens, resumed))
        return None

    def cut_chunk(self, request: Request, computed: int) -> tuple[int, int, str | None]:
        """How many tokens the head would compute: (tokens, placeholder drafts among them, obstacle) (6.4 steps 3-8)."""
        config, budget, threshold = self.config, self.step.budget, self.step.threshold
        wanted = tokens = request.num_tokens - computed
        padding, obstacle = 0, None
        if self._wants_padding(tokens, computed):
            padding = config.num_speculative_tokens
            tokens += padding
            if tokens > budget:
                obstacle = "padding"
        if 0 < threshold < tokens:
            tokens = threshold
        if obstacle is None and not config.enable_chunked_prefill and tokens > budget:
            obstacle = "whole_prefill"
        uncut = tokens = min(tokens, budget)
        split = self.scheduler.mamba_split
        if split is not None and obstacle is None:
            tokens = split.cut(request, computed, uncut)
            if tokens == 0:
                obstacle = "split"
            elif padding and tokens != uncut:
                tokens, padding = 1, 0
        room = config.max_model_len - computed
        self.emit(
            (
                "chunk",
                WAITING_PASS,
                request.request_id,
                computed,
                wanted,
                threshold,
                budget,
                room,
                uncut,
                tokens,
                padding,
            )
        )
        return tokens, padding, obstacle

    def _wants_padding(self, tokens: int, computed: int) -> bool:
        """A single first token is padded with placeholder drafts: all decodes of a step look alike (6.4 step 4)."""
        k, step = self.config.num_speculative_tokens, self.step
        return (
            k > 0
            and tokens == 1
            and not step.prefill_seen
            and (computed > 0 or step.num_from_running > 0)
            and computed + (1 + k) + 1 <= self.config.max_model_len
        )
