"""The readable table of `poolscope replay`: a line an action."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from engine.actions import Abort, Action, AddRequest, ResetPrefixCache
from engine.errors import printable
from engine.simulation import Outcome, Simulation
from engine.step_trace import read_step

WIDTHS: Final = (6, 24, 28, 8, 7, 6, 16, 16, 0)
COLUMNS: Final = ("action", "what", "scheduled", "free", "usage", "hits", "preempted", "finished", "refused")
LEFT: Final = {"what", "scheduled", "preempted", "finished", "refused"}


def table_head() -> str:
    """The names of the columns."""
    return _line(COLUMNS)


def table_row(outcome: Outcome, simulation: Simulation) -> str:
    """What one action did. `hits`: tokens reused by requests that it admitted."""
    trace = read_step(outcome.log)
    scheduled = outcome.output.num_scheduled_tokens if outcome.output else {}
    pool = simulation.scheduler.kv_cache_manager.block_pool
    stats = outcome.prefix_cache
    refused = [f"{call.request} (needs {call.shortfall} more)" for call in trace.calls if not call.granted]
    return _line(
        (
            str(outcome.index),
            _what(outcome.action, outcome.reset),
            _names(f"{name} {tokens}" for name, tokens in scheduled.items()),
            str(pool.num_free_blocks),
            f"{pool.get_usage():.3f}",
            str(stats.hits + stats.preempted_hits),
            _names(preemption.victim for preemption in trace.preemptions),
            _names(finish.request for finish in trace.finishes),
            _names(refused),
        )
    )


def _what(action: Action, reset: bool | None) -> str:
    match action:
        case AddRequest(id=name):
            return f"add_request {printable(name)}"
        case Abort(id=name):
            return f"abort {printable(name)}"
        case ResetPrefixCache():
            return "reset_prefix_cache" + ("" if reset else ", refused")
    return "step" + (f", abort {_names(action.abort)}" if action.abort else "")


def _names(names: Iterable[str]) -> str:
    """Some names, and how many more there are."""
    every = [printable(name) for name in names]
    more = f" and {len(every) - 4} more" if len(every) > 4 else ""
    return ", ".join(every[:4]) + more or "-"


def _line(cells: tuple[str, ...]) -> str:
    padded = (
        cell.ljust(width) if name in LEFT else cell.rjust(width)
        for name, cell, width in zip(COLUMNS, cells, WIDTHS, strict=True)
    )
    return "  ".join(padded).rstrip()
