"""The blank session: a pool and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Final

from engine.config import EngineConfig
from engine.scenario import Scenario

BLANK: Final = "Blank session"
NUM_BLOCKS: Final = 101


@cache
def blank_scenario() -> Scenario:
    """100 usable blocks of 16 tokens, and no action."""
    return Scenario(1, BLANK, EngineConfig(NUM_BLOCKS), ())
