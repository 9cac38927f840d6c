"""The gallery's stories: small scenarios, each with a point, and the moments at which one sees it.

A story is one file in `scenarios/`: `{"story", "look_at", "stops": [{"at", "select", "note"}], "scenario"}`. The files
are ours, so what is wrong in one is a bug and fails an assertion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from engine.scenario import Scenario, loads, parse_scenario

FOLDER: Final = Path(__file__).resolve().parent / "scenarios"
LESSON: Final = "one-call"
"""The first lesson, which the gallery shows above its stories."""
LESSON_TOPIC: Final = "The first lesson"

TOPICS: Final = {
    "Prefix cache": (
        "cached-prompt",
        "same-step-sharing",
        "four-owners",
        "duplicates",
        "cache-salt",
        "next-turn",
        "newest-token",
        "reset-refused",
    ),
    "Eviction": ("usage-zero", "free-queue-order", "tail-first"),
    "Admission": ("block-usage", "watermark", "head-of-line", "prompt-too-large", "long-prefill-threshold"),
    "Preemption": ("preemption", "priority-victim", "gate-off"),
    "Drafts": ("drafts-not-cached", "rejected-drafts", "eagle-drop"),
    "Windows and Mamba": ("window-holes", "partial-hit"),
}
"""Topic -> slugs, both in the order of the gallery; a slug is the name of a file."""

TELLING: Final = {
    LESSON: 2,
    "cached-prompt": 2,
    "same-step-sharing": 1,
    "four-owners": 1,
    "duplicates": 2,
    "cache-salt": 2,
    "next-turn": 3,
    "newest-token": 1,
    "reset-refused": 0,
    "usage-zero": 1,
    "free-queue-order": 2,
    "tail-first": 2,
    "block-usage": 0,
    "watermark": 1,
    "head-of-line": 0,
    "prompt-too-large": 0,
    "long-prefill-threshold": 1,
    "preemption": 1,
    "priority-victim": 1,
    "gate-off": 1,
    "drafts-not-cached": 1,
    "rejected-drafts": 1,
    "eagle-drop": 1,
    "window-holes": 2,
    "partial-hit": 1,
}
"""Slug -> which of its stops tells most at a glance: the gallery draws the pool there, and opens the story there."""

SELECTION: Final = re.compile(r"(block:\d+|request:.+)?")


@dataclass(frozen=True, slots=True)
class Stop:
    """A moment of a story that is worth a look."""

    at: int
    """K: actions executed."""
    select: str
    """ "block:3", "request:ada", or "" for nothing."""
    note: str
    """What one sees there, in one plain sentence."""


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario that shows one thing."""

    slug: str
    topic: str
    title: str
    story: str
    """What happens and why, in a few plain sentences."""
    look_at: str
    """Where to look, in one sentence."""
    stops: tuple[Stop, ...]
    """In the order of time; the last ones show the point."""
    scenario: Scenario

    @property
    def telling(self) -> Stop:
        """The stop that the gallery draws."""
        return self.stops[TELLING[self.slug]]


@cache
def every_story() -> Mapping[str, Story]:
    """The lesson and every story by slug; read once."""
    return {story.slug: story for story in (load_lesson(), *load_stories())}


def load_lesson() -> Story:
    """The first lesson, "One call, traced"."""
    return read_story(LESSON, LESSON_TOPIC)


def load_stories() -> tuple[Story, ...]:
    """Every story, in the gallery's order. Reads and checks all files: the caller keeps the result."""
    stories = tuple(read_story(slug, topic) for topic, slugs in TOPICS.items() for slug in slugs)
    listed = {story.slug for story in stories}
    assert len({story.title for story in stories}) == len(listed) == len(stories), "a slug or a title stands twice"
    unlisted = {path.stem for path in FOLDER.glob("*.json")} - listed - {LESSON}
    assert not unlisted, f"no topic lists {', '.join(sorted(unlisted))}"
    assert set(TELLING) == {*listed, LESSON}, "a story without a telling stop"
    return stories


def read_story(slug: str, topic: str) -> Story:
    """One story from its file."""
    written = _fields(loads((FOLDER / f"{slug}.json").read_bytes()), ("story", "look_at", "stops", "scenario"), slug)
    scenario = parse_scenario(written["scenario"])
    assert scenario.title, f"{slug} has no title"
    assert isinstance(written["stops"], list), f"{slug}: stops"
    stops = tuple(_stop(stop, slug) for stop in written["stops"])
    moments = [stop.at for stop in stops]
    assert moments, f"{slug} has no stop"
    assert moments == sorted(moments), f"{slug}: stops out of order"
    assert 0 <= moments[0] <= moments[-1] <= len(scenario.actions), f"{slug}: a stop that does not exist"
    return Story(
        slug,
        topic,
        scenario.title,
        _text(written, "story", slug),
        _text(written, "look_at", slug),
        stops,
        scenario,
    )


def _stop(obj: object, slug: str) -> Stop:
    written = _fields(obj, ("at", "select", "note"), f"{slug}: stops")
    at, select = written["at"], written["select"]
    assert isinstance(at, int), f"{slug}: at"
    assert isinstance(select, str), f"{slug}: select"
    assert SELECTION.fullmatch(select), f"{slug}: select {select}"
    return Stop(at, select, _text(written, "note", slug))


def _fields(obj: object, keys: tuple[str, ...], where: str) -> dict[str, object]:
    """An object that has exactly these keys, in this order."""
    assert isinstance(obj, dict), where
    assert tuple(obj) == keys, f"{where}: {', '.join(obj)}"
    return obj


def _text(written: dict[str, object], key: str, slug: str) -> str:
    text = written[key]
    assert isinstance(text, str), f"{slug}: {key}"
    assert text, f"{slug}: {key} is empty"
    return text
