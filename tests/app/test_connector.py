"""External tokens: a connector that comes later, loads and their progress, and what the page says of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.rendering.composer import abort_form
from app.rendering.log import log
from app.rendering.moment import Moment
from app.rendering.requests import requests
from app.rendering.words import plain
from app.services import acting
from app.services.running import Run, Until, run_slice
from app.services.session import Branch, Session
from app.settings import Settings
from engine.actions import Abort, Action, AddRequest, External, Step
from engine.config import EngineConfig, GroupConfig
from engine.record import current_state
from engine.scenario import Limits, parse_scenario
from engine.tokens import Own, Span
from tests.app.conftest import browser
from tests.app.reading import HTMX, LESSON, end_of, figures_of, landed, new_session, tags_of, text_of

GOLDEN = Path(__file__).parent.parent / "golden"
EXTERNAL = {"id": "X", "tokens": "40", "max_tokens": "2", "external_tokens": "32"}
ASKS = {"Accept": "application/json"}
NOTICE = "This scenario has a connector now."


def moment_of(branch: Branch) -> Moment:
    return Moment.of(Session("x", "", b"", branch), branch.head)


def sentences(branch: Branch, kind: str) -> list[str]:
    return [plain(one.words) for one in log(moment_of(branch)).sentences if one.kind == kind]


def branch_of(*actions: Action, config: EngineConfig | None = None) -> Branch:
    """A branch at its end."""
    branch = Branch(config or EngineConfig(13, block_size=4), actions)
    branch.advance(branch.head, branch.end, 60)
    return branch


def test_a_later_connector_replays_the_branch_and_says_so(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/add", data={"at": "16", **EXTERNAL}, headers=HTMX)
    assert answer.status_code == 200
    assert NOTICE in text_of(answer)
    assert "What is shown stayed as it was." in text_of(answer)
    assert figures_of(answer)["from"] is None  # told whole: it is no change on top of what the page shows
    second = client.post(f"{page}/add", data={"at": "17", **EXTERNAL, "id": "Y"}, headers=HTMX)
    assert NOTICE not in text_of(second)
    pages = [client.get(f"{page}?at={at}").text for at in (6, 17, 18)]
    with browser(settings) as again:  # as any later load finds it
        again.cookies = client.cookies
        assert [again.get(f"{page}?at={at}").text for at in (6, 17, 18)] == pages


def test_without_javascript_and_over_http(client: TestClient) -> None:
    answer = client.post("/story/one-call/add", data={"at": "15", **EXTERNAL})
    assert answer.headers["location"].endswith("?branch=main&at=16&connector=same")
    assert NOTICE in text_of(client.get(landed(answer)))
    body = {"at": 15, "id": "X", "prompt": {"tokens": 40}, "max_tokens": 2, "external": {"tokens": 32}}
    made = client.post("/story/one-call/add", json=body, headers={"Accept": "application/json"}).json()
    assert (made["at"], made["replayed_with_connector"]) == (16, True)


def window_branch() -> Branch:
    """A window: with a connector a finished request gives its blocks back in another order (7.15)."""
    config = EngineConfig(9, block_size=4, groups=(GroupConfig("sliding_window", 4, sliding_window=6),))
    return branch_of(AddRequest("a", (Span(1, 20),), 1), Step(), config=config)


def test_what_a_connector_changes_is_the_order_of_the_free_queue() -> None:
    without = window_branch()
    twin = Branch(without.config, without.actions, has_connector=True)
    twin.advance(twin.head, twin.end, 60)
    queues = [list(moment_of(one).pool.free_queue) for one in (without, twin)]
    assert queues == [[6, 7, 8, 5, 4, 3, 2, 1], [6, 7, 8, 3, 2, 1, 5, 4]]
    later = AddRequest("b", (Own(8),), 1, external=External(4))
    assert acting.needs_connector(without, later)
    assert not acting.needs_connector(twin, later)
    twin.append(later)
    loaded = branch_of(*without.actions, later, config=without.config)
    assert current_state(twin.head.simulation) == current_state(loaded.head.simulation)


def test_the_notice_says_when_the_present_has_changed(client: TestClient) -> None:
    config = {"num_blocks": 9, "block_size": 4, "groups": [{"kind": "sliding_window", "sliding_window": 6}]}
    made = client.post("/story/one-call/config", json={"config": config}, headers={"Accept": "application/json"})
    page = f"/s/{made.json()['session']}"
    client.post(f"{page}/add", data={"at": "0", "id": "a", "tokens": "20", "max_tokens": "1"})
    client.post(f"{page}/step", data={"at": "1"})
    assert [cell[0] for cell in figures_of(client.get(page))["queue"]["head"]] == [6, 7, 8, 5, 4, 3, 2, 1]
    answer = client.post(f"{page}/add", data={"at": "2", **EXTERNAL}, headers=HTMX)
    assert "The free queue lay in another order at times" in text_of(answer)
    assert [cell[0] for cell in figures_of(answer)["queue"]["head"]] == [6, 7, 8, 3, 2, 1, 5, 4]


WITHOUT, WITH = [6, 7, 8, 5, 4, 3, 2, 1], [6, 7, 8, 3, 2, 1, 5, 4]


def window_session(client: TestClient) -> str:
    """`window_branch` as a session."""
    config = {"num_blocks": 9, "block_size": 4, "groups": [{"kind": "sliding_window", "sliding_window": 6}]}
    page = f"/s/{client.post(f'{LESSON}/config', json={'config': config}, headers=ASKS).json()['session']}"
    client.post(f"{page}/add", data={"at": "0", "id": "a", "tokens": "20", "max_tokens": "1"})
    client.post(f"{page}/step", data={"at": "1"})
    return page


def queue_of(client: TestClient, page: str, branch: str, at: int) -> list[int]:
    return [cell[0] for cell in figures_of(client.get(f"{page}?branch={branch}&at={at}"))["queue"]["head"]]


def test_a_branch_keeps_the_connector_that_it_inherited(client: TestClient, settings: Settings) -> None:
    page = window_session(client)
    client.post(f"{page}/add", data={"at": "2", **EXTERNAL})
    plain_one = {"at": "2", "id": "b", "tokens": "4", "max_tokens": "1"}
    made = client.post(f"{page}/add", data=plain_one, headers=ASKS).json()
    assert made == {"session": made["session"], "branch": "b2", "at": 3, "end": 3}
    assert queue_of(client, page, "b2", 2) == WITH
    with browser(settings) as again:
        assert queue_of(again, page, "b2", 2) == WITH
    # Nor is it lost where its parent is gone.
    client.post(f"{page}/delete", data={"branch": "main"})
    with browser(settings) as again:
        assert queue_of(again, page, "b2", 2) == WITH


def test_a_connector_comes_to_one_branch_and_to_no_other(client: TestClient, settings: Settings) -> None:
    page = window_session(client)
    client.post(f"{page}/step", data={"at": "2"})
    add = {"id": "b", "tokens": "4", "max_tokens": "1"}
    client.post(f"{page}/add", data={"at": "2", **add})  # b2
    client.post(f"{page}/add", data={"branch": "b2", "at": "2", **add, "id": "c"})  # b3
    answer = client.post(f"{page}/add", data={"branch": "b2", "at": "3", **EXTERNAL}, headers=HTMX)
    assert NOTICE in text_of(answer)
    orders = {"main": WITHOUT, "b2": WITH, "b3": WITHOUT}
    assert {branch: queue_of(client, page, branch, 2) for branch in orders} == orders
    with browser(settings) as again:
        # The children first, and then their parents: none lends the other what isn't alike.
        assert {branch: queue_of(again, page, branch, 2) for branch in reversed(orders)} == dict(orders)
    with browser(settings) as again:
        assert {branch: queue_of(again, page, branch, 2) for branch in orders} == orders
    client.post(f"{page}/add", data={"at": "3", **EXTERNAL})
    with browser(settings) as again:
        assert {branch: queue_of(again, page, branch, 2) for branch in orders} == {**orders, "main": WITH}


def test_a_connector_that_comes_in_the_past_makes_a_branch_and_says_both(client: TestClient) -> None:
    page = window_session(client)
    client.post(f"{page}/step", data={"at": "2"})
    answer = client.post(f"{page}/add", data={"at": "2", **EXTERNAL}, headers=HTMX)
    assert "This is b2 now, a branch that leaves main after 2." in text_of(answer)
    assert NOTICE in text_of(answer)
    assert figures_of(answer)["from"] is None
    assert queue_of(client, page, "main", 2) == WITHOUT
    assert queue_of(client, page, "b2", 2) == WITH
    # What the two have in common isn't alike.
    compared = client.get(f"{page}/compare?a=main&b=b2&at=3")
    assert compared.status_code == 200
    # Without JavaScript the page says it.
    again = client.post(f"{page}/add", data={"at": "1", **EXTERNAL})
    assert again.headers["location"].endswith("?branch=b3&at=2&left=main&connector=same")
    told = text_of(client.get(f"{page}?branch=b3&at=2&left=main&connector=same"))
    assert "a branch that leaves main after 1" in told
    assert NOTICE in told


def test_a_refused_connector_takes_its_branch_back(client: TestClient) -> None:
    page = window_session(client)
    client.post(f"{page}/step", data={"at": "2"})
    before = client.get(page).text
    refused = client.post(f"{page}/add", data={"at": "1", **EXTERNAL, "id": "a"}, headers=ASKS)
    assert refused.status_code == 422
    assert client.get(page).text == before
    assert client.get(f"{page}?branch=b2").status_code == 409


def test_a_refused_action_leaves_the_branch_without_a_connector(client: TestClient) -> None:
    page = new_session(client)
    before = client.get(page).text
    for change in ({"id": "R"}, {"tokens": "5000"}, {"external_tokens": "-1"}):
        assert client.post(f"{page}/add", data={"at": "16", **EXTERNAL, **change}).status_code == 422
    assert client.get(page).text == before
    assert end_of(client, page) == 16


def test_with_several_groups_the_composer_offers_none(client: TestClient) -> None:
    config = {"num_blocks": 33, "groups": [{"kind": "full_attention"}, {"kind": "mamba"}]}
    made = client.post("/story/one-call/config", json={"config": config}, headers={"Accept": "application/json"})
    page = f"/s/{made.json()['session']}"
    names = {tag.get("name") for _, tag in tags_of(client.get(page))}
    assert "tokens" in names
    assert "external_tokens" not in names
    answer = client.post(f"{page}/add", data={"at": "0", **EXTERNAL}, headers=HTMX)
    assert "External tokens can't be had with 2 groups." in text_of(answer)
    assert end_of(client, page) == 0


def loading_branch(steps: int = 3) -> Branch:
    """A prompt of 20 of which 8 tokens come from a connector."""
    return branch_of(AddRequest("r", (Span(1, 20),), 3, external=External(8, True, steps)))


def test_the_progress_of_a_load() -> None:
    branch = loading_branch()
    told = []
    for _ in range(4):
        branch.append(Step())
        panel = requests(moment_of(branch))
        row = next(iter(panel.waiting or panel.running))
        told.append((row.status, row.tag, row.caption, row.blocks, sentences(branch, "load")))
    assert told == [
        (
            "WAITING_FOR_REMOTE_KVS",
            "loading",
            "loading 8 tokens, step 1 of 3",
            2,
            [
                "The connector has 8 external tokens for r, to be loaded in 3 steps.",
                "r takes its blocks and waits while they are loaded; it needs no place among the running.",
            ],
        ),
        ("WAITING_FOR_REMOTE_KVS", "", "loading 8 tokens, step 2 of 3", 2, ["r is loading: step 2 of 3."]),
        (
            "WAITING_FOR_REMOTE_KVS",
            "",
            "8 tokens loaded: may go on in the next step",
            2,
            ["r is loading: step 3 of 3.", "The load of r is through; the next step may use it."],
        ),
        (
            "RUNNING",
            "admitted",
            "8 from the connector + 12 now",
            5,
            ["r uses what was loaded: its full blocks get their hashes."],
        ),
    ]
    assert [part.kind for part in requests(moment_of(branch)).running[0].bar] == ["ext_comp", "new", "later"]


def test_an_aborted_load_keeps_its_blocks_in_sight() -> None:
    branch = loading_branch()
    branch.append(Step())
    assert abort_form(moment_of(branch)).ids == ("r",)
    branch.append(Abort("r"))
    panel = requests(moment_of(branch))
    assert (panel.waiting, panel.waiting_total, panel.running) == ((), 0, ())
    (row,) = panel.leaving
    assert (row.blocks, row.caption) == (2, "its blocks stay until the load is through, step 1 of 3")
    branch.append(Step())
    branch.append(Step())
    assert requests(moment_of(branch)).leaving == ()
    assert sentences(branch, "load") == ["The load of r is through; its blocks are free now."]


def test_a_run_goes_on_while_a_load_is_under_way() -> None:
    branch = loading_branch(steps=20)
    run = Run(Until(), branch.end, branch.end, 1000)
    while not run.why:
        run_slice(branch, run, Limits())
    assert (run.why, branch.head.simulation.scheduler.requests) == ("nothing_left", {})
    aborted = loading_branch(steps=20)
    aborted.append(Step())
    aborted.append(Abort("r"))
    run = Run(Until(), aborted.end, aborted.end, 1000)
    run_slice(aborted, run, Limits())
    assert run.why == "nothing_left"


def test_a_load_at_once() -> None:
    branch = branch_of(AddRequest("r", (Span(1, 20),), 3, external=External(9)), Step())
    assert sentences(branch, "load") == ["The connector supplies 9 external tokens for r at once."]
    assert requests(moment_of(branch)).running[0].caption == "9 from the connector + 11 now"


@pytest.mark.parametrize("number", range(12))
def test_scenario_files_keep_working(number: int) -> None:
    recorded = json.loads(gzip.decompress((GOLDEN / f"connector-{number:04}.json.gz").read_bytes()))
    scenario = parse_scenario(recorded["scenario"])
    branch = branch_of(*scenario.actions, config=scenario.config)
    assert current_state(branch.head.simulation) == recorded["records"][-1]["state"]
