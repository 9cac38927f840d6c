"""The table of a request when a call returned, also where the request has lost it since, in the same step."""

from __future__ import annotations

from dataclasses import dataclass

from app.rendering.moment import Moment
from engine.call_trace import CallTrace, GivenBack


@dataclass(frozen=True, slots=True)
class HeldTable:
    """The entries in one group, and what became of them: None while the request has them still."""

    blocks: tuple[int, ...]
    lost: GivenBack | None = None

    def is_hashed(self, moment: Moment, block: int) -> bool:
        """Whether a block carried a hash when the request had it last."""
        if self.lost is not None:
            return moment.cursor.simulation.config.enable_prefix_caching and block not in self.lost.front
        return moment.pool.block_hash[block] is not None

    def holders(self, moment: Moment, request: str, block: int) -> tuple[int, ...]:
        """The numbers of at most two requests that held it beside each other."""
        if self.lost is None:
            return tuple(moment.holders(block))
        others = moment.holders(block)[:1] if block in dict(self.lost.held) else []
        return (*others, moment.number(request))


def held_table(moment: Moment, call: CallTrace, group: int) -> HeldTable:
    """What the request held in a group when the call returned; of a refused one, what it held before it too."""
    tables = moment.manager.get_blocks(call.request)
    now = tables[group] if group < len(tables) else []
    lost = None if now else _given_back(moment, call.request, group)
    blocks = tuple(now or (lost.blocks[::-1] if lost else ()))
    if call.granted:
        return HeldTable(blocks, lost)
    assert call.check is not None
    return HeldTable(blocks[: call.check.terms[group].held], lost)


def _given_back(moment: Moment, request: str, group: int) -> GivenBack | None:
    """The table that the request gave back in this step, when it was preempted or left; None: it did neither."""
    found, is_its = None, False
    for entry in moment.applied.outcome.log if moment.applied else ():
        if entry[0] != "free":
            is_its = entry[0] in ("preempt", "finish") and entry[1] == request
        elif is_its and entry[1] == group:
            found = entry
    return GivenBack.of(found) if found else None
