"""Where a retained hit can end (behaviour 7.8)."""

from __future__ import annotations

from engine.config import EngineConfig
from engine.request import Request


def reachable_positions(config: EngineConfig, request: Request) -> set[int]:
    """The prefix lengths, in tokens, that a later request with the same prompt can hit up to."""
    size, prompt = config.scheduler_block_size, request.num_prompt_tokens
    if any(config.eagle_groups):
        positions = {max(last // size * size - size, 0) for last in (prompt - 1, prompt)}
    else:
        positions = {prompt - 1}
    if request.shared_prefix_boundary:
        positions.add(request.shared_prefix_boundary)
    return positions
