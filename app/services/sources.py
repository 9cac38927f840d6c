"""Where a view comes from, as its address says: a stored session, or a scenario that opening doesn't store.

::

    s/ID         a session
    story/SLUG   a story of the gallery, or the first lesson
    p/CODE/      a permalink; ends in a slash, so that its code doesn't stand in every relative link
    l/KEY        a short link, which is a permalink that the server keeps
    new          the blank session
    embed/…      each of them for a frame on somebody's page: looking only
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.gallery import Story, every_story
from app.services.blank import blank_scenario
from app.services.errors import UnknownLinkError, UnknownStoryError
from app.services.links import decode
from app.tokenizer import tokenize
from engine.scenario import Limits, Scenario

SESSION: Final = "s"
STORY: Final = "story"
PERMALINK: Final = "p"
SHORT: Final = "l"
NEW: Final = "new"
EMBED: Final = "embed/"
OPEN: Final = r"(?:s|story|p|l)/[^/]+|new"
"""A source that is not embedded, in an address."""
SOURCE: Final = re.compile(rf"/((?:embed/)?(?:{OPEN}))(?:/|\Z)")
UNTITLED: Final = "Untitled"


@dataclass(frozen=True, slots=True)
class Source:
    """The first part of an address, below the server's root."""

    kind: str
    """s, story, p, l or new."""
    name: str = ""
    """The session's id, the story's slug, the link's code or key; "" for new."""
    embedded: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether it is a session."""
        return self.kind == SESSION

    @property
    def page(self) -> str:
        """Where its page is, below the root."""
        path = self.kind if self.kind == NEW else f"{self.kind}/{self.name}"
        return f"{EMBED if self.embedded else ''}{path}{'/' if self.kind == PERMALINK else ''}"

    @property
    def base(self) -> str:
        """What relative URLs on its page start with: "ID/", or "" where the page's address ends in a slash."""
        return "" if self.kind == PERMALINK else f"{self.name or self.kind}/"

    @property
    def from_below(self) -> str:
        """The relative URL of its page from an address one below, such as that of a form."""
        return f"../{self.base[:-1]}" if self.base else "./"

    @property
    def key(self) -> str:
        """What it is kept by in memory: the same for all addresses of one thing. A session's is its id."""
        if self.is_stored:
            return self.name
        name = hashlib.sha256(self.name.encode()).hexdigest() if self.kind == PERMALINK else self.name
        return f"{self.kind}/{name}"

    @property
    def opened(self) -> Source:
        """The same thing with everything around it."""
        return Source(self.kind, self.name)


def source_of(path: str) -> Source:
    """The source in the first part of a path without its leading slash, as `embed/s/x`."""
    embedded = path.startswith(EMBED)
    kind, _, name = path.removeprefix(EMBED if embedded else "").partition("/")
    return Source(kind, name, embedded)


def source_in(path: str) -> Source | None:
    """The source in any path below the root, also one that no route takes."""
    found = SOURCE.match(path)
    return source_of(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Origin:
    """What a source that nothing stores holds: a scenario, and where to look at first."""

    source: Source
    scenario: Scenario
    at: int = 0
    select: str = ""
    """ "block:3", "request:A" or ""."""
    story: Story | None = None

    @property
    def title(self) -> str:
        """The scenario's, or a word for the lack of one."""
        return self.scenario.title or UNTITLED


def origin_of(source: Source, limits: Limits, code_of: Callable[[str], str | None]) -> Origin:
    """Read a source that is no session. Nothing is run; a long text in it may take a second.

    Args:
        source: where from.
        limits: what a permalink may hold.
        code_of: the code that a short link stands for; None for an unknown key.

    Raises:
        UnknownStoryError, UnknownLinkError: there is none of this name.
        InputError: a permalink that is broken, too large, or holds no scenario.
    """
    source = source.opened
    if source.kind == NEW:
        return Origin(source, blank_scenario())
    if source.kind == STORY:
        story = every_story().get(source.name)
        if story is None:
            raise UnknownStoryError("There is no story of this name.", "story")
        return Origin(source, story.scenario, story=story)
    code = source.name if source.kind == PERMALINK else code_of(source.name)
    if code is None:
        raise UnknownLinkError("Nobody has made a short link of this name, or it was mistyped.", "link")
    link = decode(code, limits, tokenize)
    return Origin(source, link.scenario, link.at, link.select)
