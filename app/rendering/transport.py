"""Where time stands: the view, the transport and its marks."""

from __future__ import annotations

from typing import Final

from app.contexts import Mark, Tick, Transport, UntilStop, View
from app.rendering.groups import NAMES
from app.rendering.moment import Moment
from app.rendering.words import count, isolated
from app.services.acting import STEP
from app.services.columns import Notable
from app.services.running import CONDITIONS, NOTABLE, Until, recorded
from engine.actions import Abort, Action, AddRequest, ResetPrefixCache, Step
from engine.config import EngineConfig

MARKS: Final = 60
MOST_GROUPS: Final = 3
TICKS: Final = 100
UNTIL: Final = {
    "finish": "a request finishes",
    "preempt": "a request is preempted",
    "refuse": "an allocate_slots returns None",
    "evict": "a cached block is evicted",
    "idle": "the waiting queue is empty",
    "count": "as many steps are done",
}
"""What a run may be told to stop at, in words."""


def view(moment: Moment) -> View:
    """Which moment is shown."""
    summary = config_summary(moment.cursor.simulation.config)
    end = len(moment.actions)
    query = moment.query(moment.at)
    return View(moment.base, moment.title, moment.branch, moment.at, end, query, summary, _makes(moment, end))


def _makes(moment: Moment, end: int) -> str:
    """What an action that isn't recorded here makes: as "This makes a branch from action 5."."""
    branch = f"a branch from {f'action {moment.at}' if moment.at else 'the start'}" if moment.at < end else ""
    if moment.session_id:
        return f"This makes {branch}." if branch else ""
    own = "a session of your own"
    return f"This makes {own}, with {branch}." if branch else f"This makes {own}."


def config_summary(config: EngineConfig) -> str:
    """As "101 blocks of 16 tokens, watermark 5 blocks"."""
    sizes = {group.block_size for group in config.groups}
    blocks = count(config.num_blocks, "block")
    parts = [f"{blocks} of {count(sizes.pop(), 'token')}" if len(sizes) == 1 else blocks]
    if len(config.groups) > 1 or config.groups[0].kind != "full_attention":
        parts.append(_groups(config))
    if config.watermark_blocks:
        parts.append(f"watermark {count(config.watermark_blocks, 'block')}")
    if not config.enable_prefix_caching:
        parts.append("caching off")
    if config.policy != "fcfs":
        parts.append(f"{config.policy} policy")
    if config.num_speculative_tokens:
        parts.append(count(config.num_speculative_tokens, "draft"))
    return ", ".join(parts)


def _groups(config: EngineConfig) -> str:
    """As "full attention and sliding window of 8", or how many groups there are."""
    if len(config.groups) > MOST_GROUPS:
        return f"{len(config.groups)} groups"
    uneven = len({group.block_size for group in config.groups}) > 1
    names = [NAMES[group.kind][0] + (f" of {group.block_size}" if uneven else "") for group in config.groups]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[:-1] else names)


def transport(moment: Moment) -> Transport:
    """The buttons, and the marks around this moment."""
    at, end = moment.at, len(moment.actions)
    first = max(min(at - MARKS // 2, end - MARKS), 0)
    shown = range(first, min(first + MARKS, end))
    return Transport(
        first=moment.query(0) if at else None,
        back=moment.query(at - 1) if at else None,
        forward=moment.query(at + 1) if at < end else None,
        last=moment.query(end) if at < end else None,
        label=f"after {at} of {end}",
        doing=doing(moment, at),
        marks=tuple(_mark(moment, k) for k in shown),
        before=first,
        after=end - shown.stop,
        ticks=_ticks(moment, end) if end > MARKS else (),
        branch=moment.branches[moment.branch].name if moment.branches else moment.branch,
        branches=sum(not node.deleted for node in moment.branches.values()),
        instead=at < end and moment.actions[at] != STEP,
        until=tuple(_until(moment, what) for what in CONDITIONS if what != "count"),
    )


def _until(moment: Moment, what: str) -> UntilStop:
    at, words = recorded(moment.columns, Until(what), moment.at, len(moment.actions)), UNTIL[what]
    kinds: set[str] = NOTABLE.get(what, set())
    sign = "preempted" if what == "preempt" else "idle" if what == "idle" else next(iter(kinds - {"preempted"}))
    if at is None:
        return UntilStop(what, sign, words, None, "", "", "")
    if at == moment.at:
        return UntilStop(what, sign, words, at, "here", "", "")
    told = [one for one in moment.columns.notable.get(at - 1, ()) if one.what in kinds]
    who = [one.request or count(one.count, "hash", "hashes") for one in told]
    more = f" and {len(who) - 1} more" if len(who) > 1 else ""
    return UntilStop(what, sign, words, at, doing(moment, at), f"{who[0]}{more}" if who else "", f"{at - moment.at} on")


def _ticks(moment: Moment, end: int) -> tuple[Tick, ...]:
    """At most `TICKS` of them: neighbours are drawn together."""
    found: dict[int, tuple[int, dict[str, None]]] = {}
    for action, notable in moment.columns.notable.items():
        _, kinds = found.setdefault(action * TICKS // end, (action + 1, {}))
        kinds.update(dict.fromkeys(thing.what for thing in notable))
    return tuple(Tick(at, tuple(kinds)) for at, kinds in found.values())


def doing(moment: Moment, at: int) -> str:
    """What led to the moment `at`: "step 3", "add_request R", "the start"."""
    if not at:
        return "the start"
    action = moment.actions[at - 1]
    label = _label(moment, at - 1, action)
    return f"add_request {isolated(action.id)}" if isinstance(action, AddRequest) else label


def _mark(moment: Moment, k: int) -> Mark:
    action = moment.actions[k]
    notable = moment.columns.notable.get(k, ())
    kinds = {AddRequest: "add", Step: "step", Abort: "abort", ResetPrefixCache: "reset"}
    note = ", ".join(_note(thing) for thing in notable[:3]) + (
        f" and {len(notable) - 3} more" if len(notable) > 3 else ""
    )
    what = tuple(dict.fromkeys(thing.what for thing in notable))
    return Mark(k + 1, moment.query(k + 1), kinds[type(action)], _label(moment, k, action), what, note)


def _label(moment: Moment, k: int, action: Action) -> str:
    match action:
        case AddRequest():
            return f"+ {isolated(action.id)}"
        case Abort():
            return f"abort {isolated(action.id)}"
        case ResetPrefixCache():
            return "reset"
    if k < len(moment.columns):
        return f"step {moment.columns.steps[k + 1]}"
    return "step"


def _note(thing: Notable) -> str:
    if thing.request is None:
        return f"{count(thing.count, 'hash', 'hashes')} evicted"
    return f"{isolated(thing.request)} {thing.what}"
