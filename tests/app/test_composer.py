"""The composer: a prompt as fields, as text or as JSON, one of them at a time; and what it would be now."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.gallery import every_story
from app.services.links import encode
from app.settings import Settings
from app.tokenizer import tokenize
from tests.app.conftest import browser
from tests.app.reading import HTMX, LESSON, area_of, end_of, new_session, tags_of, text_of
from tests.app.scenarios import STEP, add, stored

BASE = {"at": "15", "id": "A", "max_tokens": "2"}
TEXT = "You are a helpful assistant.\nSay so when you do not know."
COUNT = len(tokenize(TEXT))


def last_action(client: TestClient, page: str) -> dict[str, Any]:
    """What was recorded last, as the editor shows it."""
    action: dict[str, Any] = json.loads(area_of(client.get(f"{page}/edit")))["actions"][-1]
    return action


def added(client: TestClient, fields: dict[str, str]) -> str:
    """The page of a new session in which a request was added."""
    return new_session(client, 15, "add", **{name: text for name, text in (BASE | fields).items() if name != "at"})


def wrong_fields(answer: Response) -> list[str]:
    return [str(tag["name"]) for _, tag in tags_of(answer) if tag.get("aria-invalid") == "true"]


@pytest.mark.parametrize(
    ("fields", "prompt", "tokens"),
    [
        ({"text": TEXT}, [{"text": TEXT}], COUNT),
        ({"text": TEXT.replace("\n", "\r\n")}, [{"text": TEXT}], COUNT),
        ({"text": "\n x"}, [{"text": "\n x"}], len(tokenize("\n x"))),
        (
            {"text": TEXT, "shared": "system", "shared_tokens": "64"},
            [{"shared": "system", "tokens": 64}, {"text": TEXT}],
            64 + COUNT,
        ),
        ({"json": '{"tokens": 7}'}, {"tokens": 7}, 7),
        ({"json": "[1000, 40]"}, [1000, 40], 40),
        (
            {"json": '[[1000, 32],\r\n {"shared": "s", "tokens": 8}, {"text": "Hi"}, {"continue": "holder"}]'},
            [[1000, 32], {"shared": "s", "tokens": 8}, {"text": "Hi"}, {"continue": "holder"}],
            None,
        ),
    ],
)
def test_every_way_to_give_a_prompt_is_recorded_as_written(
    client: TestClient, fields: dict[str, str], prompt: object, tokens: int | None
) -> None:
    page = added(client, fields)
    assert last_action(client, page)["prompt"] == prompt
    if tokens is not None:
        assert f"A arrives with {tokens} tokens" in text_of(client.get(page))


def test_output_and_stop_tokens(client: TestClient) -> None:
    page = added(client, {"tokens": "5", "output": "[[7, 9], [2, 1]]", "stop_token_ids": "2, 8"})
    action = last_action(client, page)
    assert (action["output"], action["stop_token_ids"]) == ([[7, 9], [2, 1]], [2, 8])


@pytest.mark.parametrize(
    ("fields", "wrong", "words"),
    [
        ({"text": "Hi", "tokens": "5"}, ["tokens"], "The text below is the prompt, so tokens can't be given too."),
        ({"json": "[1, 2]", "tokens": "5"}, ["tokens"], "The JSON below is the whole prompt, so tokens can't"),
        ({"json": "[1, 2]", "text": "Hi"}, ["text"], "The JSON below is the whole prompt, so text can't be given too."),
        (
            {"json": "[1, 2]", "shared": "s", "shared_tokens": "5"},
            ["shared", "shared_tokens"],
            "so a shared prefix can't be given too. Expected: nothing here, or no JSON.",
        ),
        ({"json": "[1, 2"}, ["json"], "Line 1, column 6: Not JSON"),
        ({"json": '[{"tokens": 1,\n "tokens": 2}]'}, ["json"], '[0].tokens: The key "tokens" is there twice.'),
        ({"json": '[{"tokens": true}]'}, ["json"], "[0].tokens: Got true. Expected: a whole number from 1."),
        ({"json": '{"tokens": 0}'}, ["json"], "tokens: 0 is out of range."),
        ({"json": "[]"}, ["json"], "The prompt is empty."),
        ({"json": "null"}, ["json"], "Got null."),
        ({"json": '"Hi"'}, ["json"], 'Got "Hi".'),
        ({"json": '{"continue": "nobody"}'}, ["json"], "No request 'nobody' was ever added."),
        (
            {"json": '[[1, 2], {"tokens": 4999}]'},
            ["json"],
            "The prompt has 5001 tokens, more than max_model_len, 4096.",
        ),
        ({"text": "x" * 500_001}, ["text"], "The text is too long."),
        ({"text": "word " * 5000}, ["text"], "The prompt has 5001 tokens, more than max_model_len, 4096."),
        ({"text": "Hi", "shared": "s"}, ["shared_tokens"], "The shared prefix needs a length."),
        ({"text": "Hi", "shared": "s", "shared_tokens": "0"}, ["shared_tokens"], "0 is out of range."),
        ({"tokens": "5", "output": "[[1, 0]]"}, ["output"], "[0][1]: 0 is out of range."),
        ({"tokens": "5", "output": "[[1"}, ["output"], "Line 1, column 4: Not JSON"),
        ({"tokens": "5", "output": "[[1, 1]]"}, ["output"], "The output has 1 tokens and can run out"),
        ({"tokens": "5", "stop_token_ids": "x"}, ["stop_token_ids"], "These are not whole numbers."),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    client: TestClient, fields: dict[str, str], wrong: list[str], words: str
) -> None:
    for headers in ({}, HTMX):
        answer = client.post(f"{LESSON}/add", data={**BASE, **fields}, headers=headers)
        assert answer.status_code in (413, 422, 400)
        assert wrong_fields(answer) == wrong
        assert words in text_of(answer)
        assert "<details open>" in answer.text or wrong[0] in ("tokens", "shared", "shared_tokens")


def test_lines_that_were_typed_come_back_as_they_were(client: TestClient) -> None:
    typed = "\n\n first </textarea><img src=x>\r\nlast"
    answer = client.post(f"{LESSON}/add", data={**BASE, "text": typed, "tokens": "3"})
    assert area_of(answer) == typed.replace("\r\n", "\n")
    assert "<img src=x>" not in answer.text


# ---- the draft


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tokens": "300"}, "300 tokens, 19 blocks; a lookup now hits none of them."),
        ({"text": TEXT}, f"The text counts, with {COUNT} tokens. {COUNT} tokens, 1 block; a lookup now hits none"),
        ({"text": "Hi"}, "The text counts, with 1 token. 1 token, 1 block"),
        (
            {"text": "Hi", "shared": "s", "shared_tokens": "64"},
            "The text counts, with 1 token. 65 tokens, 5 blocks",
        ),
        ({"json": "[1000, 300]"}, "The JSON counts. 300 tokens, 19 blocks; a lookup now hits 128 of them in 8 blocks."),
        ({"json": '{"continue": "warm"}'}, "The JSON counts. 130 tokens, 9 blocks; a lookup now hits 128 of them"),
        ({"json": "[1000, 300]", "text": "Hi"}, "so text can't be given too."),
        ({"json": "{"}, "Line 1, column 2: Not JSON"),
    ],
)
def test_a_draft_says_which_one_counts_and_what_it_comes_to(
    client: TestClient, fields: dict[str, str], words: str
) -> None:
    typed = {**BASE, **fields}
    assert words in text_of(client.post(f"{LESSON}/draft", data=typed, headers=HTMX))
    assert words in text_of(client.get(f"{LESSON}/draft", params=typed, headers=HTMX))
    page = client.post(f"{LESSON}/draft", data=typed)
    assert page.status_code == 200
    assert words in text_of(page)
    assert ("input", "A") in [(tag, found.get("value")) for tag, found in tags_of(page) if found.get("name") == "id"]


def test_a_draft_stores_nothing_and_anybody_may_ask(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", {"shared": "sys", "tokens": 12}, 3), STEP], num_blocks=40)
    fields = {"id": "b", "text": "Hi", "shared": "sys", "shared_tokens": "12", "max_tokens": "2"}
    answer = client.post(f"{page}/draft", data=fields, headers=HTMX)
    assert "13 tokens, 4 blocks; a lookup now hits 12 of them in 3 blocks." in text_of(answer)
    assert "hits none" in text_of(client.post(f"{page}/draft", data={**fields, "at": "1"}, headers=HTMX))
    assert client.post(f"{page}/draft", data={**fields, "at": "9"}, headers=HTMX).status_code == 409
    assert end_of(client, page) == 2


def test_a_refused_request_still_shows_its_draft(client: TestClient) -> None:
    answer = client.post(f"{LESSON}/add", data={**BASE, "at": "99", "tokens": "300"})
    assert answer.status_code == 409
    assert "300 tokens, 19 blocks" in text_of(answer)


OWN = "This makes a session of your own"


def makes(client: TestClient, path: str) -> list[str | None]:
    """What the composer and the form that aborts say an action makes; None: there is no such line."""
    page = client.get(path).text
    said = []
    for name in ("add-makes", "abort-makes"):
        found = re.search(rf'<p class="fact" id="{name}"[^>]*>(.*?)</p>', page)
        said.append(found[1] if found else None)
    assert ('aria-describedby="add-makes"' in page) == (said[0] is not None)
    return said


def test_it_says_what_an_action_makes_and_that_comes_true(client: TestClient, settings: Settings) -> None:
    code = encode(every_story()["one-call"].scenario, 0)
    for source in (LESSON, f"/p/{code}/"):
        assert makes(client, f"{source}?at=15") == [f"{OWN}."] * 2
        assert makes(client, f"{source}?at=6") == [f"{OWN}, with a branch from action 6."] * 2
        assert makes(client, f"{source}?at=0") == [f"{OWN}, with a branch from the start."] * 2
    assert makes(client, "/new") == [f"{OWN}."] * 2
    page = new_session(client, 15, "add", id="A", tokens="20", max_tokens="2")
    assert makes(client, page) == [None, ""]
    assert makes(client, f"{page}?at=6") == ["This makes a branch from action 6."] * 2
    assert client.get(f"{page}?branch=b2").status_code == 409
    page = new_session(client, 6, "add", id="A", tokens="20", max_tokens="2")
    assert makes(client, f"{page}?branch=b2") == [None, ""]
    with browser(settings) as somebody:  # looks, and has no forms
        assert makes(somebody, f"{page}?at=6") == [None, None]
    assert makes(client, f"/embed{LESSON}?at=6") == [None, None]


def test_a_frame_brings_what_an_action_makes(client: TestClient) -> None:
    page = new_session(client)
    for path, words in (("frame?at=15&from=14", "This makes a branch from action 15."), ("frame?at=16&from=15", "")):
        frame = text_of(client.get(f"{page}/{path}", headers=HTMX))
        assert ("This makes" in frame) == bool(words)
        assert words in frame
