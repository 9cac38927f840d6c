"""A trial run of a scenario: where it leads, or at which action it stops. Nothing of it is kept."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from app.services.limits import check_continued
from app.tokenizer import tokenize
from engine.errors import InputError
from engine.scenario import Limits, Scenario
from engine.simulation import Simulation

SLICE_SECONDS = 0.05


@dataclass(slots=True)
class Trial:
    """A scenario being run without a trace, in slices; `error` is what it stops at."""

    scenario: Scenario
    limits: Limits
    simulation: Simulation = field(init=False)
    error: InputError | None = None

    def __post_init__(self) -> None:
        connector = self.scenario.has_connector
        config = self.scenario.config
        self.simulation = Simulation(config, has_connector=connector, traced=False, tokenize=tokenize)

    @property
    def at(self) -> int:
        """Actions executed."""
        return self.simulation.num_actions

    @property
    def is_done(self) -> bool:
        """Whether it is at the end, or can't go on."""
        return self.error is not None or self.at == len(self.scenario.actions)

    def slice(self) -> float:
        """Go on for a short while; returns how many seconds of CPU it took."""
        start = time.thread_time()
        while not self.is_done and time.thread_time() - start < SLICE_SECONDS:
            action = self.scenario.actions[self.at]
            try:
                check_continued(action, self.simulation, self.limits, f"actions[{self.at}]")
                self.simulation.apply(action)
            except InputError as error:
                self.error = error
        return time.thread_time() - start
