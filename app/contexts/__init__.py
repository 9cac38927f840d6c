"""What templates see: each page and partial has one frozen dataclass, and nothing else reaches it but `static(path)`.

Words are made by the server, pictures by the client: nothing here is a colour, a position or markup. Numbers named
`number` are a request's number in order of first add; its hue is `number % 8`.

URLs are relative to the page's own, so that a frame holds the same bytes wherever it is shown: a link to another moment
is `?branch=main&at=3`, everything else starts with `view.base`.
"""

from app.contexts.calls import Call, Calls, CallTab, Chip, ChipRow, Formula, Next, Stage, Term, UnitBar, UnitPart
from app.contexts.compare import CompareContext, CompareRow, Line, Side
from app.contexts.config import ConfigContext, ConfigField, ConfigGroup, ConfigSection
from app.contexts.moment import (
    BarPart,
    FinishedRow,
    Log,
    Mark,
    Piece,
    RequestRow,
    Requests,
    Sentence,
    Tick,
    Transport,
    View,
    Words,
)
from app.contexts.pages import (
    AbortForm,
    BlockContext,
    BranchesContext,
    BranchRow,
    Composer,
    DocsContext,
    ErrorContext,
    Field,
    FormErrorContext,
    FrameContext,
    HashLine,
    LifeEvent,
    Notice,
    Owner,
    PageContext,
    RunContext,
    Variant,
)

__all__ = [
    "AbortForm",
    "BarPart",
    "BlockContext",
    "BranchRow",
    "BranchesContext",
    "Call",
    "CallTab",
    "Calls",
    "Chip",
    "ChipRow",
    "CompareContext",
    "CompareRow",
    "Composer",
    "ConfigContext",
    "ConfigField",
    "ConfigGroup",
    "ConfigSection",
    "DocsContext",
    "ErrorContext",
    "Field",
    "FinishedRow",
    "FormErrorContext",
    "Formula",
    "FrameContext",
    "HashLine",
    "LifeEvent",
    "Line",
    "Log",
    "Mark",
    "Next",
    "Notice",
    "Owner",
    "PageContext",
    "Piece",
    "RequestRow",
    "Requests",
    "RunContext",
    "Sentence",
    "Side",
    "Stage",
    "Term",
    "Tick",
    "Transport",
    "UnitBar",
    "UnitPart",
    "Variant",
    "View",
    "Words",
]
