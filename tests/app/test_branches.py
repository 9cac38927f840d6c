"""Branches: made by acting below the end, on another config, copied; named, switched, deleted; a thousand of them."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from starlette.testclient import TestClient

from app.settings import Settings
from app.store import FILE, Store, StoredBranch
from tests.app.conftest import browser
from tests.app.reading import HTMX, end_of, figures_of, new_session, tags_of, text_of

ASKS = {"Accept": "application/json"}
ADD = {"id": "A", "tokens": "20", "max_tokens": "2"}


def post(client: TestClient, path: str, **fields: str | int) -> dict[str, Any]:
    answer = client.post(path, data={name: str(value) for name, value in fields.items()}, headers=ASKS)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_acting_below_the_end_makes_a_branch_and_both_futures_stay(client: TestClient) -> None:
    page = new_session(client)
    told = post(client, f"{page}/add", at=5, **ADD)
    assert (told["branch"], told["at"], told["end"]) == ("b2", 6, 6)
    assert figures_of(client.get(page))["at"] == 16
    assert figures_of(client.get(f"{page}?branch=b2"))["at"] == 6
    assert post(client, f"{page}/step", branch="b2", at=6)["end"] == 7
    assert end_of(client, page) == 16


def test_the_recorded_action_only_moves_on_branch_or_not(client: TestClient) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    again = post(client, f"{page}/add", at=5, **ADD)
    assert (again["branch"], again["at"], again["end"]) == ("b2", 6, 6)
    assert post(client, f"{page}/add", branch="b2", at=5, **ADD)["branch"] == "b2"
    assert post(client, f"{page}/step", branch="b2", at=3)["end"] == 6
    assert listed_in(client, page) == ["main", "b2"]


def listed_in(client: TestClient, page: str) -> list[str]:
    text = client.get(f"{page}/branches").text
    return [part.partition('"')[0] for part in text.split('data-branch="')[1:]]


def test_step_here_instead(client: TestClient) -> None:
    page = new_session(client)
    assert post(client, f"{page}/step", at=0)["branch"] == "main"
    told = post(client, f"{page}/step", at=0, instead="on")
    assert (told["branch"], told["at"], told["end"]) == ("b2", 1, 1)
    # A recorded step is the same step.
    assert post(client, f"{page}/step", at=15, instead="on")["branch"] == "main"


def test_a_branch_of_the_builtin_makes_a_session_with_both(client: TestClient) -> None:
    told = post(client, "/story/one-call/add", at=3, **ADD)
    page = f"/s/{told['session']}"
    assert (told["branch"], told["at"]) == ("b2", 4)
    assert end_of(client, page) == 15
    assert listed_in(client, page) == ["main", "b2"]


def test_a_refused_action_makes_no_branch(client: TestClient) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/add", data={**ADD, "at": "5", "tokens": "5000"}, headers=HTMX)
    assert answer.status_code == 422
    assert listed_in(client, page) == ["main"]
    assert 'value="5000"' in answer.text


def test_htmx_gets_the_whole_of_the_new_branch(client: TestClient) -> None:
    page = new_session(client)
    answer = client.post(f"{page}/add", data={**ADD, "at": "5"}, headers=HTMX)
    assert answer.headers["hx-push-url"] == "?branch=b2&at=6"
    data = figures_of(answer)
    assert (data["from"], data["branch"], data["at"]) == (None, "b2", 6)
    assert "This is b2 now, a branch that leaves main after 5." in text_of(answer)


def test_names(client: TestClient) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    post(client, f"{page}/rename", branch="b2", at=6, name="  smaller   pool ")
    assert "smaller pool" in text_of(client.get(f"{page}?branch=b2"))
    for name in ("", "main", "x" * 61, "a\u202eb"):
        answer = client.post(f"{page}/rename", data={"branch": "b2", "name": name}, headers=ASKS)
        assert (answer.status_code, answer.json()["error"]["where"]) == (422, "name")
    hostile = "<b>x</b>"
    post(client, f"{page}/rename", branch="b2", name=hostile)
    assert hostile not in client.get(f"{page}?branch=b2").text
    assert hostile not in client.get(f"{page}/branches?branch=b2").text


def origins_in(client: TestClient, page: str) -> list[str]:
    """As the list of branches tells where each comes from."""
    rows = text_of(client.get(f"{page}/branches"))
    return re.findall(r"\S+ leaves .+? after \d+", rows)


def test_a_new_branch_has_neither_the_id_nor_the_name_of_another(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    post(client, f"{page}/rename", branch="b2", name="b3")
    assert post(client, f"{page}/add", at=4, **ADD)["branch"] == "b4"
    assert listed_in(client, page) == ["main", "b2", "b4"]
    post(client, f"{page}/rename", branch="b4", name="B6")
    post(client, f"{page}/delete", branch="b4")
    with browser(settings) as again:
        again.cookies = client.cookies
        assert [post(again, f"{page}/add", at=at, **ADD)["branch"] for at in (2, 3)] == ["b5", "b7"]


def test_no_branch_is_called_what_an_address_calls_another(client: TestClient) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    post(client, f"{page}/add", at=4, **ADD)
    post(client, f"{page}/rename", branch="b2", name="other")
    post(client, f"{page}/rename", branch="main", name="first")
    post(client, f"{page}/delete", branch="b3")
    for branch, name in (("b2", "first"), ("b2", "FIRST"), ("b2", "main"), ("b2", "b3"), ("main", "b2")):
        answer = client.post(f"{page}/rename", data={"branch": branch, "name": name}, headers=ASKS)
        error = answer.json()["error"]
        assert (answer.status_code, error["message"]) == (422, "Another branch has, or had, this name."), name
    for branch, name in (("b2", "b2"), ("main", "main"), ("main", "Main")):
        post(client, f"{page}/rename", branch=branch, name=name)


def test_where_a_branch_left_one_that_is_gone_is_told_so(client: TestClient) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    assert origins_in(client, page) == ["b2 leaves main after 5"]
    post(client, f"{page}/delete", branch="main")
    assert origins_in(client, page) == ["b2 leaves main (deleted) after 5"]
    post(client, f"{page}/rename", branch="b2", name="only")
    assert origins_in(client, page) == ["only leaves main (deleted) after 5"]


def test_deleting_leaves_children_their_actions(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    for at in range(6, 10):
        post(client, f"{page}/step", branch="b2", at=at)
    post(client, f"{page}/add", branch="b2", at=8, **{**ADD, "id": "B"})
    before = figures_of(client.get(f"{page}?branch=b3"))["requests"]
    gone = post(client, f"{page}/delete", branch="b2", at=7)
    assert gone["branch"] == "main"
    assert client.get(f"{page}?branch=b2").status_code == 409
    assert client.get(f"{page}/frame?branch=b3&at=9").status_code == 200
    with browser(settings) as again:
        assert again.get(f"{page}?branch=b2").status_code == 409
        assert figures_of(again.get(f"{page}?branch=b3"))["requests"] == before
    assert listed_in(client, page) == ["main", "b3"]
    post(client, f"{page}/delete", branch="main", at=7)
    only = client.post(f"{page}/delete", data={"branch": "b3"}, headers=ASKS)
    assert (only.status_code, only.json()["error"]["message"]) == (422, "This is the only branch.")
    assert figures_of(client.get(f"{page}?branch=b3"))["at"] == 9
    # Ids are never used again.
    assert post(client, f"{page}/add", branch="b3", at=2, **ADD)["branch"] == "b4"


def test_the_actions_of_a_deleted_branch_go_with_the_last_that_needs_them(
    client: TestClient, settings: Settings
) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    post(client, f"{page}/step", branch="b2", at=6)
    post(client, f"{page}/add", branch="b2", at=6, **{**ADD, "id": "B"})
    post(client, f"{page}/delete", branch="b2")
    store = Store(settings.data)
    assert len(store.actions(page.removeprefix("/s/"), "b2")) == 2
    post(client, f"{page}/delete", branch="b3")
    assert store.actions(page.removeprefix("/s/"), "b2") == ()
    assert store.actions(page.removeprefix("/s/"), "b3") == ()


def test_what_if(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    told = post(client, f"{page}/vary", at=9, knob="block_size", value="32")
    assert (told["branch"], told["at"], told["end"]) == ("b2", 9, 16)
    data = figures_of(client.get(f"{page}?branch=b2"))
    assert data["pool"]["block_size"] == 32
    assert "main on another config" in text_of(client.get(f"{page}/branches?branch=b2"))
    child = post(client, f"{page}/add", branch="b2", at=4, **ADD)
    with browser(settings) as again:
        assert figures_of(again.get(f"{page}?branch=b2"))["pool"]["block_size"] == 32
        assert figures_of(again.get(f"{page}?branch={child['branch']}"))["pool"]["block_size"] == 32
    for knob, value in (("block_size", "0"), ("watermark", "1.5"), ("policy", "fair"), ("colour", "1"), ("policy", "")):
        answer = client.post(f"{page}/vary", data={"knob": knob, "value": value}, headers=ASKS)
        assert answer.status_code == 422, (knob, value)
    assert client.post(f"{page}/vary", data={"knob": "num_blocks", "value": "200001"}, headers=ASKS).status_code == 413


def test_each_branch_has_a_line_with_its_own_signs(client: TestClient) -> None:
    page = new_session(client)
    post(client, f"{page}/vary", at=9, knob="scheduler_reserve_full_isl", value="off")
    post(client, f"{page}/run", branch="b2", at=16)
    post(client, f"{page}/add", at=5, **ADD)
    post(client, f"{page}/step", branch="b3", at=6)
    answer = client.get(f"{page}/branches?branch=b2&at=17")
    lists = [dict(attrs)["style"] for tag, attrs in tags_of(answer) if tag == "ol"]
    assert lists == ["--all: 70; --at: 17"]
    lines = {
        dict(a)["data-branch"]: dict(a)["style"] for tag, a in tags_of(answer) if tag == "li" and "data-branch" in a
    }
    assert lines == {
        "main": "--depth: 0; --from: 0; --end: 16; --up: 0",
        "b2": "--depth: 1; --from: 0; --end: 70; --up: 1",
        "b3": "--depth: 1; --from: 5; --end: 7; --up: 2",
    }
    rows = re.split(r"<li class=\"branch", answer.text)[1:]
    signs = [re.findall(r'<i class="sign (\w+)(?: past)?" style="--k: (\d+)">', row) for row in rows]
    assert signs[0] == [("finished", "2"), ("refused", "15")]
    assert signs[1] == [
        ("finished", "2"),
        ("preempted", "18"),
        ("finished", "47"),
        ("preempted", "54"),
        ("finished", "69"),
    ]
    assert signs[2] == []  # warm finished in main, before it left
    assert [("now" in row[:6], "compare here" in row) for row in rows] == [(False, False), (True, True), (False, False)]


def test_what_if_ends_before_an_action_that_is_impossible_there(client: TestClient) -> None:
    page = new_session(client, kind="run")
    answer = client.post(f"{page}/vary", data={"knob": "max_model_len", "value": "200"}, headers=HTMX)
    words = text_of(answer)
    assert "It ends after 2 of" in words
    assert "Action 3 is impossible here: the prompt has 945 tokens, more than max_model_len, 200." in words
    assert figures_of(answer)["at"] == figures_of(client.get(f"{page}?branch=b2"))["at"] == 2


def test_a_program_turns_several_knobs(client: TestClient) -> None:
    page = new_session(client)
    answer = client.post(
        f"{page}/vary", json={"at": 3, "watermark": 0.1, "scheduler_reserve_full_isl": False}, headers=ASKS
    )
    assert (answer.json()["branch"], answer.json()["at"]) == ("b2", 3)


def test_a_stranger_forks_a_copy_of_his_own(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    post(client, f"{page}/add", at=5, **ADD)
    with browser(settings) as stranger:
        assert stranger.post(f"{page}/rename", data={"branch": "b2", "name": "mine"}).status_code == 403
        answer = stranger.post(f"{page}/fork", data={"branch": "b2", "at": "4"})
        copy = "/s/" + answer.headers["location"].removeprefix("../").partition("?")[0]
        assert answer.headers["location"].endswith("?branch=b2&at=4")
        assert copy != page
        assert figures_of(stranger.get(f"{copy}?branch=b2"))["at"] == 6
        told = post(stranger, f"{copy}/step", branch="b2", at=6)
        assert told["end"] == 7
    assert figures_of(client.get(f"{page}?branch=b2"))["at"] == 6
    assert client.post("/s/unknown/fork", headers=ASKS).status_code == 404


def test_a_database_from_before_branches(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    with sqlite3.connect(settings.data / FILE) as old:
        old.execute("DROP TABLE branches")
        old.execute("PRAGMA user_version = 0")
    old.close()
    with browser(settings) as again:
        again.cookies = client.cookies
        assert figures_of(again.get(page))["at"] == 16
        assert post(again, f"{page}/step", at=16)["end"] == 17
        assert post(again, f"{page}/add", at=5, **ADD)["branch"] == "b2"


def test_a_thousand_branches(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    for number in range(30):
        post(client, f"{page}/add", at=number % 15, **{**ADD, "id": f"X{number}"})
    store, session = Store(settings.data), page.removeprefix("/s/")
    add = store.actions(session, "b2")[0]
    rows = [StoredBranch(f"b{n}", f"b{n}", "main", 7) for n in range(32, 1001)]
    for number, row in enumerate(rows, 31):
        store.add_branch(session, number, row, [add.replace("X0", f"Y{number}")])
    with browser(settings) as again:
        again.cookies = client.cookies
        for branch in ("b900", "b2", "main", "b31"):
            assert figures_of(again.get(f"{page}?branch={branch}"))["branch"] == branch
        listed = again.get(f"{page}/branches?branch=b900")
        assert "b900" in listed.text
        assert "800 more" in text_of(listed)
        full = again.post(f"{page}/add", data={"at": "4", **ADD}, headers=ASKS)
        assert full.status_code == 422
        assert "takes no more" in full.text
        assert figures_of(again.get(page))["at"] == 16
