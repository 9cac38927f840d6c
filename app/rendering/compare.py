"""Two branches side by side at one moment, with what differs marked and the first difference in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import orjson
from markupsafe import Markup

from app.contexts.compare import CompareContext, CompareRow, Line, Side
from app.rendering.moment import Moment
from app.rendering.parting import sentence
from app.rendering.transport import config_summary, doing
from app.rendering.words import count, runs
from app.services.comparing import next_difference, parting, thinned
from app.services.session import Branch

MOST_LINES = 60
HEAD = 24


@dataclass(frozen=True, slots=True)
class Seen:
    """One side: its branch, and the moment that it stands at."""

    branch: Branch
    moment: Moment

    @property
    def name(self) -> str:
        """The branch's name."""
        return self.moment.branches[self.moment.branch].name


def compare(a: Seen, b: Seen, at: int, start: int) -> CompareContext:
    """The comparison at the moment `at`; up to `start` both are known to be the same."""
    end = max(a.branch.end, b.branch.end)
    part = parting(a.branch, b.branch, start)
    later = next_difference(a.branch, b.branch, max(at, start))

    def query(moment: int) -> str:
        return f"?a={a.moment.branch}&b={b.moment.branch}&at={moment}"

    return CompareContext(
        title=a.moment.title,
        base=a.moment.session_id,
        a=_side(a, at),
        b=_side(b, at),
        at=at,
        end=end,
        first=query(0) if at else None,
        back=query(at - 1) if at else None,
        forward=query(at + 1) if at < end else None,
        last=query(end) if at < end else None,
        parting=sentence(a, b, part),
        parting_query=query(part.at) if part else None,
        next_difference=query(later) if later else None,
        swapped=f"?a={b.moment.branch}&b={a.moment.branch}&at={at}",
        rows=tuple(_rows(a.moment, b.moment)),
        series=_series(a, b, at),
    )


def _side(seen: Seen, at: int) -> Side:
    moment = seen.moment
    summary = config_summary(moment.cursor.simulation.config)
    label = f"after {moment.at} of {seen.branch.end}"
    over = at > seen.branch.end
    return Side(
        moment.branch, seen.name, summary, label, doing(moment, moment.at), moment.query(moment.at), is_over=over
    )


def _rows(a: Moment, b: Moment) -> list[CompareRow]:
    parts = (
        ("What was done", _action),
        ("Schedule", _schedule),
        ("Refused or preempted", _refusals),
        ("Waiting", _waiting),
        ("Running", _running),
        ("Usage", _usage),
        ("Free queue, head first", _free),
        ("Block tables", _tables),
    )
    return [_row(title, list(lines(a)), list(lines(b))) for title, lines in parts]


def _row(title: str, a: Sequence[tuple[str, str, int | None]], b: Sequence[tuple[str, str, int | None]]) -> CompareRow:
    """Both sides' lines (request, text, its number); each is marked that the other side lacks."""
    differs = list(a) != list(b)
    mine, theirs = set(a), set(b)
    ordered = mine == theirs

    def marked(lines: Sequence[tuple[str, str, int | None]], other: set[tuple[str, str, int | None]]) -> list[Line]:
        shown = [
            Line(text, (differs and ordered) or (name, text, number) not in other, number, name)
            for name, text, number in lines[:MOST_LINES]
        ]
        if len(lines) > MOST_LINES:
            shown.append(Line(f"and {len(lines) - MOST_LINES} more", differs))
        return shown

    return CompareRow(title, tuple(marked(a, theirs)), tuple(marked(b, mine)), differs)


Lines = list[tuple[str, str, int | None]]


def _action(moment: Moment) -> Lines:
    return [("", doing(moment, moment.at), None)]


def _schedule(moment: Moment) -> Lines:
    output = moment.applied.outcome.output if moment.applied else None
    if output is None or not output.num_scheduled_tokens:
        return [("", "nothing was scheduled", None)]
    scheduled = output.num_scheduled_tokens.items()
    return [(name, count(tokens, "token"), moment.number(name)) for name, tokens in scheduled]


def _refusals(moment: Moment) -> Lines:
    trace = moment.applied.trace if moment.applied else None
    if trace is None:
        return []
    refused = [
        (call.request, f"refused: {count(call.shortfall, 'more free block')} needed", moment.number(call.request))
        for call in trace.calls
        if not call.granted
    ]
    gone = [(one.victim, "preempted", moment.number(one.victim)) for one in trace.preemptions]
    return [*refused, *gone] or [("", "nobody", None)]


def _waiting(moment: Moment) -> Lines:
    queue = chain(moment.scheduler.waiting, moment.scheduler.loads.holding)
    lines = [(one.request_id, count(one.num_tokens, "token"), moment.number(one.request_id)) for one in queue]
    return [*lines] or [("", "nobody", None)]


def _running(moment: Moment) -> Lines:
    lines: Lines = [
        (one.request_id, f"{one.num_computed_tokens} of {one.num_tokens} tokens", moment.number(one.request_id))
        for one in moment.scheduler.running
    ]
    return lines or [("", "nobody", None)]


def _usage(moment: Moment) -> Lines:
    counts = moment.counts
    return [
        ("", f"{moment.pool.get_usage():.3f}", None),
        ("", f"{counts.live} held, {counts.cached} free and cached, {counts.empty} free and empty", None),
    ]


def _free(moment: Moment) -> Lines:
    head: list[int] = []
    for block in moment.pool.free_queue:
        if len(head) == HEAD:
            break
        head.append(block)
    hashed = [block for block in head if moment.pool.block_hash[block] is not None]
    more = moment.pool.num_free_blocks - len(head)
    order = runs(head) or "nothing is free"
    lines: Lines = [("", order + (f" … {more} more" if more else ""), None)]
    if hashed:
        lines.append(("", f"hashed of these: {runs(hashed)}", None))
    return lines


def _tables(moment: Moment) -> Lines:
    lines: Lines = []
    for name in moment.scheduler.requests:
        for group, table in enumerate(moment.manager.get_blocks(name)):
            if table:
                where = f"group {group}: " if len(moment.cursor.simulation.config.groups) > 1 else ""
                text = f"{where}{count(len(table), 'block')}: {runs(table)}"
                lines.append((name, text, moment.number(name)))
    return lines or [("", "no request holds a block", None)]


def _series(a: Seen, b: Seen, at: int) -> Markup:
    data: dict[str, Any] = {"at": at, "sides": [_numbers(seen) for seen in (a, b)]}
    text = orjson.dumps(data).decode()
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028"))


def _numbers(seen: Seen) -> dict[str, Any]:
    columns, usable = seen.branch.columns, seen.branch.config.num_blocks - 1
    usage = thinned([counts.live / usable if usable else 0.0 for counts in columns.counts])
    waiting = thinned([float(number) for number in columns.waiting])
    running = thinned([float(number) for number in columns.running])
    parts = {"usage": usage, "waiting": waiting, "running": running}
    return {"name": seen.name, **{name: {"at": one.at, "y": one.values} for name, one in parts.items()}}
