"""Finds that a run goes round in circles: steps that do something, and lead back to where it was."""

from __future__ import annotations

from typing import Final

from app.services.cursor import Cursor
from engine.simulation import Simulation

Signature = tuple[object, ...]
START: Final = 8
"""Steps in a row without a token before anybody looks for a circle."""


class Watch:
    """Is shown every moment of a run. Keeps one of them, a later one each time twice as far (Brent's way).

    A state that comes again comes for ever, for the engine is deterministic; it can only do so while no token is
    sampled and no request leaves. States with loads or with Mamba groups hold more than is compared here: of them
    nothing is said.
    """

    def __init__(self) -> None:
        self._stalled = 0
        self._next = START
        self._kept: tuple[Signature, Signature] | None = None

    def circles(self, cursor: Cursor) -> bool:
        """Whether the step just executed led to a state that was there before."""
        simulation, applied = cursor.simulation, cursor.applied
        sampled = applied.outcome.sampled if applied is not None else None
        exact = simulation.connector is None and all(group.kind != "mamba" for group in simulation.config.groups)
        if sampled is None or any(sampled.values()) or not exact:
            self.__init__()  # type: ignore[misc]
            return False
        self._stalled += 1
        if self._stalled < START:
            return False
        signature = _requests(simulation)
        if self._kept is not None and self._kept[0] == signature and self._kept[1] == _pool(simulation):
            return True
        if self._stalled >= self._next:
            self._kept, self._next = (signature, _pool(simulation)), 2 * self._stalled
        return False


def _requests(simulation: Simulation) -> Signature:
    """Where every request stands: cheap."""
    scheduler = simulation.scheduler
    requests = (*scheduler.running, None, *scheduler.waiting)
    return tuple(
        one and (one.request_id, one.num_computed_tokens, one.num_tokens, len(one.spec_token_ids)) for one in requests
    )


def _pool(simulation: Simulation) -> Signature:
    """Where every block stands. O(pool)."""
    manager = simulation.scheduler.kv_cache_manager
    pool = manager.block_pool
    tables = {name: manager.get_blocks(name) for name in simulation.scheduler.requests}
    cached = {key: pool.cached.blocks(key) for key in pool.cached}
    keys = [pool.keys_of(block) for block in range(pool.num_blocks)]
    registered = [dict(one.num_cached_block) for one in manager.coordinator.managers]
    return list(pool.free_queue), pool.ref_cnt[:], _copied(tables), cached, keys, registered


def _copied(tables: dict[str, tuple[list[int], ...]]) -> dict[str, tuple[list[int], ...]]:
    return {name: tuple(table[:] for table in groups) for name, groups in tables.items()}
