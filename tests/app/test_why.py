"""Why? cards: waiting, hit, preempted, usage; each fact with a way to the step that it tells of."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.settings import Settings
from tests.app.reading import HTMX, LESSON, tags_of, text_of
from tests.app.scenarios import EVICTION, PREEMPTION, STEP, add, shared, stored


def why(client: TestClient, page: str, about: str, request: str = "", at: int | None = None) -> Response:
    moment = "" if at is None else f"&at={at}"
    answer = client.get(f"{page}/why?branch=main{moment}&about={about}&id={quote(request)}", headers=HTMX)
    assert answer.status_code == 200, text_of(answer)
    return answer


def moments(answer: Response) -> list[str]:
    """Where its links lead."""
    links = [attributes.get("href") or "" for tag, attributes in tags_of(answer) if tag == "a"]
    return [link for link in links if link.startswith("?")]


# ---- waiting


def test_refused_with_the_shortfall(client: TestClient) -> None:
    answer = why(client, LESSON, "waiting", "second", 15)
    words = text_of(answer)
    assert "second was refused its blocks: 21 more free blocks would have been enough." in words
    assert "second asked for 38 blocks for its whole sequence, 5 must stay behind; 22 were free." in words
    assert "holder 60, R 20; 2 of them are counted more than once, being shared." in words
    assert moments(answer) == ["?branch=main&at=15"]


def test_not_its_turn(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 20), STEP, add("b", 20), add("c", 4), STEP], num_blocks=8)
    words = text_of(why(client, page, "waiting", "c"))
    assert "c is not at its turn: admission stopped before it, at b, and nobody is passed over." in words
    assert "1 request before it: b." in words
    assert "b asked for 5 blocks" in words


def test_it_has_just_come(client: TestClient) -> None:
    assert "second has just come: no step has run since." in text_of(why(client, LESSON, "waiting", "second", 14))


def test_a_later_action_that_is_no_step(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 20), STEP, add("b", 20), STEP, add("c", 4)], num_blocks=8)
    words = text_of(why(client, page, "waiting", "b"))
    assert "b was refused its blocks: 4 more free blocks would have been enough." in words
    assert "c has just come" in text_of(why(client, page, "waiting", "c"))


def test_it_can_never_fit(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 40), STEP])
    assert "it can never fit: not even all 8 usable blocks would be enough" in text_of(
        why(client, page, "waiting", "a")
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_num_seqs": 1}, "b was not admitted: 1 request run already, which is max_num_seqs."),
        ({"max_num_batched_tokens": 8}, "b was not admitted: the step's 8 tokens were spent on others."),
    ],
)
def test_other_obstacles(client: TestClient, settings: Settings, config: dict[str, object], words: str) -> None:
    page = stored(settings, [add("a", 8), add("b", 8), STEP], **config)
    assert words.replace("1 request run", "1 request runs") in text_of(why(client, page, "waiting", "b"))


def test_after_a_preempting_step(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [*PREEMPTION[:5], add("c", 1), STEP], num_blocks=8)
    at = next(at for at in range(3, 8) if "Why preempted?" in text_of(client.get(f"{page}?at={at}")))
    words = text_of(why(client, page, "waiting", "b", at))
    assert "b was preempted in the last step, and such a step admits nobody." in words
    assert "It was preempted to make room for a." in words


def test_a_load_under_way(client: TestClient, settings: Settings) -> None:
    external = {"tokens": 8, "async": True, "steps": 3}
    page = stored(settings, [add("a", 20, external=external), STEP])
    assert "a has its blocks and waits for its load from outside." in text_of(why(client, page, "waiting", "a"))


# ---- hit


def test_evicted_by_whom_and_when(client: TestClient, settings: Settings) -> None:
    page = stored(settings, EVICTION, num_blocks=7)
    answer = why(client, page, "hit", "c")
    words = text_of(answer)
    assert "Why did c hit 0 tokens and not more?" in words
    assert "Entry 0 of its table, tokens 0 to 3, has the hash" in words
    assert "got this hash, full with tokens of a." in words
    assert "b needed a new block" in words
    assert moments(answer) == ["?branch=main&at=2", "?branch=main&at=4"]
    assert any("data-block" in attributes for _, attributes in tags_of(answer))


def test_others_go_on_differently(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", shared(8), 9), STEP, add("b", shared(8), 9), STEP], num_blocks=40)
    words = text_of(why(client, page, "hit", "b"))
    assert "b found 8 of its 17 tokens in 2 cached blocks." in words
    assert "Entry 2 of its table, tokens 8 to 11" in words
    assert "It was never stored. Block 3 of a has other tokens behind token 7." in words


def own(first: int, count: int) -> list[Any]:
    return [{"shared": "s", "tokens": 6}, [first, count]]


APART: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"prompt": own(100, 6)},
        {"prompt": own(200, 6)},
        "Block 2 of a has the same 2 tokens at first and others from token 6 on: only a whole block can be hit.",
    ),
    (
        {"prompt": own(100, 6), "cache_salt": "x{}"},
        {"prompt": own(100, 6)},
        "Block 1 of a has the same 4 tokens with the cache_salt x{} instead of none, and that is in the hash too.",
    ),
    (
        {"prompt": own(100, 6)},
        {"prompt": own(100, 6), "lora": "tuned"},
        "Block 1 of a has the same 4 tokens with no LoRA adapter instead of tuned, and that is in the hash too.",
    ),
    (
        {"prompt": own(100, 6), "lora": "tuned", "cache_salt": "s"},
        {"prompt": [[900, 12]], "lora": "tuned"},
        "Block 1 of a has other tokens from the first block on.",
    ),
    (
        {"prompt": own(100, 6), "max_tokens": 1},
        {"prompt": own(200, 6)},
        "Block 2 of a has the same 2 tokens at first and others from token 6 on",
    ),
]


@pytest.mark.parametrize(("first", "second", "words"), APART, ids=["tokens", "salt", "lora", "all tokens", "a is gone"])
def test_what_keeps_two_requests_apart(
    client: TestClient, settings: Settings, first: dict[str, Any], second: dict[str, Any], words: str
) -> None:
    one, other = (
        {"do": "add_request", "id": name, "max_tokens": 4, **parts} for name, parts in (("a", first), ("b", second))
    )
    page = stored(settings, [one, STEP, other, STEP], num_blocks=40)
    assert f"It was never stored. {words}" in text_of(why(client, page, "hit", "b"))


def test_of_several_the_one_that_is_most_alike_is_told(client: TestClient, settings: Settings) -> None:
    adds = [
        {"do": "add_request", "id": name, "prompt": own(first, 6), "max_tokens": 4}
        for name, first in (("a", 100), ("near", 200), ("c", 300))
    ]
    adds[1]["prompt"] = [*own(300, 1), [201, 5]]
    page = stored(settings, [*adds[:2], STEP, adds[2], STEP], num_blocks=40)
    answer = text_of(why(client, page, "hit", "c"))
    told = "of near has the same 3 tokens at first and others from token 7 on: only a whole block can be hit."
    assert f"{told} 1 other block goes on differently too." in answer


def test_a_lookup_after_a_preemption_counts_apart(client: TestClient, settings: Settings) -> None:
    actions = [add("a", 11, max_tokens=3), add("b", 16, max_tokens=9), *[STEP] * 6]
    page = stored(settings, actions, num_blocks=8)
    words = "It was preempted before: this counts apart from the hit rate."
    assert words in text_of(why(client, page, "hit", "b"))
    assert words not in text_of(why(client, page, "hit", "b", 3))


def test_a_prompt_of_one_block_can_hit_nothing(client: TestClient, settings: Settings) -> None:
    words = text_of(why(client, stored(settings, [add("a", 4), STEP], num_blocks=40), "hit", "a"))
    assert "No block of it is full before the last token, which is always computed." in words


def test_the_last_token_is_always_computed(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", shared(12)), STEP, add("b", shared(12)), STEP], num_blocks=40)
    words = text_of(why(client, page, "hit", "b"))
    assert "Why did b hit 8 tokens and not more?" in words
    assert "At most 11 of 12 tokens may be hit: the last one is always computed" in words


def test_eagle_drops_a_block(client: TestClient, settings: Settings) -> None:
    actions = [add("a", shared(16), 2), STEP, add("b", shared(16), 2), STEP]
    page = stored(settings, actions, num_blocks=40, use_eagle=True, num_speculative_tokens=2)
    words = text_of(why(client, page, "hit", "b"))
    assert "The last block that was found is dropped" in words


def test_a_reset_and_a_salt(client: TestClient, settings: Settings) -> None:
    reset = {"do": "reset_prefix_cache"}
    actions = [add("a", shared(8), 1, max_tokens=1), STEP, reset, add("b", shared(8), 1, cache_salt="salty"), STEP]
    page = stored(settings, [*actions, add("c", shared(8), 1), STEP], num_blocks=40)
    words = text_of(why(client, page, "hit", "b"))
    assert "Its salt, salty, is in its first hash: only equal salts share blocks." in words
    answer = why(client, page, "hit", "c")
    assert "A reset forgot it, on block" in text_of(answer)
    assert "?branch=main&at=3" in moments(answer)


def test_nothing_is_looked_up(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 8), STEP], enable_prefix_caching=False)
    assert "looked nothing up: caching is off." in text_of(why(client, page, "hit", "a"))


def test_several_groups_agree_on_the_shortest(client: TestClient, settings: Settings) -> None:
    groups = [{"kind": "full_attention"}, {"kind": "sliding_window", "sliding_window": 8}]
    actions = [add("a", shared(32), 5), STEP, add("b", shared(32), 9), STEP]
    words = text_of(why(client, stored(settings, actions, num_blocks=60, groups=groups), "hit", "b"))
    assert "Round 1: full attention found 32 tokens; sliding window found 32." in words


def test_a_hit_is_still_explained_many_steps_later(client: TestClient) -> None:
    words = text_of(why(client, LESSON, "hit", "R", 15))
    assert "R found 128 of its 300 tokens in 8 cached blocks." in words
    assert words.replace("at=15", "") == text_of(why(client, LESSON, "hit", "R", 6))


# ---- preempted


def test_preempted_by_whom_in_which_call(client: TestClient, settings: Settings) -> None:
    page = stored(settings, PREEMPTION, num_blocks=8)
    answer = why(client, page, "preempted", "b")
    words = text_of(answer)
    assert "a needed room to go on, and b was the next in line to lose its blocks." in words
    assert "a asked for 1 block to compute 1 token; none was free, 1 too few." in words
    assert "Under fcfs the request that was admitted last is preempted first." in words
    assert "It gave back 4 blocks" in words
    assert len(moments(answer)) >= 1


def test_preempted_by_itself_and_come_back(client: TestClient, settings: Settings) -> None:
    actions = [add("a", 11, max_tokens=3), add("b", 16, max_tokens=9), *[STEP] * 6]
    page = stored(settings, actions, num_blocks=8)
    words = text_of(why(client, page, "preempted", "b"))
    assert "b needed room, and was itself the next in line to lose its blocks." in words
    assert "It was resumed with" in words


def test_preempted_by_a_reset(client: TestClient, settings: Settings) -> None:
    reset = {"do": "reset_prefix_cache", "reset_running_requests": True}
    page = stored(settings, [add("a", 12), STEP, reset])
    words = text_of(why(client, page, "preempted", "a"))
    assert "A reset preempted every running request, a too." in words
    assert "It waits at the front of the line." in words


# ---- usage


def test_usage_0_while_the_cache_is_full(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", 20, max_tokens=2), STEP, STEP], num_blocks=7)
    assert "Why 0 while 5 are cached?" in text_of(client.get(page))
    assert "are cached?" not in text_of(client.get(f"{page}?at=2"))
    answer = why(client, page, "usage")
    words = text_of(answer)
    assert "Usage counts blocks that a request holds, and nobody holds one: the 5 cached blocks are free." in words
    assert "a gave up its blocks: 5 blocks fewer are held." in words
    assert "A lookup can still hit them. Block 5 loses its hash first. 1 block is handed out before it." in words
    assert moments(answer) == ["?branch=main&at=3"]


# ---- offers, shapes, nonsense


def asked(client: TestClient, page: str) -> list[str]:
    """The questions of the rows that have only one."""
    links = (attributes for tag, attributes in tags_of(client.get(page)) if tag == "a")
    return [link["aria-label"] or "" for link in links if (link.get("class") or "").startswith("why ask")]


def test_rows_offer_what_can_be_asked(client: TestClient) -> None:
    assert asked(client, "/story/one-call?at=6") == ["Why 32 hit? (holder)", "Why 128 hit? (R)"]
    page = "/story/one-call?at=15"
    assert asked(client, page) == ["Why 32 hit? (holder)", "Why 128 hit? (R)"]
    assert "Why is it waiting? Why 0 hit?" in text_of(client.get(page))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("about=waiting&id=R&at=6", "doesn't wait at this moment"),
        ("about=waiting&id=nobody&at=6", "No request was ever called"),
        ("about=waiting&id=second&at=6", "has not come yet, or has left"),
        ("about=hit&id=R&at=5", "was not looked up yet"),
        ("about=preempted&id=R&at=15", "was never preempted"),
        ("about=nonsense&at=3", "This is no question that a card answers."),
        ("at=3", "This is no question that a card answers."),
    ],
)
def test_nonsense_is_404_in_words(client: TestClient, query: str, words: str) -> None:
    for headers in (HTMX, {}):
        answer = client.get(f"/story/one-call/why?{query}", headers=headers)
        assert answer.status_code == 404
        assert words in text_of(answer)
    answer = client.get(f"/story/one-call/why?{query}", headers={"Accept": "application/json"})
    assert answer.json()["error"]["code"] == "no_answer"
