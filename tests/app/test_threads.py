"""Who goes first: sessions ahead of links, links a slice at a time, and long ones in their turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest

from app.services import appending
from app.services.errors import FullError
from app.services.links import encode
from app.services.session import Session
from app.services.sessions import LINKS_AT_ONCE, Sessions
from app.services.sources import NEW, PERMALINK, STORY, Source
from app.services.threads import Threads
from app.services.turns import Turns
from app.settings import Settings
from app.store import Store
from engine.actions import AddRequest, Step
from engine.config import EngineConfig
from engine.scenario import Scenario
from engine.tokens import Own

STEPS = 300
SLICE = 0.001
"""Seconds: a replay of so many steps takes many of them."""


@pytest.fixture
def sessions(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sessions]:
    for name in ("LINK_SLICE_SECONDS", "LIGHT_SECONDS"):
        monkeypatch.setattr(f"app.services.sessions.{name}", SLICE)
    store = Store(settings.data)
    sessions = Sessions(settings, store)
    yield sessions
    sessions.close()
    store.close()


def long_link(number: int) -> Source:
    """A link whose replay takes many slices."""
    config = EngineConfig(200 + number)
    adds = [AddRequest(f"r{i}", (Own(20),), 1_000) for i in range(4)]
    return Source(PERMALINK, encode(Scenario(1, "", config, (*adds, *[Step()] * STEPS)), 0))


async def looked(sessions: Sessions, source: Source, seen: list[Session] | None = None) -> int:
    """How far a source is replayed in one request."""
    async with sessions.opened(source) as session:
        if seen is not None:
            seen.append(session)
        return (await sessions.seek(session, session.branch.end)).at


async def others_go_on() -> None:
    """Let all others get as far as they can without a thread."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_slice_waits_for_what_is_ahead_but_not_for_what_comes_later() -> None:
    async def go() -> list[str]:
        threads, told = Threads(), list[str]()
        with ExitStack() as later:
            with threads.ahead():
                first = asyncio.ensure_future(threads.behind(lambda: told.append("slice")))
                await others_go_on()
                told.append(await threads.run(lambda: "step"))
                later.enter_context(threads.ahead())
            await first
            told.append("later")
        threads.close()
        return told

    assert asyncio.run(go()) == ["step", "slice", "later"]


def test_slices_go_one_at_a_time_while_others_run() -> None:
    async def go() -> list[str]:
        threads, told, may_end, is_in = Threads(), list[str](), threading.Event(), threading.Event()

        def long() -> None:
            is_in.set()
            may_end.wait()
            told.append("long")

        first = asyncio.ensure_future(threads.behind(long))
        second = asyncio.ensure_future(threads.behind(lambda: told.append("short")))
        await threads.run(is_in.wait)
        told.append(await threads.run(lambda: "step"))
        may_end.set()
        await asyncio.gather(first, second)
        threads.close()
        return told

    assert asyncio.run(go()) == ["step", "long", "short"]


def test_a_turn_comes_in_order_and_too_many_are_sent_away() -> None:
    async def go() -> list[int]:
        turns, told = Turns(1, 2, "Too many."), list[int]()

        async def take(number: int) -> None:
            async with turns.turn():
                told.append(number)

        async with turns.turn():
            waiting = [asyncio.ensure_future(take(number)) for number in (1, 2)]
            await others_go_on()
            with pytest.raises(FullError, match="Too many"):
                await take(3)
        await asyncio.gather(*waiting)
        await take(4)
        return told

    assert asyncio.run(go()) == [1, 2, 4]


def test_long_links_wait_for_their_turn_and_short_ones_do_not(sessions: Sessions) -> None:
    async def go() -> tuple[int, int]:
        seen = list[Session]()
        async with AsyncExitStack() as others:
            for _ in range(LINKS_AT_ONCE):
                await others.enter_async_context(sessions.links.turn())
            long = asyncio.ensure_future(looked(sessions, long_link(0), seen))
            while not sessions.links.waiting:
                await asyncio.sleep(0)
            before = seen[0].branch.head.at
            assert await looked(sessions, Source(NEW)) == 0
            assert seen[0].branch.head.at == before
        return before, await long

    before, end = asyncio.run(go())
    assert 0 < before < end == 4 + STEPS


def test_a_step_is_through_before_any_of_many_long_links(sessions: Sessions) -> None:
    async def go() -> list[int]:
        async with sessions.acting_on(Source(STORY, "one-call"), None) as session:
            acted = await appending.act(sessions, session, "main", 15, Step())
        links = [asyncio.ensure_future(looked(sessions, long_link(number))) for number in range(8)]
        while sessions.links.waiting < 8 - LINKS_AT_ONCE and not any(link.done() for link in links):
            await asyncio.sleep(0)
        for at in (16, 17, 18):
            async with sessions.acting_on(session.id, acted.secret) as session:
                assert (await appending.act(sessions, session, "main", at, Step())).at == at + 1
        assert not any(link.done() for link in links)
        return list(await asyncio.gather(*links))

    assert asyncio.run(go()) == [4 + STEPS] * 8
