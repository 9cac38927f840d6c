"""The probe for programs: the numbers of the call, all eight stages, the verdict; nothing changes."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.app.api.conftest import STEP, Api, Json, add, error_of

STAGES = ["gate", "release", "count", "check", "touch", "pop", "hash", "return"]


def probe(api: Api, **asked: object) -> Json:
    """Ask, without any secret."""
    answer = api.client.post(f"{api.path}/probe", json=asked)
    assert answer.status_code == 200, answer.text
    told: Json = answer.json()
    assert list(told) == ["allocate_slots", "stages", "verdict"]
    assert [stage["stage"] for stage in told["stages"]] == STAGES
    return told


def test_a_waiting_request_is_asked_for_with_its_lookup(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP, add("bob"))
    told = probe(api, request="bob")
    call = told["allocate_slots"]
    assert (call["new_comp"], call["new"], call["hit_blocks"], call["new_blocks"]) == (32, 20, [[1, 2]], [[5, 6]])
    assert told["verdict"] == "Granted. bob reuses 2 cached blocks and takes 2 new ones."
    gate, _, count, check, touch, pop, hashed, back = told["stages"]
    assert (gate["passes"], gate["tokens"], gate["needed"], gate["free"]) == (True, 52, 2, 7)
    assert count["groups"][0] | {"need": 4, "held": 0, "hits": 2, "total": 2} == count["groups"][0]
    assert (check["needed"], check["spare"]) == (2, 5)
    assert touch["blocks"] == [{"group": 0, "block": block, "ref_before": 1, "place": None} for block in (1, 2)]
    assert [popped["block"] for popped in pop["blocks"]] == [5, 6]
    assert [one["block"] for one in hashed["blocks"]] == [5]
    assert back == {"stage": "return", "reached": True, "free_before": 7, "free_after": 5, "new_blocks": [[5, 6]]}
    step = api.act(STEP).json()["records"][0]["allocate_slots"][-1]
    assert step == call


def test_a_refusal(client: TestClient) -> None:
    api = Api(client, add("ada", 80), STEP, add("bob", 100))
    told = probe(api, request="bob")
    assert told["allocate_slots"]["new_blocks"] is None
    assert told["verdict"] == "Refused. bob needs 7 blocks, and 3 more would have to be free."
    assert [stage["reached"] for stage in told["stages"]] == [True, *[False] * 6, True]
    assert told["stages"][0]["spare"] == -3
    assert told["stages"][1] == {"stage": "release", "reached": False}


def test_arguments_of_ones_own_at_any_moment(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP, STEP)
    told = probe(api, request="ada", new=1, lookahead=16, at=2)
    assert (told["allocate_slots"]["comp"], told["allocate_slots"]["lookahead"]) == (52, 16)
    assert told["verdict"] == "Granted. ada takes 1 new block."
    alone = probe(api, request="ada", new=1, reserved_blocks=3, full_sequence_must_fit=True, has_scheduled_reqs=False)
    assert (alone["allocate_slots"]["comp"], alone["allocate_slots"]["reserved_blocks"]) == (53, 3)


def test_nothing_changes(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP, add("bob"))
    before = api.get().json()
    probe(api, request="bob", branch="main", new=None)
    assert api.get().json() == before


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"request": "cy"}, (422, "unknown_request", "request")),
        ({"request": 3}, (422, "wrong_type", "request")),
        ({}, (422, "missing_key", "")),
        ({"request": "ada", "new": -1}, (422, "out_of_range", "new")),
        ({"request": "ada", "new": 10**9}, (422, "out_of_range", "new")),
        ({"request": "ada", "new": 400}, (422, "too_many_tokens", "new")),
        ({"request": "ada", "new_comp": 16}, (422, "hit_while_running", "new_comp")),
        ({"request": "ada", "new": "1"}, (422, "wrong_type", "new")),
        ({"request": "ada", "full_sequence_must_fit": 1}, (422, "wrong_type", "full_sequence_must_fit")),
        ({"request": "ada", "news": 1}, (422, "unknown_key", "news")),
        ({"request": "ada", "at": 3}, (409, "stale", "at")),
        ({"request": "ada", "at": 0}, (422, "unknown_request", "request")),
        ({"request": "ada", "branch": "b2"}, (409, "stale", "branch")),
    ],
)
def test_wrong_questions(client: TestClient, body: Any, error: tuple[int, str, str]) -> None:  # noqa: ANN401
    api = Api(client, add("ada"), STEP)
    assert error_of(client.post(f"{api.path}/probe", json=body)) == error


def test_an_unknown_session_is_told_before_anything_else(client: TestClient) -> None:
    assert error_of(client.post("/api/sessions/nobody/probe", content=b"{")) == (404, "unknown_session", "session")
