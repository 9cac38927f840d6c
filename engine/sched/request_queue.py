"""Waiting requests in the order in which they will be served (behaviour 6.1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator

from engine.request import Request


class RequestQueue(ABC):
    """A queue whose head is served next."""

    @abstractmethod
    def add(self, request: Request) -> None:
        """Queue a new request."""

    @abstractmethod
    def prepend(self, request: Request) -> None:
        """Put a request back that was served before."""

    @abstractmethod
    def peek(self) -> Request:
        """The head. The queue must not be empty."""

    @abstractmethod
    def pop(self) -> Request:
        """Take the head. The queue must not be empty."""

    @abstractmethod
    def remove(self, request: Request) -> None:
        """Take a member out of anywhere."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Request]: ...


class FCFSRequestQueue(RequestQueue):
    """First come, first served; what is put back goes to the front."""

    def __init__(self) -> None:
        self._queue: deque[Request] = deque()

    def add(self, request: Request) -> None:
        """Queue it at the end."""
        self._queue.append(request)

    def prepend(self, request: Request) -> None:
        """Put it at the front."""
        self._queue.appendleft(request)

    def peek(self) -> Request:
        """The front."""
        return self._queue[0]

    def pop(self) -> Request:
        """Take the front."""
        return self._queue.popleft()

    def remove(self, request: Request) -> None:
        """Take a member out."""
        self._queue.remove(request)

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._queue)


PriorityKey = tuple[int, float, str]


def priority_key(request: Request) -> PriorityKey:
    """What the priority policy orders by, smallest first."""
    return request.priority, request.arrival_time, request.request_id


class PriorityRequestQueue(RequestQueue):
    """Smallest (priority, arrival time, id) first; putting back is an ordinary insertion."""

    def __init__(self) -> None:
        self._queue: list[Request] = []

    def add(self, request: Request) -> None:
        """Queue it where it belongs."""
        insort(self._queue, request, key=priority_key)

    def prepend(self, request: Request) -> None:
        """The same as `add`: the order depends on the requests alone."""
        self.add(request)

    def peek(self) -> Request:
        """The smallest."""
        return self._queue[0]

    def pop(self) -> Request:
        """Take the smallest."""
        return self._queue.pop(0)

    def remove(self, request: Request) -> None:
        """Take a member out."""
        del self._queue[bisect_left(self._queue, priority_key(request), key=priority_key)]

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._queue)


def create_request_queue(policy: str) -> RequestQueue:
    """The queue of a policy, "fcfs" or "priority"."""
    return PriorityRequestQueue() if policy == "priority" else FCFSRequestQueue()
