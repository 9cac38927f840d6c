"""What is handed on as files: the list of downloads, and the page that holds a recording."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.contexts.calls import Call
from app.contexts.moment import View
from app.contexts.pages import Files, PageContext


@dataclass(frozen=True, slots=True)
class DownloadsContext:
    """downloads.html: the files of a branch, on a page of their own."""

    view: View
    files: Files


@dataclass(frozen=True, slots=True)
class RecordedCallContext:
    """recorded_call.html: one call told whole."""

    view: View
    call: Call


@dataclass(frozen=True, slots=True)
class Inlined:
    """The page's own files, to stand in it. Scripts run only where the policy names their hash."""

    policy: str
    """The content security policy: nothing is ever asked of any network."""
    styles: Markup
    early: Markup
    """The script that sets the theme before the first paint."""
    libraries: tuple[Markup, ...]
    """Classic scripts."""
    modules: Markup
    """An import map: every module as a data URL under a name of its own."""
    start: Markup
    """The module script that starts the page."""
    icon: str
    """A data URL."""
    licences: Markup
    """Of the libraries."""


@dataclass(frozen=True, slots=True)
class RecordingContext(PageContext):
    """recording.html: a page that needs no server, at the first of the moments that it holds."""

    inlined: Inlined
    first: int
    last: int
    held: str
    """The frames and all else, as JSON, deflated, in base64."""
    live: str
    """The address of what this is a recording of; "" where none is known that others reach."""
