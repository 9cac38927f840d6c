"""Limits that show only when a request is added: how long a continued prompt is, what memory the living ones take."""

from __future__ import annotations

from typing import Final

from app.tokenizer import tokenize
from engine.actions import Action, AddRequest
from engine.errors import LimitError
from engine.scenario import Limits
from engine.simulation import Simulation
from engine.tokens import Continue, Own, Shared, Span, Text, count_of

TOKEN_BYTES: Final = 40
"""A token id of a living request, in the request's list."""
HASH_BYTES: Final = 140
"""A hash of a living request, with its place in the request's lists."""
LIGHT_BYTES: Final = 1_000_000
"""Requests below this are weighed with all others only once in `LIGHT_TURN`: a sum over very many takes time."""
LIGHT_TURN: Final = 64


def check_continued(action: Action, simulation: Simulation, limits: Limits, where: str) -> None:
    """Check the length in tokens that a prompt will have when the action runs now, and the memory it will take.

    Raises:
        LimitError: it is too long, or too much beside the other living requests.
    """
    if not isinstance(action, AddRequest):
        return
    tokens = _length(action, simulation)
    limits.check_prompt(tokens, f"{where}.prompt")
    _check_memory(tokens, simulation, limits, f"{where}.prompt")


def requests_weight(simulation: Simulation) -> int:
    """About how many bytes the tokens, hashes and tables of living requests take; forks share most of them."""
    requests = simulation.scheduler.requests.values()
    return sum(TOKEN_BYTES * one.num_tokens + HASH_BYTES * len(one.block_hashes) for one in requests)


def _check_memory(tokens: int, simulation: Simulation, limits: Limits, where: str) -> None:
    weight = TOKEN_BYTES * tokens + HASH_BYTES * (tokens // simulation.config.hash_size)
    if weight < LIGHT_BYTES and len(simulation.scheduler.requests) % LIGHT_TURN:
        return
    weight += requests_weight(simulation)
    if weight > limits.memory:
        message = f"with this prompt the living requests take about {weight // 1_000_000} MB of memory"
        expected = f"at most {limits.memory // 1_000_000} MB: a shorter prompt, or fewer requests at the same time"
        raise LimitError("over_limit", message, where, expected)


def _length(action: AddRequest, simulation: Simulation) -> int:
    """Tokens of the prompt as it would be now."""
    tokens = 0
    for part in action.prompt:
        match part:
            case Continue(id=name):
                script = simulation.scripts.get(name)
                tokens += count_of(script.so_far()) if script else 0
            case Span(count=length) | Own(tokens=length) | Shared(tokens=length):
                tokens += length
            case Text(text=text):
                tokens += len(tokenize(text))
    return tokens
