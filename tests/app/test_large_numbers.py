"""Numbers that a browser can't count to are refused where they come in; the largest that are taken can be shown."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.services.links import encode
from engine.scenario import parse_scenario
from tests.app.reading import figures_of, new_session, text_of

ASKS = {"Accept": "application/json"}
POOL = {"num_blocks": 40, "block_size": 2**59}
MOST = {"num_blocks": 2, "block_size": 2**52, "max_model_len": 2**53, "max_num_batched_tokens": 2**53}
LARGE = 2**63 - 1


def test_a_pool_of_too_many_tokens_is_refused_wherever_it_comes_in(client: TestClient) -> None:
    scenario = {"version": 1, "config": POOL, "actions": []}
    page = new_session(client)
    code = encode(parse_scenario(scenario), 0)
    for answer in (
        client.post("/api/sessions", json=scenario),
        client.post("/api/replay", json=scenario),
        client.post("/edit", json=scenario, headers=ASKS),
        client.post("/story/one-call/config", json={"config": POOL, "keep_actions": False}, headers=ASKS),
        client.post(f"{page}/vary", json={"block_size": 2**59}, headers=ASKS),
        client.get(f"/p/{code}/", headers=ASKS),
    ):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["where"]) == (413, "over_limit", "config.block_size")
        assert error["expected"] == "at most 9007199254740992, 2^53"


def test_the_form_says_so_beside_the_field(client: TestClient) -> None:
    typed = {
        "enable_chunked_prefill": "on",
        "groups.0.kind": "full_attention",
        **{name: str(value) for name, value in POOL.items()},
    }
    answer = client.post("/story/one-call/config", data=typed)
    assert f"{2**59} is more than a browser can count exactly. Expected: at most 9007199254740992, 2^53." in text_of(
        answer
    )


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_largest_numbers_can_be_shown(client: TestClient, steps: int) -> None:
    added = {"do": "add_request", "id": "A", "prompt": [LARGE - 9, 10], "max_tokens": LARGE, "priority": -LARGE}
    more = {"stop_token_ids": [LARGE], "accept": [LARGE], "external": {"tokens": LARGE, "steps": LARGE}}
    actions = [{**added, **more}, *[{"do": "step"}] * steps]
    made = client.post("/api/sessions", json={"version": 1, "config": MOST, "actions": actions})
    assert made.status_code == 201, made.text
    page = f"/s/{made.json()['id']}"
    for path in ("", "/frame", "/config", "/edit", "/share", "/branches", "/export.html"):
        assert client.get(f"{page}{path}").status_code == 200, path
    figures = figures_of(client.get(page))
    assert figures["pool"]["block_size"] == 2**52
    assert figures["blocks"]["slots"]["all"] == 2**52
