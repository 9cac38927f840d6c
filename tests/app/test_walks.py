"""Any walk of looks, acts and branches gives the states of a fresh replay of each branch."""

from __future__ import annotations

import asyncio
import contextlib
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

from app.gallery import LESSON
from app.rendering.figures import figures
from app.rendering.moment import Moment
from app.services.appending import act
from app.services.branching import Branching
from app.services.errors import ServiceError
from app.services.running import Until
from app.services.runs import Runs
from app.services.series import Points
from app.services.session import Branch, Session
from app.services.sessions import Sessions
from app.services.sources import STORY, Source
from app.services.stories import RequestEvent, WaitingHalt
from app.settings import Settings
from app.store import Store
from engine.actions import Abort, Action, AddRequest, ResetPrefixCache, Step
from engine.config import EngineConfig
from engine.errors import InputError
from engine.record import current_state
from engine.tokens import Own, Shared


def an_action(rng: random.Random) -> Action:
    kind = rng.random()
    if kind < 0.45:
        return Step()
    if kind < 0.85:
        parts = (Shared("s", rng.choice((16, 32, 64))), Own(rng.randint(1, 90)))
        return AddRequest(f"x{rng.randint(0, 9)}", parts[rng.randint(0, 1) :], rng.randint(1, 20))
    if kind < 0.95:
        return Abort(rng.choice(("R", "second", "x1", "x2", "x3")))
    return ResetPrefixCache(rng.random() < 0.5)


class Walk:
    """A reader who acts, beside plain lists of what each branch must hold."""

    def __init__(self, seed: int, data: Path) -> None:
        self.rng = random.Random(seed)
        self.settings = Settings(data=data)
        self.store = Store(data)
        self.secret, self.id = "", ""
        self.plain: dict[str, tuple[EngineConfig, list[Action]]] = {}
        self.open()

    def open(self) -> None:
        self.sessions = Sessions(self.settings, self.store)
        self.runs, self.branching = Runs(self.sessions), Branching(self.sessions)

    async def go(self, turns: int) -> None:
        async with self.sessions.acting_on(Source(STORY, LESSON), None) as session:
            acted = await act(self.sessions, session, "main", 15, Step())
            assert acted.secret
            self.id, self.secret = session.id, acted.secret
            self.plain["main"] = session.branch.config, list(session.branch.actions)
        for turn in range(turns):
            branch = self.rng.choice(list(self.plain))
            async with self.sessions.acting_on(self.id, self.secret, branch) as session:
                at = self.rng.randint(0, session.branch.end)
                with contextlib.suppress(InputError, ServiceError):
                    await self.turn(session, branch, at)
                assert {node.id for node in session.living} == set(self.plain)
                assert session.branch.actions == self.plain[session.chosen][1]
            if turn % 17 == 16:
                self.sessions.close()
                self.open()

    async def turn(self, session: Session, branch: str, at: int) -> None:
        config, actions = self.plain[branch]
        kind = self.rng.random()
        if kind < 0.4:
            await self.look(session, at)
        elif kind < 0.8:
            action, instead = an_action(self.rng), self.rng.random() < 0.5
            acted = await act(self.sessions, session, branch, at, action, instead=instead)
            before = {name: len(had[1]) for name, had in self.plain.items()}
            if session.chosen not in before:
                self.plain[session.chosen] = config, [*actions[:at], action]
            elif len(session.branch.actions) > before[session.chosen]:
                actions.append(action)
            assert acted.at == at + 1
            # The same again only moves there.
            again = await act(self.sessions, session, session.chosen, at, session.branch.actions[at])
            assert again.at == at + 1
        elif kind < 0.88:
            await self.runs.begin(session, branch, at, Until("count", self.rng.randint(1, 5)))
            actions.extend([Step()] * (session.branch.end - len(actions)))
        elif kind < 0.94 and len(self.plain) > 2:
            await self.branching.delete(session, branch)
            del self.plain[branch]
            await self.sessions.choose(session, next(iter(self.plain)))
        elif len(self.plain) < 8:
            other = EngineConfig.from_json({**config.to_json(), "num_blocks": self.rng.randint(40, 200)})
            done = await self.branching.with_config(session, other, "")
            self.plain[done.branch] = other, actions[: done.at]

    async def look(self, session: Session, at: int) -> None:
        cursor = await self.sessions.seek(session, at)
        assert cursor.at == at
        fresh = Branch(session.branch.config, session.branch.actions, has_connector=False)
        fresh.advance(fresh.head, fresh.end, 60)
        assert told(session.branch) == told(fresh)
        fresh = Branch(session.branch.config, session.branch.actions, has_connector=False)
        fresh.advance(fresh.head, at, 60)
        assert current_state(cursor.simulation) == current_state(fresh.head.simulation)
        whole = Branch(session.branch.config, session.branch.actions[:at], has_connector=False)
        whole.advance(whole.head, at, 60)
        seen = Moment.of(session, cursor)
        plain = Moment.of(Session("", "", b"", whole, nodes=session.nodes, chosen=session.chosen), whole.head)
        for start in (None, at - 1):
            assert at_a_moment(figures(seen, start)) == at_a_moment(figures(plain, start))
        assert [list(seen.columns.life(block, at)) for block in range(1, 40)] == [
            list(plain.columns.life(block, at)) for block in range(1, 40)
        ]


def told(branch: Branch) -> tuple[dict[str, Points], dict[str, list[RequestEvent]], list[WaitingHalt | None]]:
    """What a whole branch remembers: its series, what happened to each request, why each waiting pass ended."""
    columns, end = branch.columns, branch.end
    return (
        {name: line.told() for name, line in columns.series.lines.items()},
        {name: list(columns.stories.of(name, end)) for name in columns.numbers},
        [columns.stories.halt(moment) for moment in range(end + 1)],
    )


def at_a_moment(data: dict[str, Any]) -> dict[str, Any]:
    """What doesn't tell of the future."""
    alt = {name: words for name, words in data["alt"].items() if name != "series"}
    return {**{name: value for name, value in data.items() if name != "series"}, "alt": alt}


@pytest.mark.parametrize("seed", range(25))
def test_a_walk_gives_the_states_of_fresh_replays(seed: int) -> None:
    with tempfile.TemporaryDirectory() as data:
        walk = Walk(seed, Path(data))
        asyncio.run(walk.go(60))
        walk.sessions.close()
        walk.store.close()
