"""Runs: what they stop at, that they say why they end, how they get on, and that they can be stopped."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.services.running import Run, Until, run_slice
from app.services.session import Branch
from app.services.sessions import Sessions
from app.services.sources import STORY, Source
from app.settings import SERVER_LIMITS, Settings
from app.store import Store
from engine.actions import AddRequest, External, Step
from engine.config import EngineConfig
from engine.tokens import Own
from tests.app.conftest import browser
from tests.app.reading import HTMX, end_of, figures_of, new_session, text_of

ASKS = {"Accept": "application/json"}


def run(client: TestClient, path: str, at: int, **fields: str | int) -> tuple[int, int]:
    answer = client.post(path, data={"at": str(at), **{k: str(v) for k, v in fields.items()}}, headers=ASKS)
    assert answer.status_code == 200, answer.text
    return answer.json()["at"], answer.json()["end"]


@pytest.mark.parametrize(
    ("until", "at", "words"),
    [
        ("finish", 4, "warm finished."),
        ("refuse", 8, "allocate_slots returned None for"),
        ("idle", 3, "the waiting queue is empty."),
        ("count", 3, "3 steps on: as many as were asked for."),
    ],
)
def test_over_what_is_recorded_nothing_is_appended(
    client: TestClient, settings: Settings, until: str, at: int, words: str
) -> None:
    first = {"finish": 0, "refuse": 0, "idle": 1, "count": 0}[until]
    answer = client.post("/story/one-call/run", data={"at": str(first), "until": until, "steps": "3"}, headers=HTMX)
    assert words in text_of(answer)
    assert Store(settings.data).count() == (0, 0)
    assert figures_of(answer)["at"] <= 15


def test_a_run_goes_on_behind_the_end_until_it_happens(client: TestClient) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/run", data={"at": "16", "until": "finish"}, headers=HTMX)
    assert "finished." in text_of(answer)
    end = figures_of(answer)["at"]
    assert run(client, f"{page}/run", end, until="count", steps=2) == (end + 2, end + 2)
    # Below the end it stops at what is recorded.
    assert run(client, f"{page}/run", end - 1, until="count", steps=1) == (end, end + 2)


def test_eviction_and_preemption(client: TestClient) -> None:
    page = new_session(client)
    for number in range(12):
        at = end_of(client, page)
        client.post(f"{page}/add", data={"at": at, "id": f"r{number}", "tokens": "300", "max_tokens": "40"})
    answer = client.post(f"{page}/run", data={"at": str(at + 1), "until": "evict"}, headers=HTMX)
    assert "a cached block was evicted." in text_of(answer)
    end = figures_of(answer)["at"]
    answer = client.post(f"{page}/run", data={"at": str(end), "until": "preempt"}, headers=HTMX)
    assert "preempted" in text_of(answer) or "No request is left" in text_of(answer)


@pytest.mark.parametrize(
    "fields",
    [{"until": "never"}, {"until": "count"}, {"until": "count", "steps": "0"}, {"until": "count", "steps": "x"}],
)
def test_what_a_run_cannot_stop_at(client: TestClient, fields: dict[str, str]) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/run", data={"at": "16", **fields}, headers=ASKS)
    assert answer.status_code == 422
    assert end_of(client, page) == 16


def test_a_livelock_in_which_every_step_does_something_is_told() -> None:
    small = {"num_blocks": 6, "block_size": 4, "max_num_batched_tokens": 8, "max_num_seqs": 2}
    off = {"scheduler_reserve_full_isl": False, "enable_prefix_caching": False}
    config = EngineConfig.from_json({**small, **off})
    branch = Branch(config)
    branch.append(AddRequest("big", (Own(22),), 2))
    state = Run(Until(), 1, 1, 1_000)
    while not state.why:
        run_slice(branch, state, SERVER_LIMITS)
    assert (state.why, state.steps < 100) == ("circle", True)


def test_a_step_that_waits_for_a_load_is_no_livelock() -> None:
    branch = Branch(EngineConfig(20, block_size=4), has_connector=True)
    branch.append(AddRequest("far", (Own(22),), 2, external=External(16, is_async=True, steps=5)))
    state = Run(Until(), 1, 1, 1_000)
    while not state.why:
        run_slice(branch, state, SERVER_LIMITS)
    assert state.why == "nothing_left"


def test_a_long_run_gets_on_by_itself_and_is_stopped_at_a_whole_step(settings: Settings) -> None:
    long = Settings(data=settings.data, steps_a_call=15_000)

    async def scenario() -> tuple[int, int]:
        app = create_app(long)
        transport = httpx2.ASGITransport(app=app)
        headers = {"Origin": "http://testserver"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
            add = {"at": 15, "id": "long", "prompt": {"tokens": 5}, "max_tokens": 4000}
            made = await client.post("/story/one-call/add", json=add, headers=ASKS)
            page = f"/s/{made.json()['session']}"
            config = {"max_model_len": 100_000, "num_blocks": 5_000}
            await client.post(f"{page}/vary", json={"at": 16, **config}, headers=ASKS)
            at = 16
            for number in range(40):
                add = {"branch": "b2", "at": at, "id": f"l{number}", "prompt": {"tokens": 9}, "max_tokens": 4000}
                at = (await client.post(f"{page}/add", json=add, headers=ASKS)).json()["at"]
            begun = await client.post(f"{page}/run", data={"branch": "b2", "at": str(at)}, headers=HTMX)
            assert "of at most 15000 so far" in text_of(begun)
            ahead = figures_of(begun)["at"]
            # Others look and act on other branches meanwhile, and see how it gets on.
            assert (await client.get(f"{page}?branch=main&at=3")).status_code == 200
            told = await client.get(f"{page}/run?branch=b2&at={ahead}", headers=ASKS)
            assert told.json()["why"] == ""
            assert "Running:" in text_of(await client.get(f"{page}?branch=b2"))
            stopped = await client.post(f"{page}/stop", data={"branch": "b2", "at": str(ahead)}, headers=HTMX)
            assert "Then it was stopped." in text_of(stopped)
            end = figures_of(stopped)["at"]
            told = await client.get(f"{page}/run?branch=b2", headers=ASKS)
            assert (told.json()["why"], told.json()["end"]) == ("stopped", end)
            assert "Then it was stopped" in text_of(await client.get(f"{page}/run?branch=b2&from=3", headers=HTMX))
            return ahead, end

    ahead, end = asyncio.run(scenario())
    assert ahead <= end < 15_000
    store = Store(settings.data)
    (session,) = [row[0] for row in store._db.execute("SELECT id FROM sessions")]
    assert len(store.actions(session, "b2")) == end


def test_only_the_owner_stops(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    with browser(settings) as stranger:
        assert stranger.post(f"{page}/stop", data={"branch": "main"}).status_code == 403
    assert client.post(f"{page}/stop", data={"branch": "main"}, headers=ASKS).status_code == 200


def test_a_run_of_a_branch_that_changes_nothing_is_harmless() -> None:
    branch = Branch(EngineConfig(20, block_size=4))
    state = Run(Until("finish"), 0, 0, 10)
    run_slice(branch, state, SERVER_LIMITS)
    assert (state.why, branch.actions) == ("nothing_left", [])
    branch.append(AddRequest("a", (Own(4),), 1))
    state = Run(Until("finish"), 1, 1, 10)
    run_slice(branch, state, SERVER_LIMITS)
    assert (state.why, branch.actions[1:]) == ("finish", [Step()])


def test_a_session_that_an_action_makes_is_locked_until_it_is_answered(settings: Settings) -> None:
    """A run may go on in it by then, and would move what the answer is written from."""

    async def scenario() -> bool:
        sessions = Sessions(settings, Store(settings.data))
        async with sessions.acting_on(Source(STORY, "one-call"), None) as session:
            return bool(session.lock.locked())

    assert asyncio.run(scenario())
