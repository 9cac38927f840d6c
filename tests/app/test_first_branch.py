"""What the breaker of a session does: its first branch deleted, bodies that are no form, ids that no page can carry."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from tests.app.reading import landed, new_session, text_of

ASKS = {"Accept": "application/json"}
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def test_the_plain_address_leads_to_a_branch_that_lives(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"branch": "main", "at": "1", "id": "other", "tokens": "9", "max_tokens": "2"})
    assert client.post(f"{page}/delete", data={"branch": "main"}, headers=ASKS).status_code == 200
    for path in ("", "/config", "/branches", "/probe", "/block/3", "/share"):
        assert client.get(f"{page}{path}").status_code == 200, path
    assert client.post(f"{page}/step", data={}, headers=ASKS).json()["branch"] == "b2"
    assert "The branch main was deleted." in text_of(client.get(f"{page}?branch=main"))


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "text/json"])
@pytest.mark.parametrize("act", ["step", "delete", "rename", "run"])
def test_json_under_another_name_is_not_read_as_a_form(client: TestClient, kind: str, act: str) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"branch": "main", "at": "1", "id": "other", "tokens": "9", "max_tokens": "2"})
    answer = client.post(f"{page}/{act}", content='{"branch":"b2"}', headers={**ASKS, "Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert client.get(f"{page}?branch=main").status_code == 200


@pytest.mark.parametrize("name", ["5", "null", "[]", "{}"])
def test_a_name_that_is_no_text(client: TestClient, name: str) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/rename", content=f'{{"branch":"main","name":{name}}}', headers=JSON)
    assert (answer.status_code, answer.json()["error"]["where"]) == (422, "name")


@pytest.mark.parametrize(("act", "body"), [("run", '{"foo":1}'), ("run", '{"steps":5}'), ("fork", '{"foo":1}')])
def test_what_would_be_ignored_is_refused(client: TestClient, act: str, body: str) -> None:
    answer = client.post(f"{new_session(client)}/{act}", content=body, headers=JSON)
    assert answer.status_code == 422


def test_plain_forms_tell_what_was_done(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"branch": "main", "at": "1", "id": "other", "tokens": "9", "max_tokens": "2"})
    renamed = text_of(client.get(landed(client.post(f"{page}/rename", data={"branch": "b2", "name": "fresh"}))))
    assert "fresh it is." in renamed
    assert "leaves" not in renamed.split("fresh it is.")[1][:60]
    deleted = text_of(client.get(landed(client.post(f"{page}/delete", data={"branch": "b2"}))))
    assert "Deleted. This is main." in deleted


@pytest.mark.parametrize("name", [" ", "\t", "a\x00b", "\x07"])
def test_ids_that_no_page_can_carry(client: TestClient, name: str) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/add", json={"id": name, "prompt": [[1, 4]], "max_tokens": 2}, headers=JSON)
    assert (answer.status_code, answer.json()["error"]["where"].endswith("id")) == (422, True)


def test_the_address_of_a_refused_form_leads_to_the_page(client: TestClient) -> None:
    page = new_session(client)
    refused = client.post(f"{page}/add", data={"branch": "main", "id": "x", "tokens": "no"})
    assert refused.status_code == 422
    assert landed(client.get(f"{page}/add?branch=main&at=3")) == f"{page}?branch=main&at=3"
