"""Messages to the reader: how a run ended, a replay that took too long, a connector that came later."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.contexts import Notice, RunUnderWay
from app.rendering.moment import Moment
from app.rendering.transport import UNTIL
from app.rendering.words import all_usable, count, isolated, told
from app.services.appending import Acted
from app.services.running import CONDITIONS, RunEnd
from app.services.session import Node, Session


def acted_notice(moment: Moment, acted: Acted, most: int, told: str = "") -> Notice | None:
    """What there is to say after acting: what the caller has `told`, how a run stands, that this is another branch."""
    if told:
        left = moment.branches.get(acted.left or "")
        beside = left is not None and not left.deleted and left.id != moment.branch
        return Notice(told, compare=compared(moment, left.id) if left is not None and beside else "")
    if acted.run is not None:
        return run_notice(moment, acted.run, most)
    reset = reset_notice(moment)
    came = came_notice(moment, moment.branches.get(acted.left or ""), acted.connector)
    if reset is None or came is None:
        return came or reset
    return replace(came, text=f"{reset.text} {came.text}", kind=reset.kind)


def came_notice(moment: Moment, left: Node | None, connector: str) -> Notice | None:
    """What came of an action: another branch than the one that was `left`, a connector (a key of `CONNECTOR`)."""
    if left is None:
        return connector_notice(connector) if connector else None
    here = moment.branches[moment.branch]
    if left.id == here.id or left.deleted:
        return Notice(f"Deleted. This is {here.name}." if left.deleted else f"{here.name} it is.")
    if here.parent != left.id:
        return None
    notice = left_notice(moment, left)
    return replace(notice, text=f"{notice.text} {connector_notice(connector).text}") if connector else notice


def left_notice(moment: Moment, left: Node) -> Notice:
    """That acting below the end led to another branch."""
    here = moment.branches[moment.branch]
    name, parent = isolated(here.name), isolated(left.name)
    text = f"This is {name} now, a branch that leaves {parent} after {here.left_at}. Both futures stay."
    return Notice(
        text,
        "info",
        f"Back to {parent}",
        f"?branch={left.id}&at={here.left_at}",
        compared(moment, left.id),
    )


def compared(moment: Moment, other: str) -> str:
    """The query of the comparison of another branch with this one."""
    return f"?a={other}&b={moment.branch}&at={moment.at}"


def under_way(moment: Moment, branch: str, run: RunEnd, most: int, told: int = 0) -> RunUnderWay:
    """How a run of a branch gets on: it makes `most` steps at the most; who stands at `told` or behind it follows."""
    beside = branch != moment.branch
    until = f"Running until {UNTIL[run.until]}" if run.until else "Running until no request is left"
    who = f"{isolated(moment.branches[branch].name)} runs on" if beside else until
    text = f"{who}: {count(run.steps, 'step')} of at most {most} so far."
    return RunUnderWay(text, branch, beside, not beside and moment.at >= told)


def ended_beside(moment: Moment, run: RunEnd) -> Notice:
    """How a run ended while the page showed something else; `moment`: the end of the run's branch."""
    told = run_notice(moment, run)
    name = moment.branches[moment.branch].name
    link = f"Go to the end of {isolated(name)}"
    return replace(told, text=f"{isolated(name)}: {told.text}", link=link, query=moment.query(moment.at))


def run_notice(moment: Moment, run: RunEnd, most: int = 0) -> Notice:
    """How a run ended and why, or how it gets on: it makes `most` steps at the most."""
    if not run.why:
        return Notice("", run=under_way(moment, moment.branch, run, most))
    steps = f"Ran {count(run.steps, 'step')}." if run.steps else "No step was run."
    if run.why in CONDITIONS:
        steps = f"{count(run.steps, 'step')[0].upper()}{count(run.steps, 'step')[1:]} on:"
    why = {
        "nothing_left": "No request is left.",
        "no_change": f"The step changed nothing, and so would every further one. {_why_no_change(moment)}",
        "circle": "A livelock: all is as it was some steps ago, so it will go round like this for ever.",
        "steps": "That is the most for one run; run again to go on.",
        "actions": "The session is full: it has as many actions as Poolscope takes.",
        "time": "That took as long as one run may take; run again to go on.",
        "stopped": "Then it was stopped.",
        "finish": f"{_who(moment, 'finished')} finished.",
        "preempt": f"{_who(moment, 'preempted')} was preempted.",
        "refuse": f"allocate_slots returned None for {_who(moment, 'refused', 'preempted')}.",
        "evict": "a cached block was evicted.",
        "idle": "the waiting queue is empty.",
        "count": "as many as were asked for.",
    }[run.why]
    if run.why == "refuse" and not _names(moment, "refused"):
        why = f"allocate_slots returned None, and {_who(moment, 'preempted')} was preempted."
    return Notice(f"{steps} {why}".strip())


def _names(moment: Moment, *what: str) -> list[str]:
    """The requests to which something notable happened in the latest action."""
    notable = moment.columns.notable.get(moment.at - 1, ())
    return [one.request for one in notable if one.what in what and one.request is not None]


def _who(moment: Moment, *what: str) -> str:
    names = _names(moment, *what)
    others = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(isolated, names[:3])) + others


def _why_no_change(moment: Moment) -> str:
    """A request that can never fit, or a livelock."""
    trace = moment.applied.trace if moment.applied else None
    refused = next((call for call in reversed(trace.calls) if not call.granted), None) if trace else None
    if refused is None:
        return "Requests are left, but none of them can go on."
    usable = moment.pool.num_blocks - 1
    if refused.can_never_fit(usable):
        return f"{isolated(refused.request)} can never fit: {all_usable(usable)}."
    more = count(refused.shortfall, "more free block")
    if not moment.scheduler.running:
        return f"A livelock: {isolated(refused.request)} needs {more}, and nothing runs that could free any."
    return f"A livelock: {isolated(refused.request)} needs {more}, and nobody who holds blocks goes on."


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


def cut_short(session: Session, moment: Moment, wanted: int) -> Notice | None:
    """That the replay stopped before the moment that was asked for, or that a link's actions end before their end."""
    problem = session.branch.problem
    if problem is not None and moment.at == session.branch.end:
        return Notice(f"This ends before action {moment.at + 1}. {told(problem)}", "error")
    if moment.at >= wanted:
        return None
    text = f"Replaying up to action {wanted} takes longer than one request may; this is after {moment.at}."
    return Notice(text, "info", f"Go on to action {wanted}", moment.query(wanted))
