"""`allocate_slots` called with any arguments, on a copy: what would it answer now? And what would a new request hit?

Nothing here changes the simulation that is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.actions import AddRequest
from engine.call_trace import CallTrace, read_calls
from engine.errors import PoolExhaustedError, RequestError, shown
from engine.kv_cache_coordinator import Blocks
from engine.kv_cache_interface import cdiv
from engine.request import Request, RequestStatus
from engine.sched.scheduler import Scheduler
from engine.sched.waiting_pass import WaitingPass
from engine.simulation import Simulation
from engine.trace import Entry

MOST: Final = 10_000_000
"""The largest number that an argument takes."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the caller of `allocate_slots` decides; None: what the scheduler would pass for this request now."""

    new: int | None = None
    new_comp: int | None = None
    ext_comp: int | None = None
    lookahead: int | None = None
    reserved_blocks: int | None = None
    full_sequence_must_fit: bool | None = None
    has_scheduled_reqs: bool | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """Arguments with nothing left open. Tokens and blocks."""

    new: int
    new_comp: int
    ext_comp: int
    lookahead: int
    reserved_blocks: int
    full_sequence_must_fit: bool
    has_scheduled_reqs: bool
    delay_cache_blocks: bool = False
    obstacle: str | None = None
    """Why the scheduler would not get as far as this call; None: it would."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A call on a copy: what was passed, what it told, and the copy as the call left it."""

    passed: Passed
    call: CallTrace
    log: tuple[Entry, ...]
    simulation: Simulation


def probe(
    simulation: Simulation,
    request: str,
    *,
    new: int | None = None,
    new_comp: int | None = None,
    ext_comp: int | None = None,
    lookahead: int | None = None,
    reserved_blocks: int | None = None,
    full_sequence_must_fit: bool | None = None,
    has_scheduled_reqs: bool | None = None,
) -> CallTrace:
    """The trace of the call; arguments that are left out are what the scheduler would pass now.

    Raises:
        RequestError: there is no such request, or an argument is impossible; `where` names it.
    """
    arguments = Arguments(
        new, new_comp, ext_comp, lookahead, reserved_blocks, full_sequence_must_fit, has_scheduled_reqs
    )
    return probed(simulation, request, arguments).call


def usual(simulation: Simulation, request: str) -> Passed:
    """What the scheduler would pass for a request if its turn came first in a step that starts now.

    Raises:
        RequestError: there is no such request.
    """
    return _Call(simulation, request, Arguments()).passed


def probed(simulation: Simulation, request: str, arguments: Arguments) -> Probed:
    """The call with everything that can be known about it.

    Raises:
        RequestError: there is no such request, or an argument is impossible; `where` names it.
    """
    call = _Call(simulation, request, arguments)
    call.check()
    try:
        log = call.copy.attempt(call.run)
    except PoolExhaustedError as error:
        message = f"the count of this call falls short of what it takes ({error})"
        raise RequestError("pool_exhausted", message, "ext_comp", "fewer external tokens") from None
    return Probed(call.passed, read_calls(log)[-1], log, call.copy)


class _Call:
    """One call in the making, on a copy of the engine in which a step has just begun."""

    def __init__(self, simulation: Simulation, name: str, arguments: Arguments) -> None:
        living = simulation.scheduler.requests.get(name)
        if living is None or living.status is RequestStatus.FINISHED_ABORTED:
            raise RequestError(
                "unknown_request", f"no living request is called {shown(name)}", "request", "a waiting or running one"
            )
        _check_numbers(arguments)
        self.copy = simulation.fork(traced=True)
        self.scheduler: Scheduler = self.copy.scheduler
        self.manager = self.scheduler.kv_cache_manager
        self.request: Request = self.scheduler.requests[name]
        self.asked = arguments
        self.hit: Blocks = self.manager.coordinator.no_blocks
        self.step = self.scheduler.begin_step()
        self.passed = self._running() if self.request.status is RequestStatus.RUNNING else self._waiting()

    def run(self, _scheduler: Scheduler) -> None:
        """The call itself."""
        passed = self.passed
        self.manager.allocate_slots(
            self.request,
            passed.new,
            passed.new_comp,
            self.hit,
            passed.lookahead,
            passed.ext_comp,
            delay_cache_blocks=passed.delay_cache_blocks,
            full_sequence_must_fit=passed.full_sequence_must_fit,
            reserved_blocks=passed.reserved_blocks,
            has_scheduled_reqs=passed.has_scheduled_reqs,
        )

    # ---- what is passed

    def _running(self) -> Passed:
        """The running pass: its next chunk and the lookahead, no hit and no gate (6.3)."""
        asked = self.asked
        for name, tokens in (("new_comp", asked.new_comp), ("ext_comp", asked.ext_comp)):
            if tokens:
                message = f"{shown(self.request.request_id)} runs: hits are only adopted at an admission"
                raise RequestError("hit_while_running", message, name, "0")
        tokens = max(self.scheduler.cut_chunk(self.request, self.step), 0) if asked.new is None else asked.new
        return self._filled(tokens, 0, 0, gated=False, obstacle=None if tokens else "no_tokens")

    def _waiting(self) -> Passed:
        """The waiting pass: a lookup, then the first chunk behind the hit (6.4); a load counts as arrived (7.15)."""
        request, asked, loads = self.request, self.asked, self.scheduler.loads
        if request.status is RequestStatus.WAITING_FOR_REMOTE_KVS:
            loads.use_arrived(request, self.manager)
        if request.num_computed_tokens:
            local, external, is_async = self._hit_of(asked.new_comp or 0), asked.ext_comp or 0, False
        else:
            found = self.manager.get_computed_blocks(request)
            self.hit = found.blocks
            local = found.num_tokens if asked.new_comp is None else self._hit_of(asked.new_comp)
            external, is_async = loads.ask(request, local)
            if asked.ext_comp is not None:
                external, is_async = asked.ext_comp, is_async and asked.ext_comp == external
        if is_async and not asked.new:
            reserved = loads.reserved_blocks(self.manager)
            return self._filled(0, local, external, gated=True, lookahead=0, reserved=reserved, delayed=True)
        tokens, obstacle = asked.new, None
        if tokens is None:
            computed = request.num_computed_tokens + local + external
            tokens, _, obstacle = WaitingPass(self.scheduler, self.step).cut_chunk(request, computed)
        return self._filled(max(tokens, 0), local, external, gated=True, obstacle=obstacle)

    def _filled(
        self,
        new: int,
        new_comp: int,
        ext_comp: int,
        *,
        gated: bool,
        lookahead: int | None = None,
        reserved: int = 0,
        delayed: bool = False,
        obstacle: str | None = None,
    ) -> Passed:
        asked, config = self.asked, self.copy.config
        usual_lookahead = config.num_lookahead_tokens if lookahead is None else lookahead
        gate = gated and config.scheduler_reserve_full_isl
        others = bool(self.scheduler.running) if gated else True
        return Passed(
            new,
            new_comp,
            ext_comp,
            usual_lookahead if asked.lookahead is None else asked.lookahead,
            reserved if asked.reserved_blocks is None else asked.reserved_blocks,
            gate if asked.full_sequence_must_fit is None else asked.full_sequence_must_fit,
            others if asked.has_scheduled_reqs is None else asked.has_scheduled_reqs,
            delayed,
            obstacle,
        )

    def _hit_of(self, tokens: int) -> int:
        """Take a hit of just so many tokens, if the cache holds one."""
        request, manager = self.request, self.manager
        most = 0
        if not request.num_computed_tokens and manager.lookup_enabled(request):
            largest = max(group.block_size for group in self.copy.config.groups)
            whole = request.num_tokens - 1
            for limit in (tokens, min(tokens + largest, whole), whole):
                found = manager.coordinator.find_longest_cache_hit(request.block_hashes, min(limit, whole))
                if found.num_tokens == tokens:
                    self.hit = found.blocks
                    return tokens
                most = found.num_tokens
        if tokens:
            message = f"the cache holds no hit of {tokens} tokens for {shown(request.request_id)}"
            raise RequestError("no_such_hit", message, "new_comp", _multiples(most, self.copy.config.alignment))
        self.hit = manager.coordinator.no_blocks
        return 0

    # ---- what is impossible

    def check(self) -> None:
        """Refuse what no scheduler could pass.

        Raises:
            RequestError: the first such argument.
        """
        request, passed = self.request, self.passed
        if passed.ext_comp and len(self.copy.config.groups) > 1:
            message = f"external tokens can't be had with {len(self.copy.config.groups)} groups"
            raise RequestError("external_with_groups", message, "ext_comp", "0")
        known = request.num_tokens + max(self.copy.config.num_speculative_tokens, len(request.spec_token_ids))
        left = known - request.num_computed_tokens - passed.new_comp - passed.ext_comp
        if left < 0:
            most = max(left + passed.ext_comp, 0)
            message = f"{passed.ext_comp} external tokens are more than the request has behind its hit"
            raise RequestError("too_many_tokens", message, "ext_comp", f"at most {most}")
        if passed.new > left:
            message = f"{passed.new} tokens are more than {shown(request.request_id)} has left"
            raise RequestError("too_many_tokens", message, "new", f"at most {left}")
        if not (passed.new or passed.new_comp or passed.ext_comp):
            message = "with no token at all there is nothing to allocate for"
            expected = f"1 to {left}" if left else "a request with tokens left to compute"
            raise RequestError("no_tokens", message, "new", expected)


def _check_numbers(arguments: Arguments) -> None:
    for name in ("new", "new_comp", "ext_comp", "lookahead", "reserved_blocks"):
        value = getattr(arguments, name)
        if value is not None and not 0 <= value <= MOST:
            raise RequestError("out_of_range", f'"{name}" is {shown(value)}', name, f"a whole number from 0 to {MOST}")


def _multiples(most: int, unit: int) -> str:
    """What hits there are, in words."""
    if not most:
        return "0: the cache holds nothing of it"
    return f"0 or a hit that it holds, at most {most}" if most <= unit else f"a multiple of {unit}, at most {most}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that is not added yet: its length, the blocks it will fill, and what it would hit now."""

    num_tokens: int
    num_blocks: int
    """Over all groups, as if every token needed its place."""
    hit_tokens: int
    hit_blocks: int
    looked_up: bool
    """False: caching is off, or the request skips reading the cache."""


def draft(simulation: Simulation, action: AddRequest) -> Draft:
    """What a request would be if it were added now.

    Raises:
        InputError: it can't be added.
    """
    request, _ = simulation.request_of(action)
    manager = simulation.scheduler.kv_cache_manager
    blocks = sum(cdiv(request.num_tokens, group.block_size) for group in simulation.config.groups)
    if not manager.lookup_enabled(request):
        return Draft(request.num_tokens, blocks, 0, 0, looked_up=False)
    hit = manager.coordinator.find_longest_cache_hit(request.block_hashes, request.num_tokens - 1)
    found = sum(block != 0 for table in hit.blocks for block in table)
    return Draft(request.num_tokens, blocks, hit.num_tokens, found, looked_up=True)
