"""Draft help, the log's filters and events, another call; both shapes of each; nothing stored; hostile ids as text."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.rendering.log import log
from app.rendering.moment import Moment
from app.services.session import Branch, Session
from app.settings import Settings
from app.store import FILE
from engine.actions import AddRequest, ResetPrefixCache, Step
from engine.block_hash import short_hash
from engine.config import EngineConfig
from engine.kv_events import BlockStored
from engine.tokens import Own
from tests.app.conftest import browser
from tests.app.reading import HTMX, LESSON, figures_of, new_session, tags_of, text_of
from tests.app.scenarios import STEP, add, stored
from tests.app.test_security import HOSTILE

LOOKS = [
    "probe?at=15&request=R",
    "probe?at=15",
    "why?at=15&about=waiting&id=second",
    "why?at=15&about=hit&id=R",
    "why?at=3&about=usage",
    "call?at=6&call=0",
    "draft?at=5&id=A&tokens=20&max_tokens=2",
    "block/3?at=6",
]

# ---- draft


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("tokens=300&max_tokens=4", "300 tokens, 19 blocks; a lookup now hits none of them."),
        ("tokens=4000&max_tokens=4", "more than the 100 usable blocks of this pool, so it can never run whole."),
        ("tokens=30&max_tokens=4&skip_reading_prefix_cache=on", "nothing is looked up: it skips the cache."),
        ("tokens=x&max_tokens=4", "This is not a whole number."),
        ("tokens=&max_tokens=4", "The prompt is empty."),
        ("tokens=5000&max_tokens=4", "The prompt has 5000 tokens, more than max_model_len, 4096."),
        ("tokens=5&max_tokens=4&id=holder", "Request 'holder' is still alive."),
        ("tokens=5&max_tokens=0", "Expected"),
        ("", "The prompt is empty."),
    ],
)
def test_a_draft_tells_what_it_would_be(client: TestClient, fields: str, words: str) -> None:
    query = fields if "id=" in fields else f"id=new&{fields}"
    answer = client.get(f"/story/one-call/draft?at=5&{query}", headers=HTMX)
    assert answer.status_code == 200
    assert words in text_of(answer)


def test_a_draft_foretells_the_hit(client: TestClient, settings: Settings) -> None:
    page = stored(settings, [add("a", {"shared": "sys", "tokens": 12}, 3), STEP], num_blocks=40)
    query = "id=b&shared=sys&shared_tokens=12&tokens=6&max_tokens=2"
    before = client.get(page).text
    words = text_of(client.get(f"{page}/draft?{query}", headers=HTMX))
    assert words == "18 tokens, 5 blocks; a lookup now hits 12 of them in 3 blocks."
    assert "hits none" in text_of(client.get(f"{page}/draft?at=1&{query}", headers=HTMX))
    assert client.get(page).text == before


# ---- log


def moment_after(*actions: AddRequest | Step | ResetPrefixCache) -> Moment:
    branch = Branch(EngineConfig(40, block_size=4))
    for action in actions:
        branch.append(action)
    return Moment.of(Session("x", "", b"", branch), branch.head)


def test_each_sentence_names_its_kind_and_its_requests() -> None:
    moment = moment_after(AddRequest("a", (Own(9),), 2), AddRequest("b", (Own(9),), 2), Step())
    sentences = log(moment).sentences
    assert {one.kind for one in sentences} >= {"schedule", "lookup", "blocks", "event"}
    assert [one.requests for one in sentences if one.kind == "schedule"] == [(0, 1)]
    assert [one.requests for one in sentences if one.kind == "blocks"] == [(0,), (1,)]
    assert [one.requests for one in sentences if one.kind == "event"] == [(), ()]


def test_kv_events_are_told_field_by_field() -> None:
    moment = moment_after(AddRequest("a", (Own(50),), 1, lora="x"), Step())
    told = log(moment)
    assert moment.applied is not None
    event = moment.applied.outcome.events[0]
    assert isinstance(event, BlockStored)
    assert (told.events_total, len(told.events)) == (1, 1)
    one = told.events[0]
    assert (one.kind, one.tokens, one.block_size, one.group, one.lora, one.medium) == (
        ("BlockStored", 48, 4, 0, "x", "GPU")
    )
    assert (one.hashes, one.more, one.extra_keys) == (tuple(short_hash(h) for h in event.block_hashes[:8]), 4, 12)
    told = log(moment_after(AddRequest("a", (Own(50),), 1), Step(), ResetPrefixCache()))
    assert [event.kind for event in told.events] == ["AllBlocksCleared"]


def test_removed_blocks_are_events_too(client: TestClient, settings: Settings) -> None:
    actions = [add("a", 24, max_tokens=1), STEP, add("b", 24, max_tokens=1), STEP]
    words = text_of(client.get(stored(settings, actions, num_blocks=7)))
    assert "BlockRemoved" in words
    assert "BlockStored" in words


# ---- calls


def test_another_call_can_be_chosen(client: TestClient) -> None:
    for path in (
        "/story/one-call?at=6&call=0",
        "/story/one-call/frame?at=6&call=0",
        "/story/one-call/call?at=6&call=0",
    ):
        answer = client.get(path, headers=HTMX if "frame" in path else {})
        current = [attributes for tag, attributes in tags_of(answer) if attributes.get("aria-current") == "true"]
        assert [attributes.get("data-call") for attributes in current] == ["0"]
    for nonsense in ("99", "-1", "x"):
        assert "R reuses 8 cached blocks" in text_of(client.get(f"/story/one-call/call?at=6&call={nonsense}"))


# ---- shapes


def told(answer: Response) -> str:
    """What a reader sees without the meanings of words, which a page has in the call and a fragment only names."""
    return text_of(Response(200, text=re.sub(r'<dl class="meanings".*?</dl>', "", answer.text, flags=re.DOTALL)))


@pytest.mark.parametrize("path", LOOKS)
def test_a_fragment_is_part_of_its_page(client: TestClient, path: str) -> None:
    page = new_session(client)
    for base in (f"{LESSON}/", f"{page}/"):
        fragment, whole = client.get(f"{base}{path}", headers=HTMX), client.get(f"{base}{path}")
        assert (fragment.status_code, whole.status_code) == (200, 200)
        assert "<!doctype html>" in whole.text
        assert "<!doctype" not in fragment.text
        assert not [tag for tag, _ in tags_of(fragment) if tag in ("html", "head", "body")]
        if "probe" not in path:
            assert told(fragment) in told(whole)


@pytest.mark.parametrize("path", LOOKS)
def test_every_link_of_a_whole_page_leads_somewhere(client: TestClient, path: str) -> None:
    page = new_session(client)
    for base in (f"{LESSON}/", f"{page}/"):
        here = f"http://testserver{base}{path}"
        for tag, attributes in tags_of(client.get(here)):
            href = attributes.get("href")
            if tag == "a" and href and not href.startswith("#"):
                answer = client.get(urljoin(here, href))
                assert answer.status_code == 200, (href, answer.url)


def test_looking_stores_nothing(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    file = settings.data / FILE
    before = (file.read_bytes(), (settings.data / f"{FILE}-wal").read_bytes())
    for path in LOOKS:
        for base in (f"{LESSON}/", f"{page}/"):
            answer = client.get(f"{base}{path}")
            assert "set-cookie" not in answer.headers
    assert (file.read_bytes(), (settings.data / f"{FILE}-wal").read_bytes()) == before


def test_hostile_ids_are_text_in_every_panel(client: TestClient) -> None:
    page = new_session(client, kind="add", id=HOSTILE, tokens="20", max_tokens="3", cache_salt=HOSTILE, lora=HOSTILE)
    client.post(f"{page}/abort", data={"at": "16", "id": "second"})
    client.post(f"{page}/step", data={"at": "17"})
    name = quote(HOSTILE)
    paths = [
        f"probe?request={name}",
        f"probe?request={name}&new={name}",
        f"probe?request=x{name}",
        f"why?about=hit&id={name}",
        f"why?at=16&about=waiting&id={name}",
        f"why?about={name}&id={name}",
        f"draft?id={name}&tokens={name}&shared={name}&lora={name}",
        f"draft?id={name}&tokens=3&max_tokens=2",
        f"call?call={name}",
    ]
    for path in paths:
        for headers in (HTMX, {}):
            answer = client.get(f"{page}/{path}", headers=headers)
            assert answer.status_code in (200, 404, 422), path
            assert "<img src=x" not in answer.text
            assert not [attributes for tag, attributes in tags_of(answer) if tag == "img" and "onerror" in attributes]
    assert HOSTILE.split()[0] in text_of(client.get(f"{page}/why?about=hit&id={name}"))


# ---- frames


def test_a_change_leaves_out_forms_that_stay_the_same(client: TestClient) -> None:
    whole, change = client.get("/story/one-call/frame?at=7").text, client.get("/story/one-call/frame?at=7&from=6").text
    assert 'id="add-id"' in whole
    assert 'id="add-id"' not in change
    assert 'id="abort-id"' not in change
    assert len(re.findall(r'name="at" value="7"', change)) >= 3
    assert 'id="abort-id"' in client.get("/story/one-call/frame?at=6&from=5").text
    assert 'id="add-send"' in client.get("/story/one-call/frame?at=5&from=4").text


def test_the_first_act_tells_the_forms_where_they_stand_now(client: TestClient) -> None:
    answer = client.post("/story/one-call/step", data={"at": "15"}, headers=HTMX)
    session = answer.headers["hx-push-url"].partition("?")[0].removeprefix("../s/")
    assert figures_of(answer)["from"] == 15
    assert f'action="{session}/add"' in answer.text
    assert f'action="{session}/reset"' in answer.text


def test_a_frame_is_the_same_for_everybody_and_however_it_was_asked_for(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    posted = client.post(f"{page}/step", data={"at": "16"}, headers=HTMX)
    with browser(settings) as stranger:
        for path in (f"{page}/frame?at=17&from=16", f"{page}/frame?at=6&from=5", f"{page}/why?at=16&about=hit&id=R"):
            assert stranger.get(path, headers=HTMX).content == client.get(path, headers=HTMX).content
        assert stranger.get(f"{page}/frame?at=17&from=16").text == posted.text
