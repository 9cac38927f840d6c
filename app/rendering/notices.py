"""Messages to the reader: how a run ended, a replay that took too long, a connector that came later."""

from __future__ import annotations

from typing import Final

from app.contexts import Notice
from app.rendering.moment import Moment
from app.rendering.words import count
from app.services.acting import RunEnd


def run_notice(moment: Moment, run: RunEnd) -> Notice:
    """How a run ended and why."""
    steps = f"Ran {count(run.steps, 'step')}." if run.steps else "No step was run."
    why = {
        "nothing_left": "No request is left.",
        "no_change": f"The step changed nothing, and so would every further one. {_why_no_change(moment)}",
        "steps": "That is the most for one run; run again to go on.",
        "actions": "The session is full: it has as many actions as Poolscope takes.",
        "time": "That took as long as one run may take; run again to go on.",
    }[run.why]
    return Notice(f"{steps} {why}".strip())


def _why_no_change(moment: Moment) -> str:
    """A request that can never fit, or a livelock."""
    trace = moment.applied.trace if moment.applied else None
    refused = next((call for call in reversed(trace.calls) if not call.granted), None) if trace else None
    if refused is None:
        return "Requests are left, but none of them can go on."
    usable = moment.pool.num_blocks - 1
    if refused.can_never_fit(usable):
        return f"{refused.request} can never fit: not even all {count(usable, 'usable block')} would be enough."
    more = count(refused.shortfall, "more free block")
    if not moment.scheduler.running:
        return f"A livelock: {refused.request} needs {more}, and nothing runs that could free any."
    return f"A livelock: {refused.request} needs {more}, and nobody who holds blocks goes on."


def reset_notice(moment: Moment) -> Notice | None:
    """A reset that was refused; None for everything else."""
    if moment.applied is None or moment.applied.outcome.reset is not False:
        return None
    return Notice(
        f"The reset was refused: {count(moment.counts.live, 'block')} are held. Nothing has changed.", "error"
    )


CONNECTOR: Final = {
    "same": "What is shown stayed as it was.",
    "changed": "The free queue lay in another order at times, so blocks and hits may differ from what you saw.",
}


def connector_notice(what: str) -> Notice:
    """An action with external tokens gave a connector to a scenario that had none; `what` it changed: a key above."""
    return Notice(
        "This scenario has a connector now. Under one, requests give their blocks back in two goes, so everything "
        f"before was replayed with it. {CONNECTOR[what]}"
    )


def short_replay(moment: Moment, wanted: int) -> Notice:
    """The replay took too long and stopped before the moment that was asked for."""
    text = f"Replaying up to action {wanted} takes longer than one request may; this is after {moment.at}."
    return Notice(text, "info", f"Go on to action {wanted}", moment.query(wanted))
