"""Pages, frames, cards and forms: what each template is given."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from app.contexts.calls import Calls
from app.contexts.glossary import MeaningGroup
from app.contexts.moment import Log, Requests, Transport, View, WhyLink, Words


@dataclass(frozen=True, slots=True)
class RunUnderWay:
    """A run that goes on at the end of a branch: it can be stopped, and asked how it gets on."""

    text: str
    branch: str
    """Where it runs."""
    is_beside: bool
    """It is another branch than the page's."""
    is_followed: bool
    """The page stands where it began and goes to its end with it."""
    """Whether that is another branch than the page's."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the reader; `query` leads on, named by `link`. Without a text it only tells of a run."""

    text: str
    kind: str = "info"
    """info or error."""
    link: str = ""
    query: str = ""
    compare: str = ""
    """The query of a comparison with the branch that was left."""
    run: RunUnderWay | None = None
    """A run that is under way in this session, of this branch rather than another."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form: what is in it now, and what is wrong with it ("" if nothing)."""

    name: str
    label: str
    value: str
    hint: str
    kind: str = "text"
    """text, number, area (lines of text), checkbox (value "on" or "") or choice (value "", "yes" or "no")."""
    error: str = ""
    more: bool = False
    """Belongs under "more options"."""
    short: str = ""
    """The hint in a word or two, for the empty field itself."""


@dataclass(frozen=True, slots=True)
class Composer:
    """The form that adds a request. `error` is what belongs to no field."""

    fields: tuple[Field, ...]
    error: str = ""
    draft: str = ""
    """What the request would be now, where that was asked for."""

    @property
    def failed(self) -> bool:
        """Whether it shows an error."""
        return bool(self.error) or any(field.error for field in self.fields)

    @property
    def opened(self) -> bool:
        """Whether what is under "more options" shows: something is wrong there, or lines were typed."""
        return any(field.error or (field.kind == "area" and field.value) for field in self.fields if field.more)


@dataclass(frozen=True, slots=True)
class AbortForm:
    """The form that aborts a request, now or while the next step runs."""

    ids: tuple[str, ...]
    """Living requests, at most 200: running, then waiting."""
    error: str = ""
    chosen: str = ""
    """What was chosen when it was refused; it stays chosen."""


@dataclass(frozen=True, slots=True)
class FrameContext:
    """frame.html: everything that a move in time changes; the same for everybody.

    Where `delta`, a form is None that is the same as at the moment before, but for its hidden `branch` and `at`.
    """

    view: View
    transport: Transport
    requests: Requests
    calls: Calls
    log: Log
    composer: Composer | None
    abort: AbortForm | None
    notice: Notice | None
    why_usage: WhyLink | None
    """Offered when usage is 0 and something is cached."""
    figures: Markup
    """The figures' data as JSON that may stand in a script element."""
    delta: bool
    """Whether `figures` is a change on top of the moment before."""


@dataclass(frozen=True, slots=True)
class TourStop:
    """A moment of a story that is worth a look; `select`: "block:3", "request:A" or ""."""

    at: int
    select: str
    query: str
    note: str
    current: bool


@dataclass(frozen=True, slots=True)
class Tour:
    """A story, told beside the workspace."""

    story: str
    look_at: str
    stops: tuple[TourStop, ...]
    where: str
    """ "2 of 4" at a stop, else "4 stops"."""
    back: str | None
    """The query of the stop before this moment."""
    next: str | None


@dataclass(frozen=True, slots=True)
class Files:
    """partials/downloads.html: what stands in the fields of a recording's range, and what is wrong with it."""

    first: str
    last: str
    most: int
    """Actions that a recording holds."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ShareContext:
    """share.html: links to this moment; a fragment for htmx, a page otherwise. All of them are absolute."""

    view: View
    permalink: str
    """ "" for a scenario that is too large for a link."""
    is_long: bool
    """It has more characters than some programs take."""
    short: str
    """ "" while there is none."""
    session: str
    """Of a stored session: its own address; "" otherwise."""
    embed: str
    qr_path: str
    """Path data of the QR code of the short link, or else of the permalink; "" if there is none."""
    qr_size: int
    qr_reason: str
    """Why there is none."""
    loopback: bool
    """Only this machine gets to these addresses."""
    select: str
    files: Files
    whole_page: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class WallContext:
    """wall.html: a link as a QR code that fills the window."""

    title: str
    url: str
    qr_path: str
    """ "" if the link is too long for a code."""
    qr_size: int
    qr_reason: str
    loopback: bool


@dataclass(frozen=True, slots=True)
class PageContext:
    """page.html: the frame and what stands around it."""

    frame: FrameContext
    owner: bool
    """Whether this reader may act (on what is no session everybody may: acting makes a session of his own)."""
    embedded: bool
    """Whether it is a frame on somebody's page."""
    here: str
    """The relative URL of the workspace: "" on its own page."""
    base: str
    """What other relative URLs start with, as `View.base`, from the address that was asked for."""
    page: str
    """Where it is, with everything around it, below the server's root."""
    select: str
    """What a link selects where the address says nothing: "block:3", "request:A" or ""."""
    tour: Tour | None
    glossary: tuple[MeaningGroup, ...]


@dataclass(frozen=True, slots=True)
class HashLine:
    """A hash of a block: 16 hex digits, its parent's, and the prefix it stands for."""

    hash: str
    parent: str
    """ "" for the first of a chain."""
    group: int
    tokens: str
    """ "tokens 112 to 127", with the group where there are several."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A request that holds a block, and where in its table."""

    id: str
    number: int
    entry: str
    """ "entry 7", with the group where there are several."""


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """What happened to a block in one action."""

    at: int
    """The moment after it."""
    label: str
    """ "step 3", or "action 7" for what is no step."""
    query: str
    words: Words


@dataclass(frozen=True, slots=True)
class BlockContext:
    """block.html (a fragment, or a page of its own): the card of one block."""

    view: View
    block: int
    state: str
    """null, free and empty, free but cached, held, or shared."""
    ref_cnt: int
    place: str
    """Its place in the free queue in words; "" when it is not in it."""
    hashes: tuple[HashLine, ...]
    owners: tuple[Owner, ...]
    life: tuple[LifeEvent, ...]
    """The latest 100, newest last."""
    life_before: int
    """Earlier ones that are not listed."""
    whole_page: bool


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """error.html: a page that says what is wrong and where to go on."""

    status: int
    title: str
    message: str
    where: str
    """The place in a scenario; "" if it is none."""
    expected: str
    link: str
    href: str
    embedded: bool
    """Whether it stands in a frame on somebody's page."""


@dataclass(frozen=True, slots=True)
class DocsContext:
    """docs.html: the API, shown by Swagger UI. It needs nothing but static files."""


@dataclass(frozen=True, slots=True)
class FormErrorContext:
    """form_error.html: the answer to htmx when an action is refused: words beside the field, what was typed kept."""

    view: View
    form: str
    """Which form: add, abort, step, run or reset."""
    composer: Composer
    abort: AbortForm
    notice: Notice | None


@dataclass(frozen=True, slots=True)
class RunContext:
    """run.html: how a run gets on, for htmx; its end is told by a frame where the page shows its branch."""

    view: View
    transport: Transport | None
    """The time line, which grows with the run; None where another branch does."""
    notice: Notice | None


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A branch in the list of them; `query` leads to it, `from_query` to where it left its parent."""

    id: str
    name: str
    query: str
    end: int
    origin: str
    """ "leaves main after 5", "main under another config", "the first"."""
    summary: str
    """Its config where it is its own; "" otherwise."""
    depth: int
    """How many living branches it hangs below."""
    chosen: bool
    compare: str | None
    """The query of its comparison with the chosen one."""
    left_at: int
    """Where it left its parent; 0 for the first, and on another config."""
    up: int
    """How many rows above its parent stands; 0 where that is not in the list."""
    signs: tuple[BranchSign, ...]
    """What was notable of its own, as far as it is known."""


@dataclass(frozen=True, slots=True)
class BranchSign:
    """Something notable: finished, refused, preempted or evicted, at a moment, and so on until another."""

    what: str
    at: int
    until: int


@dataclass(frozen=True, slots=True)
class BranchesContext:
    """branches.html: all branches of a session; a fragment for htmx, a page otherwise."""

    view: View
    rows: tuple[BranchRow, ...]
    longest: int
    """Actions of the longest of them, at least 1."""
    more: int
    """Branches that are not listed."""
    name: str
    """Of the chosen one."""
    variants: tuple[Variant, ...]
    owner: bool
    stored: bool
    """Whether it is a session, whose branches can be renamed and deleted."""
    whole_page: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """One knob that "what if" turns: its present value and what to turn it to at first."""

    knob: str
    label: str
    value: str
    proposal: str
    choices: tuple[str, ...] = ()
    """The only values there are, where it is no number."""
