"""Figures: a change put on top of a moment equals the next moment told whole; the numbers are the engine's."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from app.rendering.composer import abort_form, composer
from app.rendering.figure_gauges import filled_slots
from app.rendering.figure_queue import as_they_lay
from app.rendering.figures import figures
from app.rendering.frame import frame
from app.rendering.moment import Moment
from app.services.cursor import Cursor
from app.services.session import Branch, Session
from engine.scenario import Scenario, parse_scenario
from tests.app.client_model import Client, comparable

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.json.gz"))


def scenario_of(path: Path) -> Scenario:
    return parse_scenario(json.loads(gzip.decompress(path.read_bytes()))["scenario"])


def session_of(scenario: Scenario) -> Session:
    return Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))


def filled_plainly(moment: Moment) -> int:
    """The fullest that any holder has filled each block, added up."""
    fullest: dict[int, int] = {}
    for name, request in moment.scheduler.requests.items():
        for group, table in zip(moment.cursor.simulation.config.groups, moment.manager.get_blocks(name), strict=True):
            for entry, block in enumerate(table):
                filled = min(max(request.num_computed_tokens - entry * group.block_size, 0), group.block_size)
                fullest[block] = max(fullest.get(block, 0), filled) if block else 0
    return sum(fullest.values())


def check_moment(moment: Moment) -> None:
    """What is kept beside the engine's state agrees with it."""
    pool = moment.pool
    cached_free = sum(pool.block_hash[block] is not None for block in pool.free_queue)
    assert moment.counts.cached == cached_free
    assert moment.cursor.extra_refs == sum(max(refs - 1, 0) for refs in pool.ref_cnt[1:])
    if len({group.block_size for group in moment.cursor.simulation.config.groups}) == 1:
        assert filled_slots(moment) == filled_plainly(moment)
    tree = moment.cursor.tree
    assert {key for chain in tree.chains.values() for key in chain.keys} == set(pool.cached)
    assert len(tree) == len(pool.cached)
    for chain in tree.chains.values():
        assert len(chain.children) != 1
        assert all(child.parent is chain for child in chain.children.values())


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_changes_add_up_to_the_whole(path: Path) -> None:
    session = session_of(scenario_of(path))
    branch = session.branch
    client = Client(figures(Moment.of(session, branch.head), None))
    for at in range(1, branch.end + 1):
        branch.advance(branch.head, at, 60)
        moment = Moment.of(session, branch.head)
        check_moment(moment)
        change: dict[str, Any] = figures(moment, at - 1)
        assert change["from"] == at - 1
        client.take(change)
        whole = figures(moment, None)
        for panel, data in comparable(whole).items():
            assert client.data[panel] == data, (panel, at)


def timeless(text: str) -> dict[str, Any]:
    """The data without the series, which tell the future once it is known."""
    data: dict[str, Any] = json.loads(text)
    del data["series"]
    return data


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_moment_renders_and_seeking_gives_the_same(path: Path) -> None:
    session = session_of(scenario_of(path))
    branch = session.branch
    frames = []
    for at in range(branch.end + 1):
        branch.advance(branch.head, at, 60)
        frames.append(frame(Moment.of(session, branch.head), None))
    for at in (branch.end // 2, 0, branch.end, 1, branch.end // 3):
        cursor: Cursor = branch.cursor_for(at)
        branch.advance(cursor, at, 60)
        assert cursor.at == at
        again = frame(Moment.of(session, cursor), None)
        assert timeless(again.figures) == timeless(frames[at].figures)
        assert again.calls == frames[at].calls


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_form_is_left_out_of_a_change_only_where_it_stays_the_same(path: Path) -> None:
    session = session_of(scenario_of(path))
    branch = session.branch
    moment = Moment.of(session, branch.head)
    before = composer(moment), abort_form(moment)
    for at in range(1, branch.end + 1):
        branch.advance(branch.head, at, 60)
        moment = Moment.of(session, branch.head)
        told = frame(moment, at - 1)
        now = composer(moment), abort_form(moment)
        assert told.composer == (None if before[0] == now[0] and told.composer is None else now[0])
        assert told.abort == (None if before[1] == now[1] and told.abort is None else now[1])
        before = now


@pytest.mark.parametrize("seed", range(20))
def test_touched_blocks_are_told_in_the_order_in_which_they_lay(seed: int) -> None:
    rng = random.Random(seed)
    waiting = rng.sample(range(1, 100), 30)
    before, gone = list(waiting), []
    for block in rng.sample(waiting, 12):
        gone.append((block, waiting.index(block)))
        waiting.remove(block)
    assert as_they_lay(gone) == [block for block in before if block not in waiting]
