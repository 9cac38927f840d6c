"""What the editor says of a text: where it leads, or what is wrong with it and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.contexts import ProblemRow, Verdict
from app.rendering.words import count, told
from app.services.checking import MOST_PROBLEMS, Problem
from app.services.json_place import Mark, line_at
from app.services.trial import Trial
from engine.errors import printable

BEFORE: Final = 40
"""Characters of a line that are shown before what is wrong."""
MARKED: Final = 60
BEHIND: Final = 60


def wrong(text: str, problems: Sequence[Problem], note: str = "") -> Verdict:
    """What is wrong, in the order of the text."""
    return Verdict("", tuple(_row(text, problem) for problem in problems), len(problems) >= MOST_PROBLEMS, note)


def right(trial: Trial, note: str = "") -> Verdict:
    """As "15 actions, 101 blocks; replays to: 2 running, 1 waiting, 78 of 100 blocks held."."""
    scheduler, actions = trial.simulation.scheduler, len(trial.scenario.actions)
    blocks = trial.scenario.config.num_blocks
    size = f"{count(actions, 'action')}, {count(blocks, 'block')}"
    free = scheduler.kv_cache_manager.block_pool.num_free_blocks
    waiting = len(scheduler.waiting) + len(scheduler.loads.holding)
    where = f"{len(scheduler.running)} running, {waiting} waiting, {blocks - 1 - free} of {blocks - 1} blocks held"
    if not trial.is_done:
        return Verdict(f"{size}. In the time that a check may take, {trial.at} of them replay to: {where}.", note=note)
    return Verdict(f"{size}; replays to: {where}.", note=note)


def _row(text: str, problem: Problem) -> ProblemRow:
    error, mark = problem.error, problem.mark
    if mark is None:
        return ProblemRow(0, 0, 0, error.where, told(error), "", "", "")
    where = "" if error.where.startswith("line ") else error.where
    return ProblemRow(mark.line, mark.column, mark.end - mark.start, where, told(error), *_excerpt(text, mark))


def _excerpt(text: str, mark: Mark) -> tuple[str, str, str]:
    line = line_at(text, mark.line)
    start, end = mark.column - 1, mark.column - 1 + mark.end - mark.start
    first = max(start - BEFORE, 0)
    before = ("…" if first else "") + line[first:start].lstrip()
    marked = line[start:end] if end - start <= MARKED else line[start : start + MARKED - 1] + "…"
    behind = line[end : end + BEHIND] + ("…" if len(line) > end + BEHIND else "")
    return _visible(before), _visible(marked), _visible(behind)


def _visible(piece: str) -> str:
    """What doesn't print, as escapes; shortened already."""
    return "".join(char if char.isprintable() else printable(char) for char in piece)
