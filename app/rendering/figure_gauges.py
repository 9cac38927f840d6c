"""The gauges' data: usage, the usable blocks by state, how full they are, and the series over time."""

from __future__ import annotations

from typing import Any, Final

from app.rendering.moment import Moment
from app.rendering.words import count
from app.services.cursor import BlockCounts
from engine.kv_cache_block import NULL_BLOCK

Data = dict[str, Any]
NAMES: Final = ("usage", "hit", "free", "running", "waiting", "preemptions")


def usage(moment: Moment) -> Data:
    """`kv_cache_usage_perc` now and before, and where the watermark lies on that scale, or why nowhere."""
    pool = moment.pool
    usable = pool.num_blocks - 1
    watermark = moment.cursor.simulation.config.watermark_blocks
    was = moment.applied.before.live / usable if moment.applied and usable else None
    at = 1 - watermark / usable if watermark and usable else None
    return {
        "now": round(pool.get_usage(), 9),
        "was": None if was is None else round(was, 9),
        "watermark_at": at,
        "mark": _no_mark(moment) if at is None else f"watermark at {at:.2f}",
    }


def _no_mark(moment: Moment) -> str:
    """Why the gauge has no mark: an admission may take the last free block (5.2)."""
    return "watermark under 1 block" if moment.cursor.simulation.config.watermark else "no watermark"


def blocks(moment: Moment) -> Data:
    """The usable blocks by state, now and before; with `slots` where all groups have one block size."""
    before = moment.applied.before if moment.applied else moment.counts
    data: Data = {**_counts(moment.counts), "was": _counts(before)}
    sizes = {group.block_size for group in moment.cursor.simulation.config.groups}
    if len(sizes) == 1:
        size = sizes.pop()
        usable = moment.pool.num_blocks - 1
        data["slots"] = {"filled": filled_slots(moment), "held": moment.counts.live * size, "all": usable * size}
    return data


def _counts(counts: BlockCounts) -> Data:
    return {"live": counts.live, "cached": counts.cached, "empty": counts.empty}


def filled_slots(moment: Moment) -> int:
    """Token slots of held blocks whose tokens are computed, a shared block's once.

    A block is shared only when it is full, so that each of its holders beyond the first is a whole block too many.
    """
    size = moment.cursor.simulation.config.groups[0].block_size
    windows = [manager.releases for manager in moment.manager.coordinator.managers]
    filled = 0
    for name, request in moment.scheduler.requests.items():
        computed = request.num_computed_tokens
        full, rest = divmod(computed, size)
        for table, window in zip(moment.manager.get_blocks(name), windows, strict=True):
            if not table:
                continue
            filled += min(computed, len(table) * size)
            if window:
                filled -= size * table[:full].count(NULL_BLOCK)
                filled -= rest if full < len(table) and table[full] == NULL_BLOCK else 0
    return filled - size * moment.cursor.extra_refs


def series(moment: Moment, *, delta: bool) -> Data:
    """Every line over all known moments; in a change only what the last moment appended, if this is it."""
    known = moment.columns.series
    if not delta:
        return {"series": {"end": known.end, **{name: known.lines[name].told() for name in NAMES}}}
    if moment.at != known.end:
        return {}
    added = {name: told for name in NAMES if (told := known.lines[name].told(moment.at))[0]}
    return {"series": {"end": known.end, "from": moment.at - 1, **added}}


def gauge_alts(moment: Moment) -> dict[str, str]:
    """A sentence instead of each picture."""
    counts = moment.counts
    usable = moment.pool.num_blocks - 1
    share = f"{round(moment.pool.get_usage(), 4):g}"
    mark = usage(moment)["mark"]
    told = f"{counts.live} of {count(usable, 'usable block')} held: {share} of the pool is used"
    words = {"usage": f"{told}; {mark}."}
    before = moment.applied.before if moment.applied else counts
    words["blocks"] = (
        f"{counts.live} held, {counts.cached} free but cached, {counts.empty} free and empty; "
        f"before {before.live}, {before.cached} and {before.empty}."
    )
    words["series"] = _series_words(moment, share)
    return words


def _series_words(moment: Moment, share: str) -> str:
    """As "Usage rose from 0.6 to 0.73; the hit rate so far is 11.6 %; 2 run, none wait; nothing was preempted yet."."""
    at, lines = moment.at, moment.columns.series.lines
    usable = moment.pool.num_blocks - 1
    was = moment.applied.before.live if moment.applied else moment.counts.live
    before = f"{round(was / usable, 4) if usable else 0:g}"
    moved = "stays at" if was == moment.counts.live else f"{'rose' if was < moment.counts.live else 'fell'} from"
    usage = f"Usage {moved} {share if was == moment.counts.live else f'{before} to {share}'}"
    rate = lines["hit"].at(at)
    hit = "nothing was looked up yet" if rate < 0 else f"the hit rate so far is {rate:.1%}".replace("%", " %")
    running, waiting, preempted = (int(lines[name].at(at)) for name in ("running", "waiting", "preemptions"))
    lists = f"{running or 'none'} {'runs' if running == 1 else 'run'}, {waiting or 'none'} wait"
    lists += "s" if waiting == 1 else ""
    gone = count(preempted, "preemption") if preempted else "nothing was preempted"
    return f"{usage}; {hit}; {lists}; {gone} so far."
