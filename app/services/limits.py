"""The limit on a prompt that continues another request: its length shows only at the moment when it is added."""

from __future__ import annotations

from app.tokenizer import tokenize
from engine.actions import Action, AddRequest
from engine.scenario import Limits
from engine.simulation import Simulation
from engine.tokens import Continue, Own, Shared, Span, Text, count_of


def check_continued(action: Action, simulation: Simulation, limits: Limits, where: str) -> None:
    """Check the length in tokens that a prompt will have when the action runs now.

    Raises:
        LimitError: it is too long.
    """
    if not isinstance(action, AddRequest) or not any(isinstance(part, Continue) for part in action.prompt):
        return
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
    limits.check_prompt(tokens, f"{where}.prompt")
