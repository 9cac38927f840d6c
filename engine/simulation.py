"""A scenario being run: the engine, the scripted model and drafter, one action at a time (behaviour 0.3 and 0.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.actions import Abort, Action, AddRequest, ResetPrefixCache, Step
from engine.block_hash import HASH_FUNCTIONS, BlockHasher, init_none_hash
from engine.call_trace import CallTrace, read_calls
from engine.config import EngineConfig
from engine.errors import PoolExhaustedError, RequestError
from engine.history import History
from engine.kv_cache_manager import PrefixCacheStats
from engine.kv_events import KVCacheEvent
from engine.request import Request
from engine.scenario import check_request
from engine.sched.output import SchedulerOutput
from engine.sched.scheduler import Scheduler
from engine.scripted import Script, ScriptedConnector
from engine.tokens import Span, Tokenize, count_of, resolve, tokens_of
from engine.trace import Entry, no_trace


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one action did: proportional to what changed, never to the pool."""

    index: int
    action: Action
    log: tuple[Entry, ...]
    """The trace; `engine.call_trace` and `engine.step_trace` read it."""
    events: tuple[KVCacheEvent, ...]
    prefix_cache: PrefixCacheStats
    output: SchedulerOutput | None = None
    """Of a step."""
    sampled: dict[str, int] | None = None
    """Of a step: sampled ids that were kept, for each scheduled request."""
    reset: bool | None = None
    """Of a reset: whether it was done."""

    @property
    def calls(self) -> list[CallTrace]:
        """The `allocate_slots` calls, in call order."""
        return read_calls(self.log)


class Simulation:
    """The engine under a scenario's actions; equal configs and actions give equal states and outcomes."""

    def __init__(
        self,
        config: EngineConfig,
        *,
        none_hash: bytes | None = None,
        has_connector: bool = False,
        traced: bool = True,
        tokenize: Tokenize | None = None,
    ) -> None:
        """A scenario before its first action.

        Args:
            config: what it runs on.
            none_hash: the parent of every first block; by default the hash of a fixed text (2.2).
            has_connector: whether any action carries `external`; it changes the rules for all requests (0.4).
            traced: whether outcomes carry a log.
            tokenize: the tokenizer for text parts; without one they can't be added.

        Raises:
            ConfigError: the engine rejects the config.
        """
        config.check()
        hash_fn = HASH_FUNCTIONS[config.prefix_caching_hash_algo]
        self.config = config
        self.tokenize = tokenize
        self.hasher = BlockHasher(hash_fn, none_hash or init_none_hash(hash_fn), config.hash_size)
        self.history = History(config)
        self.scripts: dict[str, Script] = {}
        """The latest script of each id, in order of first use."""
        self.uses: dict[str, int] = {}
        self.num_actions = 0
        self._num_added = 0
        self._log: list[Entry] = []
        self.connector = ScriptedConnector() if has_connector else None
        self._traced = traced
        self.scheduler = Scheduler(config, connector=self.connector, emit=self._log.append if traced else no_trace)

    def fork(self, *, traced: bool | None = None) -> Simulation:
        """An independent copy, to try something on; `traced`: as in the original unless it is given."""
        twin = object.__new__(Simulation)
        twin.__dict__.update(self.__dict__)
        twin._log = []
        if traced is not None:
            twin._traced = traced
        twin.connector = self.connector and self.connector.fork()
        twin.scheduler = self.scheduler.fork(twin._log.append if twin._traced else no_trace, twin.connector)
        twin.history = self.history.fork()
        living = self.scheduler.requests  # the script of a request that left changes no more
        twin.scripts = {name: script.fork() if name in living else script for name, script in self.scripts.items()}
        twin.uses = self.uses.copy()
        return twin

    def apply(self, action: Action, on_scheduled: Callable[[], None] | None = None) -> Outcome:
        """Execute one action. `on_scheduled` is called in a step between `schedule()` and the rest.

        Raises:
            RequestError: the action is impossible now; nothing has changed.
            InputError: the tokenizer refuses a text; nothing has changed.
        """
        output, sampled, reset = None, None, None
        match action:
            case AddRequest():
                self._add(action)
            case Step(abort=abort) if self._may_overrun:
                output, sampled = self._step_or_undo(abort, on_scheduled)
            case Step(abort=abort):
                output, sampled = self._step(abort, on_scheduled)
            case Abort(id=request_id):
                self.scheduler.finish_requests([request_id])
            case ResetPrefixCache(reset_running_requests=running):
                self._check_reset(running)
                reset = self.scheduler.reset_prefix_cache(reset_running_requests=running)
        manager = self.scheduler.kv_cache_manager
        outcome = Outcome(
            self.num_actions,
            action,
            tuple(self._log),
            tuple(manager.take_events()),
            manager.make_prefix_cache_stats(),
            output,
            sampled,
            reset,
        )
        self._log.clear()
        self.history.absorb(outcome.index, outcome.log)
        self.num_actions += 1
        return outcome

    def attempt(self, what: Callable[[Scheduler], object]) -> tuple[Entry, ...]:
        """Do something to the scheduler outside of any action, and return its trace. Only for a fork.

        No replay does it. The history takes it in, so that holders and hits can be read afterwards.
        """
        what(self.scheduler)
        log = tuple(self._log)
        self._log.clear()
        self.history.absorb(self.num_actions, log)
        return log

    def request_of(self, action: AddRequest) -> tuple[Request, tuple[Span, ...]]:
        """The request that an action would add now, and its prompt in spans. Changes nothing.

        Raises:
            RequestError: the action is impossible now.
            InputError: the tokenizer refuses a text.
        """
        where = f"actions[{self.num_actions}]"
        name = action.id
        if name in self.scheduler.requests:
            raise RequestError(
                "live_id", f"request {name!r} is still alive", f"{where}.id", "an id that no living request has"
            )
        use = self.uses.get(name, 0) + 1
        place = f"{where}.prompt"
        prompt = resolve(action.prompt, name, use, lambda id: self._continued(id, place), self.tokenize, place)
        check_request(action, self.config, count_of(prompt), where, RequestError)
        request = Request(
            name,
            tokens_of(prompt),
            action.max_tokens,
            self.hasher,
            arrival_time=float(self.num_actions),
            priority=action.priority,
            stop_token_ids=action.stop_token_ids,
            cache_salt=action.cache_salt,
            lora=action.lora,
            skip_reading_prefix_cache=action.skip_reading_prefix_cache,
        )
        return request, prompt

    def _add(self, action: AddRequest) -> None:
        request, prompt = self.request_of(action)
        name, number = action.id, self._num_added + 1
        self.scheduler.add_request(request)
        self.scripts[name] = Script(
            prompt, action.output_spans(number, self.config.num_speculative_tokens), action.accept
        )
        self.uses[name], self._num_added = self.uses.get(name, 0) + 1, number
        if self.connector is not None and action.external is not None:
            self.connector.plans[name] = action.external

    def _continued(self, name: str, where: str) -> list[Span]:
        script = self.scripts.get(name)
        if script is None:
            raise RequestError(
                "unknown_id", f"no request {name!r} was ever added", where, "the id of an earlier request"
            )
        return script.so_far()

    def _check_reset(self, reset_running_requests: bool) -> None:
        """A reset of running requests while a load holds blocks is undefined (0.3)."""
        holders = self.scheduler.requests_with_loads() if reset_running_requests else []
        if holders:
            raise RequestError(
                "load_holds_blocks",
                f"request {holders[0]!r} holds blocks for a load, so running requests can't be reset now",
                f"actions[{self.num_actions}]",
                "a reset when no load is under way",
            )

    @property
    def _may_overrun(self) -> bool:
        """Whether a count can fall short: that of 7.10 leaves out what external tokens need beside the state."""
        return self.connector is not None and any(group.kind == "mamba" for group in self.config.groups)

    def _step_or_undo(
        self, abort: Sequence[str], on_scheduled: Callable[[], None] | None
    ) -> tuple[SchedulerOutput, dict[str, int]]:
        """A step where the engine itself may fail; then it has not happened (7.15)."""
        before = self.fork()
        try:
            return self._step(abort, on_scheduled)
        except PoolExhaustedError as error:
            self.__dict__.update(before.__dict__)
            raise RequestError(
                "pool_exhausted",
                f"the engine fails in this step: it counted on fewer blocks than it takes ({error})",
                f"actions[{self.num_actions}]",
                "external tokens with more blocks to spare, or no Mamba group",
            ) from None

    def _step(
        self, abort: Sequence[str], on_scheduled: Callable[[], None] | None
    ) -> tuple[SchedulerOutput, dict[str, int]]:
        """Schedule, run the scripted model, account for it (0.4)."""
        scheduler, scripts = self.scheduler, self.scripts
        output = scheduler.schedule()
        if on_scheduled is not None:
            on_scheduled()
        scheduler.finish_requests(abort)
        received = self.connector.finish_step() if self.connector is not None else ()
        kept = scheduler.update_from_output(output, self._sample(output), received)
        for name, ids in kept.items():
            scripts[name].num_output += len(ids)
        k = self.config.num_speculative_tokens
        if k:
            living = scheduler.requests
            scheduler.update_draft_token_ids(
                {name: scripts[name].drafts(k) for name, ids in kept.items() if ids and name in living}
            )
        return output, {name: len(ids) for name, ids in kept.items()}

    def _sample(self, output: SchedulerOutput) -> dict[str, list[int]]:
        """What the scripted model says to each scheduled request that still lives."""
        living, drafts = self.scheduler.requests, output.scheduled_spec_decode_tokens
        return {
            name: self.scripts[name].sample(living[name], drafts.get(name, ()))
            for name in output.num_scheduled_tokens
            if name in living
        }
