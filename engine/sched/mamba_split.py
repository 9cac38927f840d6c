"""Cuts prefill chunks so that they end where a Mamba state is wanted (behaviour 7.11)."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.request import Request


def last_boundary(num_tokens: int, unit: int, *, eagle: bool) -> int:
    """The last multiple of `unit` from which a lookup over `num_tokens` tokens could go on; one unit less for EAGLE."""
    if eagle:
        return max(0, num_tokens // unit * unit - unit)
    return max(0, (num_tokens - 1) // unit * unit)


class MambaSplit:
    """The rule for one config; it applies if the first Mamba group's mode is "align", also with caching off."""

    def __init__(self, config: EngineConfig) -> None:
        self._unit = config.block_size
        self._eagle = config.use_eagle
        threshold, budget = config.long_prefill_token_threshold, config.max_num_batched_tokens
        self._cap = min(budget, threshold) if threshold > 0 else budget
        fine = config.partial_hits and config.hash_size < config.scheduler_block_size
        self._hash_size = config.hash_size if fine else None

    @classmethod
    def of(cls, config: EngineConfig) -> MambaSplit | None:
        """The split of a config, None when it has none."""
        modes = [group.mamba_cache_mode for group in config.groups if group.kind == "mamba"]
        return cls(config) if modes and modes[0] == "align" else None

    def cut(self, request: Request, start: int, tokens: int) -> int:
        """How many of the `tokens` behind `start` to compute in this step; 0: the budget is too small to get on."""
        if start >= max(request.num_prompt_tokens, request.num_tokens - 1):
            return tokens
        unit = self._unit
        end = start + tokens
        if end < max(request.num_prompt_tokens, request.num_tokens - 1):
            floor = end // unit * unit
            if floor > start or unit <= self._cap:
                end = floor
        return max(min([end, *(stop for stop in self._stops(request, start, end) if start < stop < end)]) - start, 0)

    def _stops(self, request: Request, start: int, end: int) -> list[int]:
        """Where a state is wanted: the next edge, the last boundary, the prompt's hash boundary, a shared prefix."""
        unit = self._unit
        last = last_boundary(request.num_tokens, unit, eagle=self._eagle)
        stops = [last]
        if start % unit:
            stops.append((start // unit + 1) * unit)
        if self._hash_size is not None:
            prompt = request.num_prompt_tokens
            tail = last_boundary(prompt, self._hash_size, eagle=self._eagle)
            if last < tail < prompt:
                stops.append(tail)
        shared = request.shared_prefix_boundary
        if start < shared < end:
            stops.append(start + (shared - start) // unit * unit)
        return stops
