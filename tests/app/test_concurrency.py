"""Many at once: everybody sees whole actions, and equal clicks count once."""

from __future__ import annotations

import asyncio

import httpx2

from app.main import create_app
from app.settings import Settings


def test_equal_clicks_at_the_same_time_append_once(settings: Settings) -> None:
    async def click() -> tuple[list[int], int]:
        transport = httpx2.ASGITransport(app=create_app(settings))
        headers = {"Origin": "http://testserver", "Accept": "application/json"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
            made = await client.post("/story/one-call/step", data={"at": "15"})
            page = f"/s/{made.json()['session']}"
            looks = [client.get(f"{page}/frame?at={at}&from={at - 1}") for at in range(1, 16)]
            clicks = [client.post(f"{page}/step", data={"at": "16"}) for _ in range(20)]
            answers = await asyncio.gather(*clicks, *looks)
            assert {answer.status_code for answer in answers} == {200}
            last = await client.post(f"{page}/step", data={"at": "17"})
            return [answer.json()["at"] for answer in answers[:20]], last.json()["end"]

    moments, end = asyncio.run(click())
    assert moments == [17] * 20
    assert end == 18


def test_a_session_that_is_loaded_by_many_at_once_is_loaded_once(settings: Settings) -> None:
    async def look() -> set[str]:
        transport = httpx2.ASGITransport(app=create_app(settings))
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
            made = await client.post("/story/one-call/step", data={"at": "15"}, headers={"Accept": "application/json"})
            page = f"/s/{made.json()['session']}"
        again = httpx2.ASGITransport(app=create_app(settings))
        async with httpx2.AsyncClient(transport=again, base_url="http://testserver") as client:
            answers = await asyncio.gather(*(client.get(page) for _ in range(10)))
            assert {answer.status_code for answer in answers} == {200}
            return {answer.text for answer in answers}

    assert len(asyncio.run(look())) == 1
