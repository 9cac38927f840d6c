"""What one `schedule()` decided (behaviour 6.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from engine.kv_cache_coordinator import Blocks

PLACEHOLDER_DRAFT = -1
"""A draft of a padded request; it never matches (6.4 step 4)."""


class NewRequestData(NamedTuple):
    """A request scheduled for the first time, with all that a worker must know of it."""

    request_id: str
    prompt_token_ids: list[int]
    block_ids: Blocks
    num_computed_tokens: int
    """Before this step."""


class CachedRequestData(NamedTuple):
    """A request that a worker knows; `new_block_ids` are this step's, or the whole table of a resumed one."""

    request_id: str
    resumed: bool
    new_block_ids: Blocks | None
    num_computed_tokens: int
    """Before this step."""
    num_output_tokens: int
    all_token_ids: list[int] | None
    """Only for one that was not scheduled in the step before."""


CachedRow = tuple[str, bool, Blocks | None, int, int, list[int] | None]


@dataclass(slots=True)
class SchedulerOutput:
    """One step's schedule; dicts are in scheduling order: running pass first, then admissions."""

    num_scheduled_tokens: dict[str, int] = field(default_factory=dict)
    scheduled_spec_decode_tokens: dict[str, list[int]] = field(default_factory=dict)
    scheduled_new_reqs: list[NewRequestData] = field(default_factory=list)
    cached_rows: list[CachedRow] = field(default_factory=list)
    """`scheduled_cached_reqs` before anybody reads it."""
    finished_req_ids: set[str] = field(default_factory=set)
    preempted_req_ids: set[str] = field(default_factory=set)
    new_block_ids_to_zero: list[int] | None = None
    kv_cache_block_copies: list[tuple[int, int]] = field(default_factory=list)

    @property
    def scheduled_cached_reqs(self) -> list[CachedRequestData]:
        """Running-pass requests, then resumed ones."""
        return [CachedRequestData(*row) for row in self.cached_rows]

    @property
    def total_num_scheduled_tokens(self) -> int:
        """Tokens of the step, over all requests."""
        return sum(self.num_scheduled_tokens.values())
