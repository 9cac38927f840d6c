"""The scheduler: which request computes how many tokens in a step (behaviour 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.config import EngineConfig
from engine.errors import RequestError
from engine.kv_cache_coordinator import Blocks
from engine.kv_cache_manager import KVCacheManager
from engine.request import Request, RequestStatus
from engine.sched.connector import KVConnector, RemoteLoads
from engine.sched.mamba_split import MambaSplit
from engine.sched.output import NewRequestData, SchedulerOutput
from engine.sched.request_queue import create_request_queue
from engine.sched.step import RUNNING_PASS, WAITING_PASS, Step
from engine.sched.waiting_pass import WaitingPass
from engine.trace import Emit, no_trace


class Scheduler:
    """Waiting queue, running list and the two passes over them.

    `schedule()` and `update_from_output()` are separate calls; the caller runs the model in between.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        connector: KVConnector | None = None,
        log_stats: bool = True,
        events: bool = True,
        emit: Emit = no_trace,
    ) -> None:
        self.config = config
        self.emit = emit
        self.kv_cache_manager = KVCacheManager(config, log_stats=log_stats, events=events, emit=emit)
        self.mamba_split = MambaSplit.of(config)
        self.loads = RemoteLoads(config, connector, emit)
        self.waiting = create_request_queue(config.policy)
        self.running: list[Request] = []
        self.requests: dict[str, Request] = {}
        self.finished_req_ids: set[str] = set()
        self.preempted_req_ids: set[str] = set()
        self._scheduled_before: set[str] = set()
        self._in_flight: Mapping[str, int] = {}
        """Tokens that are scheduled and not yet accounted for."""

    def fork(self, emit: Emit, connector: KVConnector | None = None) -> Scheduler:
        """An independent copy that reports to `emit`; `connector`: a copy of this one's, if it has one."""
        twin = object.__new__(Scheduler)
        twin.__dict__.update(self.__dict__)
        twin.emit = emit
        twin.kv_cache_manager = self.kv_cache_manager.fork(emit)
        twin.requests = {request_id: request.fork() for request_id, request in self.requests.items()}
        twin.running = [twin.requests[request.request_id] for request in self.running]
        twin.waiting = create_request_queue(self.config.policy)
        for request in self.waiting:
            twin.waiting.add(twin.requests[request.request_id])
        twin.loads = self.loads.fork(twin.requests, connector, emit)
        twin.finished_req_ids, twin.preempted_req_ids = set(self.finished_req_ids), set(self.preempted_req_ids)
        twin._scheduled_before = set(self._scheduled_before)
        return twin

    def add_request(self, request: Request) -> None:
        """Queue a new request (6.1).

        Raises:
            RequestError: its id is that of a request that still lives.
        """
        if request.request_id in self.requests:
            raise RequestError(
                "live_id", f"request {request.request_id!r} is still alive", expected="an id that no living request has"
            )
        self.requests[request.request_id] = request
        self.waiting.add(request)

    # ---- schedule

    def schedule(self) -> SchedulerOutput:
        """Decide one step (6.2). Blocks are taken and hashes registered now, before anything is computed."""
        step = self.begin_step()
        self._running_pass(step)
        if not step.preempted:
            WaitingPass(self, step).run()
        else:  # the victims wait now, if nobody else
            self.emit(("halt", WAITING_PASS, "preempted", None))
        return self._close(step)

    def begin_step(self) -> Step:
        """An empty step: the whole budget, and the long-prefill threshold unless a request is alone (6.2)."""
        config, waiting = self.config, len(self.waiting) + len(self.loads.holding)
        threshold = config.long_prefill_token_threshold if len(self.running) + waiting > 1 else 0
        self.emit(("step", config.max_num_batched_tokens, threshold, len(self.running), waiting))
        self.kv_cache_manager.coordinator.new_step_starts()
        return Step(config.max_num_batched_tokens, threshold)

    def _running_pass(self, step: Step) -> None:
        """Every running request goes on, in admission order; when blocks run out somebody is preempted (6.3)."""
        running, emit = self.running, self.emit
        scheduled, new_blocks = step.output.num_scheduled_tokens, step.new_blocks
        allocate_slots, lookahead = self.kv_cache_manager.allocate_slots, self.config.num_lookahead_tokens
        index = 0
        while index < len(running) and step.budget > 0:
            request = running[index]
            request_id = request.request_id
            tokens = self.cut_chunk(request, step)
            if tokens <= 0:
                index += 1
                continue
            blocks = allocate_slots(request, tokens, 0, None, lookahead)
            while blocks is None:
                victim = self.choose_victim()
                index -= self._take_from_running(victim, index, step)
                self._preempt(victim, request, step)
                if victim is request:
                    emit(("halt", RUNNING_PASS, "self_preempted", request_id))
                    return
                blocks = allocate_slots(request, tokens, 0, None, lookahead)
            scheduled[request_id] = tokens
            new_blocks[request_id] = blocks
            step.budget -= tokens
            index += 1
            if request.is_prefill_chunk:
                step.prefill_seen = True
            if request.spec_token_ids:
                self._schedule_drafts(request, tokens, step)
        if index < len(running):
            emit(("halt", RUNNING_PASS, "budget", running[index].request_id))

    def cut_chunk(self, request: Request, step: Step) -> int:
        """How many tokens a running request would compute next; 0 or less: none (6.3 step 1)."""
        computed, budget, threshold = request.num_computed_tokens, step.budget, step.threshold
        wanted = request.num_tokens + len(request.spec_token_ids) - computed
        room = self.config.max_model_len - computed - 1
        uncut = threshold if 0 < threshold < wanted else wanted
        if uncut > budget:
            uncut = budget
        if uncut > room:
            uncut = room
        tokens = uncut
        if self.mamba_split is not None:
            tokens = self.mamba_split.cut(request, computed, uncut)
        name = request.request_id
        self.emit(("chunk", RUNNING_PASS, name, computed, wanted, threshold, budget, room, uncut, tokens, 0))
        return tokens

    def _schedule_drafts(self, request: Request, tokens: int, step: Step) -> None:
        """The drafts that fit behind the known tokens are verified in this step; the rest is lost (6.3 step 5)."""
        drafts = request.spec_token_ids
        verified = max(tokens + request.num_computed_tokens - request.num_tokens, 0)
        if verified:
            step.output.scheduled_spec_decode_tokens[request.request_id] = drafts[:verified]
        request.spec_token_ids = []
        self.emit(("drafts", request.request_id, verified, len(drafts) - verified))

    def choose_victim(self) -> Request:
        """fcfs: the last one admitted. priority: the largest (priority, arrival time), the first of equals (6.3)."""
        if self.config.policy == "priority":
            return max(self.running, key=lambda request: (request.priority, request.arrival_time))
        return self.running[-1]

    def _take_from_running(self, victim: Request, index: int, step: Step) -> int:
        """Take the victim from the running list and undo what it was scheduled in this step (6.3 step 2b).

        Returns 1 when it stood before `index`, else 0.
        """
        place = self.running.index(victim)
        del self.running[place]
        tokens = step.undo(victim.request_id)
        if tokens:
            self.emit(("undo", victim.request_id, tokens))
        return int(place < index)

    def _preempt(self, victim: Request, by: Request | None, step: Step | None = None) -> None:
        """It has left `running`: its blocks go back, its progress is lost, it waits again with its tokens (6.5)."""
        self.emit(("preempt", victim.request_id, by.request_id if by else None))
        self.kv_cache_manager.free(victim)
        self.loads.prefilling.pop(victim.request_id, None)
        victim.status = RequestStatus.PREEMPTED
        victim.num_computed_tokens = 0
        victim.spec_token_ids = []
        victim.num_preemptions += 1
        self.waiting.prepend(victim)
        self.preempted_req_ids.add(victim.request_id)
        if step:
            step.preempted = True

    def _close(self, step: Step) -> SchedulerOutput:
        """Fill in the output and move every scheduled request on (6.2 steps 5-7, 6.6)."""
        output, manager, requests = step.output, self.kv_cache_manager, self.requests
        before, admitted, new_blocks = self._scheduled_before, step.admitted, step.new_blocks
        output.new_block_ids_to_zero = manager.coordinator.take_new_block_ids()
        output.kv_cache_block_copies = manager.coordinator.take_copies()
        output.finished_req_ids, self.finished_req_ids = self.finished_req_ids, set()
        output.preempted_req_ids, self.preempted_req_ids = self.preempted_req_ids, set()
        cached, new = output.cached_rows, output.scheduled_new_reqs
        for request_id, tokens in output.num_scheduled_tokens.items():
            request = requests[request_id]
            computed, known = request.num_computed_tokens, request.num_tokens
            comes_back = admitted.get(request_id)
            if comes_back is False:
                prompt = request.token_ids(0, request.num_prompt_tokens)
                new.append(NewRequestData(request_id, prompt, self._table(request_id), computed))
            else:
                blocks = self._table(request_id) if comes_back else new_blocks[request_id]
                given = blocks if any(blocks) else None
                token_ids = None if request_id in before else request.all_token_ids
                num_output = known - request.num_prompt_tokens
                cached.append((request_id, comes_back is True, given, computed, num_output, token_ids))
            request.num_computed_tokens = computed = computed + tokens
            request.is_prefill_chunk = computed < known
        self._scheduled_before = set(output.num_scheduled_tokens)
        self._in_flight = output.num_scheduled_tokens
        if self.loads.prefilling:
            self.loads.forget_prefilled(output.num_scheduled_tokens)
        return output

    def _table(self, request_id: str) -> Blocks:
        """The whole table in each group, as it is now: it will grow."""
        return tuple([table[:] for table in self.kv_cache_manager.get_blocks(request_id)])

    # ---- update

    def update_from_output(
        self, output: SchedulerOutput, sampled: Mapping[str, list[int]], received: Iterable[str] = ()
    ) -> dict[str, list[int]]:
        """Account for what the model sampled (6.8), and for the loads that were `received` (7.15).

        A request that is gone is passed over. Returns the sampled ids that were kept, for each scheduled request: a
        stop throws the rest away.
        """
        requests, emit = self.requests, self.emit
        self._in_flight = {}
        spec = output.scheduled_spec_decode_tokens
        kept: dict[str, list[int]] = {}
        stopped: set[Request] = set()
        longest = self.config.max_model_len
        for request_id in output.num_scheduled_tokens:
            request = requests.get(request_id)
            ids = sampled.get(request_id)
            if request is None or not ids:
                kept[request_id] = []
                continue
            drafts = len(spec[request_id]) if request_id in spec else 0
            if drafts:
                request.num_computed_tokens -= drafts - (len(ids) - 1)
            last = request.num_prompt_tokens + request.max_tokens
            if last > longest:
                last = longest
            stops = request.stop_token_ids
            status, count = None, 0
            for count, token_id in enumerate(ids, 1):  # noqa: B007
                request.append_output_token(token_id)
                if token_id in stops:
                    status = RequestStatus.FINISHED_STOPPED
                    break
                if request.num_tokens >= last:
                    status = RequestStatus.FINISHED_LENGTH_CAPPED
                    break
            kept[request_id] = ids if count == len(ids) else ids[:count]
            emit(("sampled", request_id, drafts, len(ids) - 1, count, request.num_computed_tokens))
            if status is not None:
                self._finish(request, status)
                stopped.add(request)
        if stopped:
            self.running = [request for request in self.running if request not in stopped]
        for request_id in received:
            self._receive(request_id)
        return kept

    def _receive(self, request_id: str) -> None:
        """A load is complete: the request may go on, or, if it was aborted meanwhile, its blocks are free (7.15)."""
        request = self.requests[request_id]
        self.emit(("received", request_id))
        if request.status is RequestStatus.FINISHED_ABORTED:
            self.kv_cache_manager.free(request)
            del self.requests[request_id]
        else:
            self.loads.arrived.add(request_id)

    def _finish(self, request: Request, status: RequestStatus, *, keep_blocks: bool = False) -> None:
        """Forget the request and free its blocks; the caller takes it from list or queue.

        `keep_blocks`: a load is still writing to them; they and the request stay until it is received (7.15).
        """
        request_id = request.request_id
        request.status = status
        self.emit(("finish", request_id, status.value))
        self.finished_req_ids.add(request_id)
        self.loads.prefilling.pop(request_id, None)
        self.loads.arrived.discard(request_id)
        if self.loads.connector is not None:
            in_flight = self._in_flight.get(request_id, 0)
            self.kv_cache_manager.release_before_free(request, request.num_computed_tokens - in_flight)
        if not keep_blocks:
            self.kv_cache_manager.free(request)
            del self.requests[request_id]

    def update_draft_token_ids(self, drafts: Mapping[str, list[int]]) -> None:
        """The drafts to verify next; ignored behind a prefill chunk (0.4 step 6)."""
        for request_id, ids in drafts.items():
            request = self.requests.get(request_id)
            if request is not None and not request.is_prefill_chunk:
                request.spec_token_ids = ids

    # ---- from outside

    def finish_requests(self, request_ids: Iterable[str]) -> list[str]:
        """Abort these requests, one after the other; unknown ids do nothing (6.9). Returns those that were alive."""
        done = []
        for request_id in request_ids:
            request = self.requests.get(request_id)
            if request is None or request.status is RequestStatus.FINISHED_ABORTED:
                continue
            loading = request.status is RequestStatus.WAITING_FOR_REMOTE_KVS and request_id not in self.loads.arrived
            self._take_out(request)
            self._finish(request, RequestStatus.FINISHED_ABORTED, keep_blocks=loading)
            done.append(request_id)
        return done

    def _take_out(self, request: Request) -> None:
        """Take a living request out of the list or queue that it is in."""
        if request.status is RequestStatus.RUNNING:
            self.running.remove(request)
        elif request in self.loads.holding:
            self.loads.holding.remove(request)
        else:
            self.waiting.remove(request)

    def reset_prefix_cache(self, *, reset_running_requests: bool = False) -> bool:
        """Forget every hash; refused while a block is held, unless the running requests are preempted first (6.10).

        With `reset_running_requests` no load may hold blocks: nothing is defined for it (0.3).
        """
        if reset_running_requests:
            assert not self.requests_with_loads(), "a load holds blocks"
            while self.running:
                self._preempt(self.running.pop(), None)
        done = self.kv_cache_manager.reset_prefix_cache()
        self.emit(("reset", done))
        return done

    def requests_with_loads(self) -> list[str]:
        """Requests that hold blocks without running: the holding queue, and aborted ones whose load goes on (7.15)."""
        aborted = [r for r in self.requests.values() if r.status is RequestStatus.FINISHED_ABORTED]
        return [request.request_id for request in (*self.loads.holding, *aborted)]
