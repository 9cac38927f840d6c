"""A recording: the frame of each moment as it is sent live, and what stands in for the server beside them."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

import orjson

from app.contexts import FrameContext, RecordedCallContext
from app.rendering.calls import call_context
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.rendering.notices import cut_short
from app.rendering.recorded_cards import RecordedCards
from app.rendering.transport import view
from app.services.cursor import Cursor
from app.services.session import SLICE_SECONDS, Session
from engine.errors import LimitError

Render = Callable[[str, object], str]
"""A template and its context as a fragment, as it is sent to a page of the same source."""

ROWS: Final = 100
"""Of each list of requests: nobody can be asked for more."""
MAX_ACTIONS: Final = 500
MAX_BYTES: Final = 20_000_000
"""Of the data, as they stand in the file."""
MAX_INFLATED: Final = 150_000_000
MAX_CALLS: Final = 8_000_000
"""Characters of calls beside those that the frames tell; what is more is left out."""
ENOUGH: Final = "a shorter range"


def check_length(first: int, last: int) -> None:
    """Refuse more actions than a recording holds.

    Raises:
        LimitError: these are more.
    """
    if last - first > MAX_ACTIONS:
        message = f"a recording holds at most {MAX_ACTIONS} actions, and these are {last - first}"
        raise LimitError("over_limit", message, "to", f"at most {first + MAX_ACTIONS}")


class Recording:
    """Takes the moments `first` to `last` of a branch that nobody else uses, in slices of CPU time."""

    def __init__(self, session: Session, cursor: Cursor, last: int, render: Render) -> None:
        """From the moment where `cursor` stands, which moves on."""
        self.session, self.cursor, self.first, self.last = session, cursor, cursor.at, last
        self.page = frame(self._moment(), rows=ROWS)
        """The frame of the first moment."""
        self.spent = 0.0
        self._render = render
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        self._parts: list[bytes] = []
        self._size = self._inflated = self._beside = 0
        self._calls: dict[str, dict[str, str]] = {}
        self._cards = RecordedCards(self._moment())
        self._write(b'{"first":%d,"frames":[' % self.first)
        self._take(None)

    @property
    def is_done(self) -> bool:
        """Whether it holds every moment."""
        return self.cursor.at == self.last

    def slice(self) -> None:
        """Some more moments.

        Raises:
            LimitError: the file grows too large.
        """
        start = time.thread_time()
        while not self.is_done and time.thread_time() - start < SLICE_SECONDS:
            at = self.cursor.at
            self.session.branch.advance(self.cursor, at + 1)
            self._cards.add(self._moment())
            self._write(b",")
            self._take(at)
        self.spent += time.thread_time() - start

    def packed(self) -> str:
        """All of it, once it is done: JSON, raw deflate, base64.

        Raises:
            LimitError: the file is too large.
        """
        rest: dict[str, Any] = {"calls": self._calls, "cards": self._cards.told(self._moment())}
        self._write(b"]," + orjson.dumps(rest)[1:])
        self._parts.append(self._deflate.flush())
        return base64.b64encode(b"".join(self._parts)).decode()

    def _moment(self) -> Moment:
        return Moment.of(self.session, self.cursor)

    def _take(self, start: int | None) -> None:
        """The frame of this moment: a change on top of `start`, or a whole one."""
        moment = self._moment()
        context = frame(moment, start, notice=cut_short(self.session, moment, moment.at), rows=ROWS)
        self._write(orjson.dumps(self._render("frame.html", context)))
        self._take_calls(moment, context)

    def _take_calls(self, moment: Moment, context: FrameContext) -> None:
        """The calls of this step that the frame only names."""
        untold = [tab.index for tab in context.calls.tabs if not tab.told]
        if not untold or moment.applied is None or self._beside > MAX_CALLS:
            return
        told, trace = view(moment), moment.applied.trace
        texts = {
            str(index): self._render(
                "recorded_call.html", RecordedCallContext(told, call_context(moment, trace, index))
            )
            for index in untold
        }
        self._beside += sum(map(len, texts.values()))
        self._calls[str(moment.at)] = texts

    def _write(self, data: bytes) -> None:
        self._parts.append(self._deflate.compress(data))
        self._inflated += len(data)
        self._size += len(self._parts[-1])
        if self._size * 4 / 3 > MAX_BYTES or self._inflated > MAX_INFLATED:
            message = (
                f"the file would be larger than {MAX_BYTES // 1_000_000} MB: it is full at action {self.cursor.at}"
            )
            raise LimitError("over_limit", message, "to", ENOUGH)
