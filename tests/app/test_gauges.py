"""The gauges: series by run length, thinned by extremes; occupancy counts a shared block once; evictions are marked."""

from __future__ import annotations

import random

import pytest
from starlette.testclient import TestClient

from app.rendering.figures import figures
from app.rendering.moment import Moment
from app.services.series import MOST, Line
from app.services.session import Branch, Session
from engine.actions import Abort, Action, AddRequest, ResetPrefixCache, Step
from engine.config import EngineConfig
from engine.tokens import Own, Shared
from tests.app.reading import HTMX, figures_of, new_session


def moment_after(*actions: Action, num_blocks: int = 12) -> Moment:
    branch = Branch(EngineConfig(num_blocks, block_size=4))
    for action in actions:
        branch.append(action)
    return Moment.of(Session("x", "", b"", branch), branch.head)


def add(name: str, tokens: int, shared: int = 0, max_tokens: int = 9) -> AddRequest:
    parts = (Shared("s", shared), Own(tokens)) if shared else (Own(tokens),)
    return AddRequest(name, parts, max_tokens)


def test_the_series_tell_every_known_moment(client: TestClient) -> None:
    for moment in (0, 6, 15):
        series = figures_of(client.get(f"/story/one-call?at={moment}"))["series"]
        assert series["end"] == 15
        assert series["free"] == [[0, 4, 6, 7, 12], [100, 40, 27, 23, 22]]
        assert series["usage"][1] == [round(1 - free / 100, 9) for free in series["free"][1]]
        assert series["hit"] == [[0, 2, 4, 6], [None, 0, 0.029795158, 0.116448326]]
        assert series["waiting"][1][-1] == 1
        assert series["preemptions"] == [[0], [0]]


def test_a_change_brings_only_an_appended_point(client: TestClient) -> None:
    assert "series" not in figures_of(client.get("/story/one-call/frame?at=6&from=5"))
    page = new_session(client)
    answer = client.post(f"{page}/add", data={"at": "16", "id": "A", "tokens": "20", "max_tokens": "2"}, headers=HTMX)
    series = figures_of(answer)["series"]
    assert series == {"end": 17, "from": 16, "waiting": [[17], [2]]}


def test_the_hit_rate_begins_anew_after_a_reset() -> None:
    moment = moment_after(add("a", 9, max_tokens=1), Step(), ResetPrefixCache())
    assert moment.cursor.applied is not None
    assert moment.cursor.applied.outcome.reset
    assert figures(moment, None)["series"]["hit"] == ([0, 2, 3], [None, 0, None])


def test_long_series_keep_their_extremes() -> None:
    rng = random.Random(1)
    line, values = Line(0), [0.0]
    for moment in range(1, 5000):
        values.append(float(rng.randint(0, 1000)))
        line.put(moment, values[-1])
    line.put(5000, 2000.0)
    moments, told = line.told()
    assert len(moments) <= MOST
    assert moments == sorted(set(moments))
    assert (moments[0], moments[-1]) == (0, 5000)
    assert max(value for value in told if value is not None) == 2000
    for start in range(0, 5000, 100):
        some = [value or 0 for at, value in zip(moments, told, strict=True) if start <= at < start + 100]
        middle = values[start + 30 : start + 70]
        assert max(some) >= max(middle)
        assert min(some) <= min(middle)


def test_a_shared_block_counts_once() -> None:
    moment = moment_after(add("a", 2, shared=8), Step(), add("b", 3, shared=8), Step())
    blocks = figures(moment, None)["blocks"]
    assert moment.cursor.extra_refs == 2
    assert blocks["slots"] == {"filled": 8 + 3 + 3, "held": 16, "all": 44}


def test_evicted_blocks_are_marked_in_a_step_and_in_a_reset() -> None:
    moment = moment_after(add("a", 20, max_tokens=1), Step(), add("b", 36, max_tokens=1), Step(), num_blocks=10)
    changed = {cell[0]: cell[3] for cell in figures(moment, None)["pool"]["cells"]}
    assert moment.evicted
    assert {block for block, flag in changed.items() if flag == 2} == moment.evicted
    assert 1 in changed.values()
    moment = moment_after(add("a", 20), Step(), Abort("a"), ResetPrefixCache())
    cells = figures(moment, moment.at - 1)["pool"]["cells"]
    assert [cell[:4] for cell in cells] == [[block, 0, 0, 2] for block in range(1, 6)]


def test_two_blocks_and_groups_of_other_sizes_break_nothing() -> None:
    assert figures(moment_after(num_blocks=1), None)["blocks"]["slots"] == {"filled": 0, "held": 0, "all": 0}
    groups = [{"kind": "full_attention", "block_size": 8}, {"kind": "sliding_window", "sliding_window": 8}]
    config = EngineConfig.from_json({"num_blocks": 40, "block_size": 4, "max_num_seqs": 4, "groups": groups})
    branch = Branch(config)
    for action in (add("a", 30), Step(), Step()):
        branch.append(action)
    data = figures(Moment.of(Session("x", "", b"", branch), branch.head), None)
    assert "slots" not in data["blocks"]
    assert data["series"]["running"][1][-1] == 1


def test_each_gauge_has_a_sentence(client: TestClient) -> None:
    alt = figures_of(client.get("/story/one-call?at=6"))["alt"]
    assert alt["series"] == (
        "Usage rose from 0.6 to 0.73; the hit rate so far is 11.6 %; 2 run, none wait; nothing was preempted so far."
    )
    assert alt["blocks"] == "73 held, 0 free but cached, 27 free and empty; before 60, 6 and 34."


@pytest.mark.parametrize(
    ("watermark", "at", "mark"),
    [(0.0, None, "no watermark"), (0.05, None, "watermark under 1 block"), (0.25, 1 - 3 / 11, "watermark at 0.73")],
)
def test_the_gauge_says_why_it_has_no_mark(watermark: float, at: float | None, mark: str) -> None:
    branch = Branch(EngineConfig(12, block_size=4, watermark=watermark))
    branch.append(add("a", 9))
    branch.append(Step())
    data = figures(Moment.of(Session("x", "", b"", branch), branch.head), None)
    assert (data["usage"]["watermark_at"], data["usage"]["mark"]) == (at, mark)
    assert data["alt"]["usage"] == f"3 of 11 usable blocks held: 0.2727 of the pool is used; {mark}."
