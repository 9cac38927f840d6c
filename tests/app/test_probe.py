"""The probe: the same traced call on a copy; nothing changes; what is impossible is told beside its field."""

from __future__ import annotations

import copy

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from app.store import Store
from tests.app.reading import HTMX, end_of, new_session, tags_of, text_of
from tests.app.scenarios import PREEMPTION, STEP, add, shared, stored


def test_lookahead_16_takes_one_block(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call/probe?at=13&request=R&lookahead=16", headers=HTMX))
    assert "Granted. R takes 1 new block. The free queue gives up 1 from its head. 21 of 22 stay free." in words
    assert "21 ⌈323 ÷ 16⌉ − 20 held" in words
    assert "Return [79] free 22 → 21" in words
    assert "The state is unchanged: digest" in words


def test_a_waiting_request_is_asked_for_with_its_lookup(client: TestClient) -> None:
    words = text_of(client.get("/story/one-call/probe?at=5&request=R", headers=HTMX))
    assert "Granted. R reuses 8 cached blocks and takes 7 new ones." in words
    assert "new would pass 100 new_comp would pass 128" in words
    assert "1 other request would come before it in a step; this asks as if it were its turn." in words


def test_a_refusal_tells_what_a_step_would_do(client: TestClient, settings: Settings) -> None:
    words = text_of(client.get("/story/one-call/probe?at=15&request=second", headers=HTMX))
    assert "21 more would have to be free" in words
    assert "In a step second would keep its place, and admission would stop here." in words
    page = stored(settings, PREEMPTION, num_blocks=8, watermark=0)
    words = text_of(client.get(f"{page}/probe?at=3&request=a&lookahead=9", headers=HTMX))
    assert "Refused. a needs" in words
    assert "In a step a would now preempt b." in words


def test_the_form_alone_is_filled_for_the_first_candidate(client: TestClient) -> None:
    answer = client.get("/story/one-call/probe?at=14", headers=HTMX)
    assert answer.status_code == 200
    assert "would pass 100" in text_of(answer)
    assert "Granted" not in text_of(answer)
    assert any(name == "option" and "selected" in tag for name, tag in tags_of(answer))
    assert "No request lives that could be probed." in text_of(client.get("/story/one-call/probe?at=0", headers=HTMX))


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ("new=-1", "new", '"new" is -1. Expected: a whole number from 0 to'),
        ("new=x", "new", "This is not a whole number."),
        ("new=1.5", "new", "This is not a whole number."),
        (f"new={10**19}", "new", "This is too large: at most 10000000."),
        (f"new=-{10**19}", "new", "This is too small: 0 or more."),
        ("new=173", "new", "173 tokens are more than"),
        ("new_comp=144", "new_comp", "the cache holds no hit of 144 tokens"),
        ("ext_comp=999", "ext_comp", "999 external tokens are more than the request has behind its hit."),
        ("lookahead=99999999999", "lookahead", '"lookahead" is 99999999999.'),
        ("reserved_blocks=-3", "reserved_blocks", '"reserved_blocks" is -3.'),
        ("has_scheduled_reqs=perhaps", "has_scheduled_reqs", "This is neither yes nor no."),
    ],
)
def test_the_impossible_is_told_beside_its_field(client: TestClient, arguments: str, field: str, message: str) -> None:
    for headers in (HTMX, {}):
        answer = client.get(f"/story/one-call/probe?at=5&request=R&{arguments}", headers=headers)
        assert answer.status_code == 422
        assert message.lower() in text_of(answer).lower()
        wrong = [tag for tag in tags_of(answer) if tag[1].get("role") == "alert"]
        assert [attributes.get("id") for _, attributes in wrong] == [f"probe-{field}-says"]
    answer = client.get(f"/story/one-call/probe?at=5&request=R&{arguments}", headers={"Accept": "application/json"})
    assert answer.json()["error"]["where"] == field


def test_an_unknown_request(client: TestClient) -> None:
    answer = client.get("/story/one-call/probe?at=5&request=nobody", headers=HTMX)
    assert answer.status_code == 422
    assert "No living request is called" in text_of(answer)


def test_nothing_is_changed_and_nothing_stored(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    before = client.get(page).text
    for arguments in ("", "&lookahead=40", "&new=1&reserved_blocks=22", "&full_sequence_must_fit=no"):
        for request in ("R", "second", "holder"):
            answer = client.get(f"{page}/probe?at=16&request={request}{arguments}", headers=HTMX)
            assert "The state is unchanged" in text_of(answer) or answer.status_code == 422
    assert client.get(page).text == before
    assert end_of(client, page) == 16
    store = Store(settings.data)
    saved = store.load(page.rpartition("/")[2], "main")
    assert saved is not None
    assert len(saved.actions) == 16
    probed, straight = (client.post(f"{page}/step", data={"at": "16"}, headers=HTMX).text for _ in range(2))
    assert copy.copy(probed) == straight


def test_several_groups(client: TestClient, settings: Settings) -> None:
    groups = [{"kind": "full_attention"}, {"kind": "sliding_window", "sliding_window": 8}]
    page = stored(settings, [add("a", shared(16), 5), STEP, add("b", shared(16), 9)], num_blocks=40, groups=groups)
    words = text_of(client.get(f"{page}/probe?request=b", headers=HTMX))
    assert "Granted. b reuses" in words
    answer = client.get(f"{page}/probe?request=b&ext_comp=4", headers=HTMX)
    assert (answer.status_code, "can't be had with 2 groups" in text_of(answer)) == (422, True)
