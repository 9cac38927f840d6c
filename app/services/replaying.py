"""Lists of actions executed on a branch, in slices: behind its end, or from the start with a connector."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from app.services.acting import check_alone
from app.services.errors import BadValueError, TooLongError
from app.services.session import SLICE_SECONDS, Branch
from app.services.sessions import Sessions
from engine.actions import Action
from engine.config import EngineConfig
from engine.errors import InputError
from engine.record import current_state

Run = Callable[[Callable[[], float]], Awaitable[float]]
"""`Threads.run`, or `Threads.behind` for what doesn't belong to a session yet."""


async def append_all(sessions: Sessions, branch: Branch, actions: Sequence[Action], run: Run) -> None:
    """Execute actions behind the end of a branch, each checked once more when its turn comes.

    Raises:
        InputError: one of them is impossible; those before it were appended.
        TooLongError: it takes longer than one request may; those that were appended stay.
    """
    left, spent, limits = deque(actions), 0.0, sessions.settings.limits

    def some() -> float:
        start = time.thread_time()
        while left and time.thread_time() - start < SLICE_SECONDS:
            check_alone(left[0], branch.head.simulation, limits)
            branch.append(left.popleft())
        return time.thread_time() - start

    while left:
        if spent > sessions.settings.replay_seconds:
            raise TooLongError("These actions take longer than one request may.", "actions", "fewer or smaller ones")
        spent += await run(some)


async def connected(sessions: Sessions, config: EngineConfig, actions: Sequence[Action]) -> Branch:
    """These actions, replayed with a connector though none of them asks for it.

    Raises:
        BadValueError: one of them is impossible then.
        TooLongError: it takes longer than one request may.
    """
    branch, spent = Branch(config, actions, has_connector=True), 0.0
    while branch.head.at < branch.end:
        if spent > sessions.settings.replay_seconds:
            message = "Replaying these actions takes longer than one request may."
            raise TooLongError(message, "actions", "fewer or smaller actions")
        try:
            spent += await sessions.in_thread(partial(branch.advance, branch.head, branch.end))
        except InputError as error:
            message = f"With a connector what was done before can't be replayed: {error}."
            raise BadValueError(message, "external.tokens") from None
    return branch


async def with_connector(sessions: Sessions, branch: Branch) -> tuple[Branch, str]:
    """The same actions with a connector from the start, as any later load finds them; and what that changed."""
    twin = await connected(sessions, branch.config, branch.actions)
    states = [await sessions.in_thread(partial(current_state, one.head.simulation)) for one in (branch, twin)]
    return twin, "same" if states[0] == states[1] else "changed"
