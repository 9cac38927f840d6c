"""KV from elsewhere: the connector's interface, and the requests whose loads are under way (behaviour 7.15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from engine.config import EngineConfig
from engine.kv_cache_interface import MambaSpec, cdiv
from engine.kv_cache_manager import KVCacheManager
from engine.request import Request, RequestStatus
from engine.sched.request_queue import create_request_queue
from engine.trace import Emit


class KVConnector(Protocol):
    """A store outside the pool."""

    def get_num_new_matched_tokens(self, request: Request, num_local: int) -> tuple[int, bool]:
        """Tokens that it can supply behind `num_local` local ones, and whether loading them takes steps."""

    def start_load(self, request: Request) -> None:
        """The blocks for an asynchronous load have been taken."""


class RemoteLoads:
    """Requests that hold blocks without running, because a load is under way or has just arrived.

    `holding`: their queue, in front of the waiting queue. `arrived`: loads received and not yet used. `prefilling`:
    admitted requests with prompt left, and loads in progress: what they still need is reserved for them.
    """

    def __init__(self, config: EngineConfig, connector: KVConnector | None, emit: Emit) -> None:
        self.config = config
        self.connector = connector
        self.emit = emit
        self.holding = create_request_queue(config.policy)
        self.arrived: set[str] = set()
        self.prefilling: dict[str, Request] = {}

    def fork(self, requests: dict[str, Request], connector: KVConnector | None, emit: Emit) -> RemoteLoads:
        """An independent copy over forked `requests`."""
        twin = RemoteLoads(self.config, connector, emit)
        for request in self.holding:
            twin.holding.add(requests[request.request_id])
        twin.arrived = self.arrived.copy()
        twin.prefilling = {name: requests[name] for name in self.prefilling}
        return twin

    def ask(self, request: Request, num_local: int) -> tuple[int, bool]:
        """External tokens behind a local hit, and whether they come asynchronously."""
        if self.connector is None or request.skip_reading_prefix_cache:
            return 0, False
        tokens, is_async = self.connector.get_num_new_matched_tokens(request, num_local)
        self.emit(("external", request.request_id, num_local, tokens, is_async))
        return tokens, is_async

    def use_arrived(self, request: Request, manager: KVCacheManager) -> None:
        """A load has come: register its blocks, and leave a token to compute (7.15 step 2)."""
        self.arrived.discard(request.request_id)
        self.emit(("arrived", request.request_id, request.num_computed_tokens))
        manager.cache_blocks(request, request.num_computed_tokens)
        if request.num_computed_tokens == request.num_tokens:
            request.num_computed_tokens -= 1
        request.status = RequestStatus.PREEMPTED if request.num_preemptions else RequestStatus.WAITING

    def begin(self, request: Request, num_computed_tokens: int) -> None:
        """Its blocks are taken; from now on it waits for them to be filled (7.15 step 4)."""
        request.status = RequestStatus.WAITING_FOR_REMOTE_KVS
        request.num_computed_tokens = num_computed_tokens
        self.prefilling[request.request_id] = request
        assert self.connector is not None
        self.connector.start_load(request)

    def put_back(self, aside: Iterable[Request]) -> None:
        """Requests that were passed over go to the front, in their order."""
        for request in reversed(list(aside)):
            self.holding.prepend(request)

    def reserved_blocks(self, manager: KVCacheManager) -> int:
        """Blocks that those under way still need, and room for one decode (7.15 step 4)."""
        config, k = self.config, self.config.num_speculative_tokens
        decode = 1 + k + config.num_lookahead_tokens if k else 0
        reserved = 0
        for name, request in self.prefilling.items():
            main = min(request.num_tokens, config.max_model_len)
            computed = request.num_computed_tokens
            reserved += manager.coordinator.get_num_blocks_to_allocate(
                name, main + decode, main, manager.coordinator.no_blocks, computed, computed, capped=True
            )[0]
        if decode:
            attention = [m for m in manager.coordinator.managers if not isinstance(m.spec, MambaSpec)]
            reserved += sum(cdiv(decode, m.block_size) for m in attention)
        return reserved

    def forget_prefilled(self, scheduled: Iterable[str]) -> None:
        """Scheduled requests with nothing left to prefill reserve nothing any more; a load in progress still does."""
        for name in scheduled:
            request = self.prefilling.get(name)
            if request is not None and request.num_computed_tokens >= request.num_tokens:
                del self.prefilling[name]
