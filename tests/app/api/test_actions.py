"""Acting by lists: all or none, appended, moved over, or to a branch; each answered with its record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from starlette.testclient import TestClient

import app.services.batch
from app.settings import Settings
from tests.app.api.conftest import STEP, Api, Json, add, error_of, program, scenario


def replayed(client: TestClient, *actions: Json, **config: object) -> list[Json]:
    """The records of a scenario."""
    answer = client.post("/api/replay", json=scenario(*actions, **config))
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def test_appended_actions_are_answered_with_their_records(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP)
    done = api.act(add("bob"), STEP, at=2)
    assert done.status_code == 200
    assert list(done.json()) == ["branch", "at", "records"]
    assert (done.json()["branch"], done.json()["at"]) == ("main", 4)
    assert done.json()["records"] == replayed(client, add("ada"), STEP, add("bob"), STEP)[2:]
    (call,) = [call for call in done.json()["records"][1]["allocate_slots"] if call["request"] == "bob"]
    assert (call["new_comp"], call["hit_blocks"]) == (32, [[1, 2]])


def test_one_action_needs_no_list_and_no_place(client: TestClient) -> None:
    api = Api(client, add("ada"))
    answer = client.post(f"{api.path}/actions", json={"actions": STEP}, headers=api.headers)
    assert (answer.json()["branch"], answer.json()["at"], len(answer.json()["records"])) == ("main", 2, 1)


def test_a_body_is_json_whatever_its_content_type_says(client: TestClient) -> None:
    api = Api(client)
    body = json.dumps({"actions": add("ada")}).encode()
    headers = {**api.headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert client.post(f"{api.path}/actions", content=body, headers=headers).json()["at"] == 1


@pytest.mark.parametrize(
    ("last", "code", "where"),
    [
        (add("ada"), "live_id", "actions[2].id"),
        (add("cy", tokens=10**7), "over_limit", "actions[2].prompt"),
        ({**add("cy"), "prompt": {"continue": "nobody"}}, "unknown_id", "actions[2].prompt"),
        ({**add("cy"), "prompt": [[1, 5000]]}, "prompt_too_long", "actions[2].prompt"),
        ({"do": "jump"}, "unknown_action", "actions[2].do"),
        ({"do": "step", "aborts": []}, "unknown_key", "actions[2].aborts"),
    ],
)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_all_or_none(client: TestClient, last: Json, code: str, where: str, at: int) -> None:
    api = Api(client, add("ada"), STEP, STEP, max_model_len=4096)
    before = api.get().json()
    lead = [add("ada"), STEP] if at == 0 else [STEP, STEP] if at == 1 else [add("bob"), STEP]
    assert error_of(api.act(*lead, last, at=at))[1:] == (code, where)
    assert api.get().json() == before
    assert error_of(api.get("?branch=b2")) == (409, "stale", "branch")
    assert api.act(STEP, at=3).json()["at"] == 4


def test_a_single_actions_place_has_no_index(client: TestClient) -> None:
    api = Api(client, add("ada"))
    for wrong, where in (({**add("ada")}, "actions.id"), ({"do": "abort"}, "actions")):
        answer = client.post(f"{api.path}/actions", json={"actions": wrong}, headers=api.headers)
        assert (answer.status_code, error_of(answer)[2]) == (422, where)


def test_before_the_end_what_is_recorded_only_moves_on(client: TestClient) -> None:
    recorded = [add("ada"), STEP, add("bob"), STEP]
    api = Api(client, *recorded)
    for _ in range(2):
        done = api.act(*recorded[1:3], at=1).json()
        assert (done["branch"], done["at"]) == ("main", 3)
        assert done["records"] == replayed(client, *recorded)[1:3]
    assert api.get().json()["actions"] == recorded


def test_moving_on_goes_over_into_appending(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP)
    done = api.act(STEP, STEP, add("bob"), at=1).json()
    assert (done["branch"], done["at"]) == ("main", 4)
    assert api.get().json()["actions"] == [add("ada"), STEP, STEP, add("bob")]
    assert done["records"] == replayed(client, add("ada"), STEP, STEP, add("bob"))[1:]


def test_before_the_end_anything_else_makes_a_branch_and_both_futures_stay(client: TestClient) -> None:
    recorded = [add("ada"), STEP, add("bob"), STEP]
    api = Api(client, *recorded)
    done = api.act(STEP, add("cy"), STEP, at=1).json()
    assert (done["branch"], done["at"]) == ("b2", 4)
    assert done["records"] == replayed(client, add("ada"), STEP, add("cy"), STEP)[1:]
    assert api.get().json()["actions"] == recorded
    assert api.get("?branch=b2").json()["actions"] == [add("ada"), STEP, add("cy"), STEP]
    again = api.act(STEP, add("cy"), STEP, at=1).json()
    assert again == done
    longer = api.act(STEP, add("cy"), STEP, STEP, at=1).json()
    assert (longer["branch"], longer["at"]) == ("b2", 5)
    assert error_of(api.get("?branch=b3"))[0] == 409


def test_a_step_means_just_a_step(client: TestClient) -> None:
    api = Api(client, add("ada"), add("bob"), STEP)
    done = api.act(STEP, at=1).json()
    assert (done["branch"], done["at"], done["records"][0]["do"]) == ("b2", 2, "step")


def test_an_abort_of_nobody_does_nothing_as_in_a_scenario(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP)
    done = api.act({"do": "abort", "id": "nobody"}).json()
    assert done["records"][0]["state"] == api.get("?at=2").json()["state"]


def test_a_first_external_action_replays_with_a_connector(client: TestClient) -> None:
    api = Api(client, add("ada"), STEP)
    loaded = add("bob", shared=64, external={"tokens": 48})
    done = api.act(STEP, loaded, STEP, at=1).json()
    assert done["replayed_with_connector"] == "same"
    assert done["records"] == replayed(client, add("ada"), STEP, loaded, STEP)[1:]
    assert "replayed_with_connector" not in api.act(STEP).json()
    made = api.act(add("cy", external={"tokens": 16}), at=1).json()
    assert made["branch"] == "b2"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"branch": "b9", "actions": STEP}, (409, "stale", "branch")),
        ({"at": 3, "actions": STEP}, (409, "stale", "at")),
        ({"at": -1, "actions": STEP}, (422, "out_of_range", "at")),
        ({"at": True, "actions": STEP}, (422, "wrong_type", "at")),
        ({"branch": 3, "actions": STEP}, (422, "wrong_type", "branch")),
        ({"actions": []}, (422, "wrong_type", "actions")),
        ({"actions": "step"}, (422, "wrong_type", "actions")),
        ({"actions": [[]]}, (422, "wrong_type", "actions[0]")),
        ({}, (422, "missing_key", "")),
        ({"actions": STEP, "instead": True}, (422, "unknown_key", "instead")),
        ([], (422, "wrong_type", "")),
        ({"actions": [STEP] * 1001}, (413, "over_limit", "actions")),
        ({"actions": [STEP] * 20_001}, (413, "over_limit", "actions")),
    ],
)
def test_wrong_bodies(client: TestClient, body: Any, error: tuple[int, str, str]) -> None:  # noqa: ANN401
    api = Api(client, add("ada"), STEP)
    answer = client.post(f"{api.path}/actions", json=body, headers=api.headers)
    assert error_of(answer) == error
    assert api.end == 2


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"actions": NaN}', b"\xef\xbb\xbf{}", b"[" * 100_000])
def test_malformed_bodies(client: TestClient, body: bytes) -> None:
    api = Api(client)
    answer = client.post(f"{api.path}/actions", content=body, headers=api.headers)
    assert error_of(answer)[:2] == (400, "malformed_json")


def test_records_that_are_too_large_are_refused_before_anything_is_stored(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.services.batch, "MOST_BYTES", 3_000)
    api = Api(client, add("ada"))
    assert api.act(STEP).status_code == 200
    assert error_of(api.act(*[STEP] * 9)) == (413, "over_limit", "actions")
    assert api.end == 2


def test_what_takes_too_long_changes_nothing(client: TestClient, settings: Settings) -> None:
    api = Api(client, add("ada"), STEP)
    with program(replace(settings, replay_seconds=0.0)) as hurried:
        api.client = hurried
        assert error_of(api.act(STEP, STEP))[0] in (413, 503)
    with program(settings) as again:
        api.client = again
        assert api.end == 2


def test_counts_over_all_actions_of_the_branch_are_limited(settings: Settings) -> None:
    few = replace(settings, limits=replace(settings.limits, actions=4, add_requests=2))
    with program(few) as client:
        api = Api(client, add("ada"), STEP)
        assert error_of(api.act(STEP, STEP, STEP)) == (413, "over_limit", "actions")
        assert error_of(api.act(add("bob"), add("cy"))) == (413, "over_limit", "actions")
        assert api.act(STEP, STEP).json()["at"] == 4
        assert error_of(api.act(STEP)) == (413, "over_limit", "actions")


ACTIONS = st.sampled_from(
    [
        STEP,
        STEP,
        STEP,
        add("ada"),
        add("bob", 40),
        add("cy", 5),
        {"do": "abort", "id": "ada"},
        {"do": "reset_prefix_cache"},
    ]
)


@hypothesis(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=12), st.lists(st.integers(1, 4), min_size=12, max_size=12))
def test_however_a_scenario_is_sent_the_records_are_the_same(
    tmp_path: Path, actions: list[Json], cuts: list[int]
) -> None:
    with program(Settings(data=tmp_path)) as client:
        lines = client.post("/api/replay", json=scenario(*actions)).text.splitlines()
        records = [record for record in map(json.loads, lines) if "error" not in record]
        api, got = Api(client), list[Json]()
        for size in cuts:
            some = actions[len(got) : len(got) + size]
            done = api.act(*some) if some else None
            if done is None or done.status_code != 200:
                break
            got += done.json()["records"]
        assert got == records[: len(got)]
        assert api.get().json()["actions"] == actions[: len(got)]
        if len(records) == len(actions):
            assert len(got) == len(actions)
