"""Two branches side by side: where they part, in a sentence; what differs, marked in words and in the data drawn."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from app.services.aspects import Aspects
from app.services.columns import Notable
from app.services.comparing import MOST_STRETCHES, _joined, signs
from app.services.cursor import BlockCounts
from app.services.session import Branch
from engine.actions import Step
from engine.config import EngineConfig
from tests.app.reading import new_session, tags_of, text_of

ADD = {"id": "A", "tokens": "20", "max_tokens": "2"}
GATE = {"knob": "scheduler_reserve_full_isl", "value": "off"}


def part_of(text: str, tag: str, name: str) -> str:
    found = re.search(rf'<{tag}[^>]* ?id="{name}"[^>]*>(.*?)</{tag}>', text, re.DOTALL)
    assert found, name
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", re.sub(r"</?b\b[^>]*>", "", found[1]))).split())


def parting(client: TestClient, path: str) -> str:
    return part_of(client.get(path).text, "h2", "parting")


def data(client: TestClient, path: str) -> dict[str, Any]:
    found = re.search(r'id="comparison-data">(.*?)</script>', client.get(path).text)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def gate(client: TestClient) -> str:
    """main and gate off, both to their ends: 73 and 70 actions. second is refused after 15, or admitted."""
    page = new_session(client)
    client.post(f"{page}/vary", data=GATE)
    for branch in ("main", "b2"):
        client.post(f"{page}/run", data={"branch": branch, "at": "15"})
    return f"{page}/compare?a=main&b=b2&at="


def test_another_action(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"at": "5", **ADD})
    path = f"{page}/compare?a=main&b=b2&at="
    assert parting(client, f"{path}9") == "They part after 5 actions: main goes on with step 3, b2 with add_request A."
    assert "ends after 6" in text_of(client.get(f"{path}9"))
    answer = client.get(f"{path}5")
    before = answer.text
    assert "differs" not in " ".join(str(dict(attrs).get("class")) for _, attrs in tags_of(answer))
    assert part_of(before, "p", "here") == "Here, in add_request R, every block is the same in both."
    there = client.get(f"{path}6").text
    assert part_of(there, "p", "here").startswith(
        "Here, after 6 actions, R runs in main and waits in b2, A is not there in main"
    )
    assert "step 3 (differs)" in part_of(there, "div", "head-a")
    assert "add_request A (differs)" in part_of(there, "div", "head-b")


def test_the_same(client: TestClient) -> None:
    page = new_session(client)
    same = "They do not differ: every action does the same in both."
    assert parting(client, f"{page}/compare") == same
    client.post(f"{page}/vary", data={"knob": "max_num_seqs", "value": "99"})
    assert parting(client, f"{page}/compare?b=b2") == same
    told = data(client, f"{page}/compare?b=b2&at=9")
    assert not any(told["lanes"].values())
    assert not any(cell[3] for side in told["sides"] for cell in side["pool"]["cells"])
    assert "go-parting" not in client.get(f"{page}/compare?b=b2").text
    client.post(f"{page}/step", data={"at": "16"})
    longer = parting(client, f"{page}/compare?b=b2")
    assert longer == "They do not differ as far as both go: max_num_seqs 99 ends after 16, main goes on."


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("watermark", "0.5", "R is refused in watermark 0.5; in main it gets 15 blocks, 8 of them hits."),
        ("block_size", "32", "main takes 9 blocks (1–9) from the free queue, block size 32 5 blocks (1–5)."),
        ("max_num_batched_tokens", "256", "schedules"),
        ("num_blocks", "50", "is refused in blocks 50"),
    ],
)
def test_another_config(client: TestClient, knob: str, value: str, words: str) -> None:
    page = new_session(client)
    client.post(f"{page}/vary", data={"knob": knob, "value": value})
    text = client.get(f"{page}/compare?a=main&b=b2&at=3").text
    assert words in part_of(text, "h2", "parting")
    assert f"{knob} {value} (differs)" in part_of(text, "div", "head-b")


def test_what_is_ringed(client: TestClient) -> None:
    """Every number is read from the two engines: second holds 79 to 97 where the gate is off, and nothing in main."""
    told = data(client, f"{gate(client)}17")
    a, b = told["sides"]
    ringed = [sorted(cell[0] for cell in side["pool"]["cells"] if cell[3]) for side in (a, b)]
    assert ringed == [list(range(79, 98))] * 2
    queues = [[(block, differs) for block, _, differs in side["queue"]["head"]] for side in (a, b)]
    assert queues == [[(block, int(block < 98)) for block in range(79, 101)], [(98, 0), (99, 0), (100, 0)]]
    tables = [
        {table["id"]: [cell[1] for cell in table["cells"] if cell[4]] for table in side["tables"]} for side in (a, b)
    ]
    assert tables == [{"holder": [], "R": []}, {"holder": [], "R": [], "second": list(range(79, 98))}]
    assert told["rows"] == ["holder", "R", "second"]
    assert told["ends"] == [73, 70]


def test_in_which_moments_they_differ(client: TestClient) -> None:
    told = data(client, f"{gate(client)}49")
    assert told["lanes"] == {
        "schedule": [[15, 17], [48, 53], [70, 73]],
        "refusals": [[15, 54]],
        "queues": [[15, 17], [48, 53], [70, 72]],
        "tables": [[15, 17], [22, 68], [70, 72]],
        "free": [[15, 73]],
        "usage": [[15, 17], [48, 53], [70, 72]],
    }
    assert told["adds"] == [1, 3, 5, 14]
    assert ["refused", "second", 15, 69] in told["signs"][0]
    assert ["preempted", "second", 18, 18] in told["signs"][1]


def test_in_words(client: TestClient) -> None:
    text = client.get(f"{gate(client)}49").text
    assert part_of(text, "h2", "parting") == (
        "They part in step 11: second is refused in main; in gate off it gets 7 blocks."
    )
    assert "33 of 100 blocks differ." in part_of(text, "p", "here")
    aspects = part_of(text, "table", "aspects")
    assert re.findall(
        r"(schedule|refusals|queues|tables|free queue|usage) (differs|the same) (\S+) (\S+)", aspects
    ) == [
        ("schedule", "differs", "1", "101"),
        ("refusals", "differs", "1", "0"),
        ("queues", "differs", "1+1", "2+0"),
        ("tables", "differs", "62", "93"),
        ("free queue", "differs", "38", "7"),
        ("usage", "differs", "0.62", "0.93"),
    ]
    mine, theirs = part_of(text, "ol", "requests-a"), part_of(text, "ol", "requests-b")
    assert "second waiting refused: 5 more free blocks needed (differs) 0 of 600 computed 0 blocks (differs)" in mine
    assert "second running 100 tokens scheduled (differs) 488 of 600 computed 31 blocks (differs)" in theirs
    assert "holder running 1 token scheduled 988 of 989 computed 62 blocks 1–2, 9–66, 79, 81 (differs)" in mine


def test_one_aspect_alone(client: TestClient) -> None:
    """In step 14 second is preempted where the gate is off: usage and schedule are alike again, its hashes stay."""
    path = gate(client)
    answer = client.get(f"{path}18")
    told = [dict(attrs) for tag, attrs in tags_of(answer) if tag == "tr" and dict(attrs).get("data-aspect")]
    assert {one["data-aspect"]: one["class"] for one in told} == {
        "schedule": "same",
        "refusals": "differs",
        "queues": "same",
        "tables": "same",
        "free": "differs",
        "usage": "same",
    }
    assert "18 of 100 blocks differ." in part_of(answer.text, "p", "here")


def test_a_frame_for_htmx(client: TestClient) -> None:
    path = gate(client)
    answer = client.get(f"{path}17", headers={"HX-Request": "true"})
    assert answer.text.startswith("<hx-partial")
    assert "<main" not in answer.text
    whole = client.get(f"{path}17").text
    for part in ("parting", "here", "aspects", "requests-a", "requests-b"):
        assert part in whole
    found = re.search(r'id="comparison-data">(.*?)</script>', answer.text)
    assert found
    assert json.loads(found[1]) == data(client, f"{path}17")


def test_requests_have_one_hue_on_both_sides(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"at": "4", **ADD})  # before R: number 2 of its own branch
    client.post(f"{page}/step", data={"branch": "b2", "at": "5"})
    told = data(client, f"{page}/compare?a=main&b=b2&at=6")
    assert [side["requests"] for side in told["sides"]] == [["warm", "holder", "R", "second", "A"]] * 2
    assert {table["request"] for table in told["sides"][1]["tables"] if table["id"] == "A"} == {4}


def test_pools_of_two_sizes(client: TestClient) -> None:
    """What only the larger pool has is no difference while it is free and empty."""
    page = new_session(client)
    client.post(f"{page}/vary", data={"knob": "num_blocks", "value": "110"})
    client.post(f"{page}/vary", data={"knob": "num_blocks", "value": "64"})
    told = data(client, f"{page}/compare?a=main&b=b2&at=2")
    assert [side["pool"]["num_blocks"] for side in told["sides"]] == [101, 110]
    for side in told["sides"]:
        assert not [cell for cell in side["pool"]["cells"] if cell[3]]
    assert not [block for block, _, differs in told["sides"][1]["queue"]["head"] if differs]
    assert told["lanes"]["free"] == [[0, 16]]
    smaller = data(client, f"{page}/compare?a=main&b=b3&at=4")  # holder needs 58 more blocks: 61 are too few
    assert max(cell[0] for cell in smaller["sides"][1]["pool"]["cells"]) < 64
    assert {cell[0] for cell in smaller["sides"][0]["pool"]["cells"] if cell[3]} >= {64, 65, 66}


def test_groups_are_told_where_they_are_written_out(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/vary", data={"knob": "block_size", "value": "32"})
    assert "groups" not in part_of(client.get(f"{page}/compare?a=main&b=b2&at=3").text, "div", "head-b")


def test_both_series_are_told(client: TestClient) -> None:
    told = data(client, f"{gate(client)}3")
    assert told["at"] == 3
    assert [side["name"] for side in told["sides"]] == ["main", "gate off"]
    moments, values = told["series"][1]["usage"]
    assert values[moments.index(51)] == 1
    assert told["series"][0]["running"][1][0] == 0


def test_what_is_not_there(client: TestClient) -> None:
    page = new_session(client)
    for path in (f"{page}/compare?b=b9", f"{page}/compare?a=b9", f"{page}/compare?at=99"):
        assert client.get(path).status_code == 409
    assert client.get("/s/unknown/compare").status_code == 404
    assert client.get(f"{page}/compare?at=x").status_code == 422


def test_very_many_stretches_are_joined() -> None:
    found = _joined([[at, at] for at in range(0, 20_000, 2)], 20_000)
    assert len(found) <= MOST_STRETCHES
    assert (found[0][0], found[-1][1]) == (0, 19_998)


def test_very_many_signs_are_thinned() -> None:
    branch = Branch(EngineConfig(num_blocks=5))
    for _ in range(3_000):
        branch.append(Step())
    branch.columns.notable |= {action: (Notable("finished", f"r{action}"),) for action in range(3_000)}
    branch.columns.notable[1_500] = (Notable("preempted", "r7"),)
    thinned = signs(branch.columns)
    assert len(thinned) <= 500
    assert any(sign.what == "preempted" for sign in thinned)


def test_aspects_start_alike() -> None:
    """The numbers before the first action are those of a pool in its first order."""
    first, second = Aspects(BlockCounts(0, 0, 8)), Aspects(BlockCounts(0, 0, 8))
    assert {name: list(numbers) for name, numbers in first.numbers.items()} == {
        name: list(numbers) for name, numbers in second.numbers.items()
    }
    assert first.numbers["free"][0] != Aspects(BlockCounts(0, 0, 9)).numbers["free"][0]
