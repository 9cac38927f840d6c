"""Waiting queues (6.1)."""

from __future__ import annotations

import random

import pytest

from engine.block_hash import BlockHasher
from engine.request import Request
from engine.sched.request_queue import (
    FCFSRequestQueue,
    PriorityRequestQueue,
    RequestQueue,
    create_request_queue,
    priority_key,
)

HASHER = BlockHasher(repr, b"", 4)  # type: ignore[arg-type]  # no prompt here is long enough to be hashed


def request(name: str, priority: int = 0, arrival: float = 0.0) -> Request:
    return Request(name, [1], 1, HASHER, priority=priority, arrival_time=arrival)


def names(queue: RequestQueue) -> list[str]:
    return [one.request_id for one in queue]


def test_each_policy_has_its_queue() -> None:
    assert isinstance(create_request_queue("fcfs"), FCFSRequestQueue)
    assert isinstance(create_request_queue("priority"), PriorityRequestQueue)


def test_fcfs_serves_in_order_of_arrival_and_puts_back_in_front() -> None:
    queue = FCFSRequestQueue()
    for name in "abc":
        queue.add(request(name, priority=9 - len(name)))
    queue.prepend(request("d"))
    assert (names(queue), len(queue), queue.peek().request_id) == (["d", "a", "b", "c"], 4, "d")
    assert queue.pop().request_id == "d"
    assert names(queue) == ["a", "b", "c"]


def test_fcfs_victims_put_back_last_first_restore_their_order() -> None:
    queue = FCFSRequestQueue()
    queue.add(request("z"))
    for name in "cba":
        queue.prepend(request(name))
    assert names(queue) == ["a", "b", "c", "z"]


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
def test_any_member_can_be_removed(policy: str) -> None:
    queue = create_request_queue(policy)
    members = [request(name, arrival=float(place)) for place, name in enumerate("abcd")]
    for one in members:
        queue.add(one)
    queue.remove(members[2])
    assert names(queue) == ["a", "b", "d"]


def test_priority_orders_by_priority_then_arrival_then_id_as_text() -> None:
    queue = PriorityRequestQueue()
    for one in (
        request("late", 1, 9.0),
        request("r9", 1, 3.0),
        request("r10", 1, 3.0),
        request("urgent", -2, 50.0),
        request("early", 1, 1.0),
    ):
        queue.add(one)
    assert names(queue) == ["urgent", "early", "r10", "r9", "late"]


def test_priority_puts_back_where_the_request_belongs() -> None:
    queue = PriorityRequestQueue()
    queue.add(request("a", 1, 1.0))
    queue.prepend(request("b", 5, 0.0))
    queue.prepend(request("c", 0, 7.0))
    assert names(queue) == ["c", "a", "b"]


def test_priority_is_a_sorted_list_under_random_operations() -> None:
    choose = random.Random(7)
    queue, model = PriorityRequestQueue(), list[Request]()
    for turn in range(600):
        match choose.choice(["add", "add", "prepend", "pop", "remove"]):
            case "pop" if model:
                assert queue.pop() is min(model, key=priority_key)
                model.remove(min(model, key=priority_key))
            case "remove" if model:
                victim = choose.choice(model)
                queue.remove(victim)
                model.remove(victim)
            case how:
                new = request(f"r{turn}", choose.randint(0, 3), float(choose.randint(0, 9)))
                (queue.prepend if how == "prepend" else queue.add)(new)
                model.append(new)
        assert list(queue) == sorted(model, key=priority_key)
        assert len(queue) == len(model)
