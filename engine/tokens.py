"""Prompts as people write them, and the token ids they stand for.

A prompt is made of parts; each part stands for one or more spans, that is runs of consecutive token ids. `resolve`
turns parts into spans. Long prompts stay spans until somebody needs the ids.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from engine.errors import InputError, RequestError

RUN_BASE: Final = 2**30
"""The smallest start of a named run."""
RUN_ROOM: Final = 2**30 - 2**24
"""Named runs start in `RUN_BASE .. RUN_BASE + RUN_ROOM - 1`, which leaves 2^24 ids behind each below 2^31."""


@dataclass(frozen=True, slots=True)
class Span:
    """`count` consecutive token ids from `first`; written `[first, count]` (0.3)."""

    first: int
    count: int

    def to_json(self) -> list[int]:
        """`[first, count]`."""
        return [self.first, self.count]


@dataclass(frozen=True, slots=True)
class Own:
    """`tokens` ids of the request's own; written `{"tokens": 148}`."""

    tokens: int

    def to_json(self) -> dict[str, object]:
        """The part as one writes it."""
        return {"tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Shared:
    """The first `tokens` ids of the run that all requests know by `name`; written `{"shared": name, "tokens": 128}`."""

    name: str
    tokens: int

    def to_json(self) -> dict[str, object]:
        """The part as one writes it."""
        return {"shared": self.name, "tokens": self.tokens}


@dataclass(frozen=True, slots=True)
class Continue:
    """The prompt and the output so far of the latest request `id`; written `{"continue": "A"}`."""

    id: str

    def to_json(self) -> dict[str, object]:
        """The part as one writes it."""
        return {"continue": self.id}


@dataclass(frozen=True, slots=True)
class Text:
    """What a tokenizer makes of `text`; written `{"text": "You are a helpful assistant."}`."""

    text: str

    def to_json(self) -> dict[str, object]:
        """The part as one writes it."""
        return {"text": self.text}


Part: TypeAlias = Span | Own | Shared | Continue | Text

Tokenize: TypeAlias = Callable[[str], Sequence[int]]
"""A tokenizer: the token ids of a text. It is passed in; equal texts must give equal ids. It may raise InputError."""


def run_start(name: str) -> int:
    """The first token id of a named run: it depends on nothing but the name."""
    digest = hashlib.sha256(name.encode("utf-8")).digest()
    return RUN_BASE + int.from_bytes(digest[:4], "big") % RUN_ROOM


def resolve(
    prompt: Sequence[Part],
    request_id: str,
    use: int,
    continued: Callable[[str], Iterable[Span]],
    tokenize: Tokenize | None = None,
    where: str = "prompt",
) -> tuple[Span, ...]:
    """The spans that a prompt stands for; neighbours that join are one span.

    Args:
        prompt: the parts.
        request_id: whose prompt it is.
        use: how many times the id has been used in the scenario, this use included.
        continued: gives prompt and output so far of the latest request of an id; it raises if there never was one.
        tokenize: the tokenizer for text parts.
        where: the place of the prompt, for errors about a text part.

    Raises:
        RequestError: a text part, and no tokenizer or no token in it.
        InputError: the tokenizer refuses a text.
    """
    spans: list[Span] = []
    for place, part in enumerate(prompt, start=1):
        match part:
            case Span():
                spans.append(part)
            case Own(tokens):
                spans.append(Span(run_start(f"own/{request_id}/{use}/{place}"), tokens))
            case Shared(name, tokens):
                spans.append(Span(run_start(f"shared/{name}"), tokens))
            case Continue(id):
                spans.extend(continued(id))
            case Text():
                spans.extend(spans_of(_ids_of(part, tokenize, _place_of(prompt, place - 1, where))))
    return joined(spans)


def _place_of(prompt: Sequence[Part], index: int, where: str) -> str:
    """The place of a text part for messages; a prompt of one part may have been written without a list."""
    return f"{where}.text" if len(prompt) == 1 else f"{where}[{index}].text"


def _ids_of(part: Text, tokenize: Tokenize | None, where: str) -> Sequence[int]:
    """What the tokenizer makes of a text; whatever is wrong names the place."""
    if tokenize is None:
        raise RequestError("no_tokenizer", "text parts need a tokenizer", where, "a part in token ids, or a tokenizer")
    try:
        ids = tokenize(part.text)
    except InputError as error:
        raise type(error)(error.code, error.message, where, error.expected) from None
    if not ids:
        raise RequestError("empty_text", "the tokenizer makes no token of this text", where, "at least one token")
    return ids


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same ids in as few spans as possible."""
    result: list[Span] = []
    for span in spans:
        if result and result[-1].first + result[-1].count == span.first:
            result[-1] = Span(result[-1].first, result[-1].count + span.count)
        else:
            result.append(span)
    return tuple(result)


def spans_of(tokens: Iterable[int]) -> tuple[Span, ...]:
    """Token ids as spans; `tokens_of` undoes it."""
    spans: list[Span] = []
    first = end = -1
    for token in tokens:
        if token != end:
            if first >= 0:
                spans.append(Span(first, end - first))
            first = token
        end = token + 1
    return (*spans, Span(first, end - first)) if first >= 0 else ()


def tokens_of(spans: Iterable[Span]) -> list[int]:
    """All token ids of the spans, in order."""
    tokens: list[int] = []
    for span in spans:
        tokens.extend(range(span.first, span.first + span.count))
    return tokens


def tokens_between(spans: Iterable[Span], start: int, stop: int) -> list[int]:
    """`tokens_of(spans)[start:stop]` for 0 <= start, without making the others."""
    tokens: list[int] = []
    for span in spans:
        low, high = max(start, 0), min(stop, span.count)
        if low < high:
            tokens.extend(range(span.first + low, span.first + high))
        start, stop = start - span.count, stop - span.count
        if stop <= 0:
            break
    return tokens


def count_of(spans: Iterable[Span]) -> int:
    """How many token ids the spans hold."""
    return sum(span.count for span in spans)


def least_tokens(prompt: Sequence[Part], tokenize: Tokenize | None = None, where: str = "prompt") -> tuple[int, bool]:
    """The fewest tokens a prompt can have, and whether that is its exact length.

    It isn't where a part continues another request, nor where a text stands and there is no tokenizer.

    Raises:
        InputError: the tokenizer refuses a text.
    """
    exact = True
    tokens = 0
    for index, part in enumerate(prompt):
        match part:
            case Span(_, count) | Own(count) | Shared(_, count):
                tokens += count
            case Text() if tokenize is not None:
                tokens += len(_ids_of(part, tokenize, _place_of(prompt, index, where)))
            case Continue() | Text():
                tokens += 1
                exact = False
    return tokens, exact
