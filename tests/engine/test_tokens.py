"""Parts of prompts and the spans they stand for."""

import pytest

from engine.errors import RequestError
from engine.tokens import Continue, Own, Shared, Span, resolve, run_start, spans_of, tokens_between, tokens_of


def test_named_runs_start_where_their_name_says() -> None:
    # SHA-256("shared/system") starts with the bytes of this number
    assert run_start("shared/system") == 2**30 + 0x4524CF52 % (2**30 - 2**24)
    assert 2**30 <= run_start("own/é/1/1") < 2**31 - 2**24


def no_one(id: str) -> tuple[Span, ...]:
    raise RequestError("unknown_request", f"{id} was never added")


def test_parts_are_resolved_to_spans() -> None:
    prompt = (Own(4), Span(1, 2), Span(3, 4), Shared("system", 8), Own(5))
    own, shared = run_start("own/A/2/1"), run_start("shared/system")
    assert resolve(prompt, "A", 2, no_one) == (
        Span(own, 4),
        Span(1, 6),
        Span(shared, 8),
        Span(run_start("own/A/2/5"), 5),
    )


def test_a_shorter_shared_run_is_the_start_of_a_longer_one() -> None:
    short = tokens_of(resolve((Shared("system", 64),), "A", 1, no_one))
    long = tokens_of(resolve((Shared("system", 128),), "B", 1, no_one))
    assert long[:64] == short


def test_continue_takes_what_the_request_has_so_far() -> None:
    so_far = {"A": (Span(1, 3), Span(7, 2))}
    assert resolve((Continue("A"), Span(9, 1)), "B", 1, so_far.__getitem__) == (Span(1, 3), Span(7, 3))
    with pytest.raises(RequestError):
        resolve((Continue("A"),), "B", 1, no_one)


def test_tokens_and_spans() -> None:
    spans = (Span(5, 3), Span(1, 2), Span(100, 4))
    tokens = [5, 6, 7, 1, 2, 100, 101, 102, 103]
    assert tokens_of(spans) == tokens
    assert tokens_of(spans_of(tokens)) == tokens
    for start in range(11):
        for stop in range(11):
            assert tokens_between(spans, start, stop) == tokens[start:stop]
    assert tokens_between((Span(0, 2**62),), 2**61, 2**61 + 2) == [2**61, 2**61 + 1]
