"""Figures: a change put on top of a moment equals the next moment told whole; the numbers are the engine's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

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


def check_moment(moment: Moment) -> None:
    """What is kept beside the engine's state agrees with it."""
    pool = moment.pool
    cached_free = sum(pool.block_hash[block] is not None for block in pool.free_queue)
    assert moment.counts.cached == cached_free
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
        assert frame(Moment.of(session, cursor), None).figures == frames[at].figures
        assert frame(Moment.of(session, cursor), None).calls == frames[at].calls
