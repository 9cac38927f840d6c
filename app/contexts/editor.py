"""The editor of scenarios."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """Something that is wrong in the text. Where it is about all of it, `line` is 0."""

    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    length: int
    """Of what is wrong, in characters, within the line."""
    where: str
    """The path, as `actions[3].prompt[0].tokens`; "" where line and column are all there is."""
    words: str
    before: str
    """The line around it, shortened: before, the wrong part itself, and behind it."""
    marked: str
    behind: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of the text came to: a summary where all is right, else what is wrong."""

    summary: str = ""
    problems: tuple[ProblemRow, ...] = ()
    more: bool = False
    """Whether there may be further ones that are not told."""
    note: str = ""
    """What was changed in a file."""


@dataclass(frozen=True, slots=True)
class EditorContext:
    """editor.html: the text of a scenario, to be checked and opened as a session of the reader's own."""

    title: str | None
    """Of the session, story or link whose scenario it is; None for a new one."""
    back: str
    """The relative URL of where the reader comes from."""
    query: str
    """Of the branch, for the download."""
    at: int
    """The moment at which the new session opens."""
    text: str
    verdict: Verdict | None
    """None where nothing was checked yet."""


@dataclass(frozen=True, slots=True)
class VerdictContext:
    """verdict.html: the verdict alone, for a script."""

    verdict: Verdict
