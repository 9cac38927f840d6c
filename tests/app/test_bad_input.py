"""Bad input gives one clear message, beside the field on the page and as 4xx over HTTP; the session stays as it was."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from tests.app.conftest import browser
from tests.app.reading import HTMX, end_of, new_session, tags_of, text_of

ASKS = {"Accept": "application/json", "Content-Type": "application/json"}
GOOD = '"id": "A", "prompt": {"tokens": 5}, "max_tokens": 2'


@pytest.mark.parametrize(
    ("body", "status", "code", "where"),
    [
        ('{"id": "A"', 400, "malformed_json", "line 1, column 11"),
        ("", 400, "malformed_json", "line 1, column 1"),
        ("[1]", 422, "wrong_type", ""),
        ('{"id": "A", "prompt": {"tokens": true}, "max_tokens": 2}', 422, "wrong_type", "action.prompt.tokens"),
        ('{"id": "A", "prompt": {"tokens": 1.0}, "max_tokens": 2}', 422, "wrong_type", "action.prompt.tokens"),
        ('{"id": "A", "prompt": {"tokens": NaN}, "max_tokens": 2}', 400, "malformed_json", "prompt.tokens"),
        ('{"id": "A", "id": "B", "prompt": {"tokens": 5}, "max_tokens": 2}', 422, "duplicate_key", "id"),
        ('{"id": "\\ud800", "prompt": {"tokens": 5}, "max_tokens": 2}', 422, "lone_surrogate", "id"),
        (
            '{"id": "A", "prompt": {"tokens": ' + "9" * 5000 + '}, "max_tokens": 2}',
            422,
            "number_too_large",
            "prompt.tokens",
        ),
        ('{"id": "A", "prompt": [], "max_tokens": 2}', 422, "empty_prompt", "action.prompt"),
        ('{"id": "A", "prompt": {"tokens": 4097}, "max_tokens": 2}', 422, "prompt_too_long", "actions[16].prompt"),
        ('{"id": "R", "prompt": {"tokens": 5}, "max_tokens": 2}', 422, "live_id", "actions[16].id"),
        ('{"id": "A", "prompt": {"continue": "Z"}, "max_tokens": 2}', 422, "unknown_id", "actions[16].prompt"),
        ('{"id": "A", "prompt": {"tokens": 1000001}, "max_tokens": 2}', 413, "over_limit", "actions[16].prompt"),
        ("{" + GOOD + ', "external": {"tokens": -1}}', 422, "out_of_range", "action.external.tokens"),
        ("{" + GOOD + ', "external": {"steps": 1}}', 422, "missing_key", "action.external"),
        ("{" + GOOD + ', "at": "16"}', 422, "invalid", "at"),
        ("{" + GOOD + ', "at": true}', 422, "invalid", "at"),
        ("{" + GOOD + ', "branch": 1}', 422, "invalid", "branch"),
        ("{" + GOOD + ', "colour": 1}', 422, "unknown_key", "action.colour"),
    ],
)
def test_over_http(client: TestClient, body: str, status: int, code: str, where: str) -> None:
    page = new_session(client)
    before = client.get(page).text
    answer = client.post(f"{page}/add", content=body, headers=ASKS)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["where"]) == (status, code, where)
    assert error["message"]
    assert "\n" not in error["message"]
    assert client.get(page).text == before


def test_not_utf8(client: TestClient) -> None:
    answer = client.post("/story/one-call/add", content=b'{"id": "\xff"}', headers=ASKS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed_json")


FIELDS = {"at": "15", "id": "A", "tokens": "20", "max_tokens": "2"}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"tokens": "ten"}, "tokens", "This is not a whole number."),
        ({"tokens": "1.0"}, "tokens", "This is not a whole number."),
        ({"tokens": "9" * 5000}, "tokens", "A number of 5000 digits is too large."),
        ({"tokens": ""}, "tokens", "The prompt is empty."),
        ({"tokens": "0"}, "tokens", "0 is out of range."),
        ({"tokens": "-3"}, "tokens", "-3 is out of range."),
        ({"tokens": "5000"}, "tokens", "The prompt has 5000 tokens, more than max_model_len, 4096."),
        ({"tokens": "1000001"}, "tokens", "more than this program takes"),
        ({"max_tokens": "0"}, "max_tokens", "0 is out of range."),
        ({"max_tokens": ""}, "max_tokens", "A number is missing."),
        ({"id": "R"}, "id", "is still alive."),
        ({"id": ""}, "id", "The text is empty."),
        ({"id": "x" * 201}, "id", ""),
        ({"shared": "system"}, "shared_tokens", "The shared prefix needs a length."),
        ({"shared_tokens": "5"}, "shared", "A shared prefix needs a name."),
        ({"shared": "system", "shared_tokens": "0"}, "shared_tokens", "0 is out of range."),
        ({"priority": "high"}, "priority", "This is not a whole number."),
        ({"accept": "1, x"}, "accept", "These are not whole numbers."),
        ({"accept": "-1"}, "accept", "-1 is out of range."),
        ({"external_tokens": "some"}, "external_tokens", "This is not a whole number."),
        ({"external_tokens": "-1"}, "external_tokens", "-1 is out of range."),
        ({"external_steps": "2"}, "external_tokens", "A load needs external tokens."),
        ({"external_tokens": "8", "external_steps": "x"}, "external_steps", "This is not a whole number."),
    ],
)
def test_beside_the_field(client: TestClient, change: dict[str, str], field: str, message: str) -> None:
    for headers in ({}, HTMX):
        answer = client.post("/story/one-call/add", data=FIELDS | change, headers=headers)
        assert answer.status_code in (413, 422)
        inputs: dict[str, dict[str, Any]] = {
            str(tag["name"]): tag for name, tag in tags_of(answer) if name == "input" and "name" in tag
        }
        wrong = [name for name, tag in inputs.items() if tag.get("aria-invalid") == "true"]
        assert wrong == [field]
        assert message in text_of(answer)
        for name, value in (FIELDS | change).items():
            if name != "at":
                assert inputs[name]["value"] == value


def test_every_wrong_field_is_told_at_once(client: TestClient) -> None:
    answer = client.post(
        "/story/one-call/add",
        data={"at": "15", "id": "A", "tokens": "x", "max_tokens": "y", "priority": "z"},
        headers=HTMX,
    )
    wrong = [tag["name"] for name, tag in tags_of(answer) if tag.get("aria-invalid") == "true"]
    assert wrong == ["tokens", "max_tokens", "priority"]


def test_both_parts_of_a_prompt(client: TestClient) -> None:
    page = new_session(client, kind="add", id="A", tokens="20", shared="system", shared_tokens="64", max_tokens="2")
    assert "A arrives with 84 tokens" in text_of(client.get(page))
    only = new_session(client, kind="add", id="A", tokens="", shared="system", shared_tokens="64", max_tokens="2")
    assert "A arrives with 64 tokens" in text_of(client.get(only))


def test_the_suggested_id_is_free(client: TestClient) -> None:
    page = new_session(client, kind="add", id="A", tokens="20", max_tokens="2")
    values = {tag.get("name"): tag.get("value") for name, tag in tags_of(client.get(page)) if name == "input"}
    assert values["id"] == "B"


def test_limits_on_actions(settings: Settings) -> None:
    tight = replace(settings, limits=replace(settings.limits, actions=17, add_requests=4))
    with browser(tight) as client:
        answer = client.post("/story/one-call/add", data=FIELDS, headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "over_limit")
        page = new_session(client)
        client.post(f"{page}/step", data={"at": "16"})
        assert client.post(f"{page}/step", data={"at": "17"}).status_code == 413
        assert "The session is full" in text_of(client.post(f"{page}/run", data={"at": "17"}, headers=HTMX))
        assert end_of(client, page) == 17
