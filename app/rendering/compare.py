"""Two branches side by side at one moment: what differs is marked, in words and in the data of the pictures."""

from __future__ import annotations

from dataclasses import dataclass

from app.contexts import AspectRow, CompareContext, Marked, Setting, Side
from app.rendering.compare_figures import Compared, compare_data
from app.rendering.compare_requests import chosen, compared, here
from app.rendering.figures import as_json
from app.rendering.glossary import GLOSSARY
from app.rendering.groups import group_name
from app.rendering.moment import Moment
from app.rendering.parting import sentence
from app.rendering.transport import doing
from app.rendering.words import count, runs
from app.services.comparing import next_difference, parting
from app.services.session import Branch
from engine.config import EngineConfig
from engine.errors import shown
from engine.kv_cache_block import NULL_BLOCK

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
    names = chosen(a.moment, b.moment)
    told = Compared.of(a.moment, b.moment)

    def query(moment: int) -> str:
        return f"?a={a.moment.branch}&b={b.moment.branch}&at={moment}"

    return CompareContext(
        title=a.moment.title,
        base=a.moment.session_id,
        a=_side("A", a, b, at, names.shown),
        b=_side("B", b, a, at, names.shown),
        at=at,
        end=end,
        doing=doing(a.moment if at <= a.branch.end else b.moment, at),
        first=query(0) if at else None,
        back=query(at - 1) if at else None,
        forward=query(at + 1) if at < end else None,
        last=query(end) if at < end else None,
        parting=sentence(a, b, part),
        here=here(a, b, at, len(told.blocks)),
        parting_query=query(part.at) if part else None,
        next_difference=query(later) if later else None,
        swapped=f"?a={b.moment.branch}&b={a.moment.branch}&at={at}",
        blocks_differ=_blocks_differ(len(told.blocks)),
        aspects=tuple(_aspects(a.moment, b.moment)),
        over=tuple(_over(a.moment, b.moment)),
        more=names.more,
        glossary=GLOSSARY,
        data=as_json(compare_data(a, b, told, at, names.shown)),
    )


def _blocks_differ(number: int) -> str:
    if not number:
        return "the same"
    return f"{count(number, 'block')} {'differs' if number == 1 else 'differ'}"


def _side(letter: str, seen: Seen, other: Seen, at: int, names: list[str]) -> Side:
    mine, theirs = seen.moment, other.moment
    did, usage, free = doing(mine, mine.at), _usage(mine), _free(mine)
    order, their_order = _order(mine), _order(theirs)
    cached = mine.counts.cached
    return Side(
        id=mine.branch,
        letter=letter,
        name=seen.name,
        query=mine.query(mine.at),
        doing=Marked(did, did != doing(theirs, theirs.at)),
        over=f"ends after {seen.branch.end}" if at > seen.branch.end else "",
        settings=tuple(_settings(seen.branch.config, other.branch.config)),
        usage=Marked(usage, usage != _usage(theirs)),
        pool=f"{mine.counts.live} held, {mine.pool.num_free_blocks} free, {cached} of them cached",
        free=Marked(free, not _same_queue(mine, theirs)),
        order=tuple(Marked(text, text not in their_order) for text in order),
        requests=tuple(compared(mine, theirs, name) for name in names),
    )


def _same_queue(a: Moment, b: Moment) -> bool:
    """Whether the same blocks are free in the same order, with a hash or without."""
    numbers = [moment.columns.aspects.numbers["free"][moment.at] for moment in (a, b)]
    return numbers[0] == numbers[1]


def _settings(mine: EngineConfig, theirs: EngineConfig) -> list[Setting]:
    """What the config says otherwise than the other one, in its own order; groups where they are written out."""
    names = [name for name in EngineConfig.options() if getattr(mine, name) != getattr(theirs, name)]
    if not any("groups" in config.to_json() for config in (mine, theirs)):
        names = [name for name in names if name != "groups"]
    return [Setting(name, _value(mine, name)) for name in names]


def _value(config: EngineConfig, name: str) -> str:
    value = getattr(config, name)
    if name == "groups":
        return ", ".join(group_name(config, group) for group in range(len(config.groups)))
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else shown(value)


def _usage(moment: Moment) -> str:
    return f"{moment.pool.get_usage():.2f}"


def _free(moment: Moment) -> str:
    return f"{moment.pool.num_free_blocks} free, {moment.counts.cached} of them hashed"


def _order(moment: Moment) -> list[str]:
    """The free queue's head, and which of it carry a hash."""
    head: list[int] = []
    for block in moment.pool.free_queue:
        if len(head) == HEAD:
            break
        head.append(block)
    hashed = [block for block in head if moment.pool.block_hash[block] is not None]
    more = moment.pool.num_free_blocks - len(head)
    order = f"head first: {runs(head)}" if head else "nothing is free"
    lines = [order + (f" … {more} more" if more else "")]
    return [*lines, f"hashed of these: {runs(hashed)}"] if hashed else lines


def _aspects(a: Moment, b: Moment) -> list[AspectRow]:
    """What they may differ in. Whether they do is told by the aspects' own numbers, not by what is shown of them."""
    mine, theirs = _numbers(a), _numbers(b)
    told = {
        name: a.columns.aspects.numbers[name][a.at] != b.columns.aspects.numbers[name][b.at]
        for name in a.columns.aspects.numbers
    }
    told["usage"] = _share(a) != _share(b)
    parts = (
        ("schedule", "schedule", "tokens scheduled"),
        ("refusals", "refusals", "requests refused or preempted"),
        ("queues", "queues", "running and waiting requests"),
        ("tables", "tables", "blocks in the block tables"),
        ("free", "free queue", "free blocks"),
        ("usage", "usage", "share of the pool that is held"),
    )
    return [AspectRow(key, name, about, mine[key], theirs[key], told[key]) for key, name, about in parts]


def _over(a: Moment, b: Moment) -> list[AspectRow]:
    """What the lines over time stand at."""
    found = []
    for name, about in (("usage", "share of the pool"), ("running", "requests"), ("waiting", "requests")):
        mine, theirs = (moment.columns.series.lines[name].at(moment.at) for moment in (a, b))
        told = [f"{value:.2f}" if name == "usage" else f"{value:g}" for value in (mine, theirs)]
        found.append(AspectRow(name, name, about, told[0], told[1], mine != theirs))
    return found


def _share(moment: Moment) -> float:
    return moment.counts.live / max(moment.pool.num_blocks - 1, 1)


def _numbers(moment: Moment) -> dict[str, str]:
    applied = moment.applied
    calls, preemptions = (applied.trace.calls, applied.trace.preemptions) if applied else ((), ())
    preempted_for = {one.by for one in preemptions}
    refused = sum(not call.granted and call.request not in preempted_for for call in calls)
    running, waiting = len(moment.scheduler.running), moment.columns.waiting[moment.at]
    tables = [table for name in moment.scheduler.requests for table in moment.manager.get_blocks(name)]
    held = sum(len(table) - table.count(NULL_BLOCK) for table in tables)
    return {
        "schedule": str(moment.columns.scheduled[moment.at]),
        "refusals": str(refused + len(preemptions)),
        "queues": f"{running}+{waiting}",
        "tables": str(held),
        "free": str(moment.pool.num_free_blocks),
        "usage": _usage(moment),
    }
