"""KV events in full (1.11): what they carry, and their order inside a call."""

from __future__ import annotations

from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored
from tests.engine.helpers import Run, events


def stored(run: Run) -> BlockStored:
    """The one event of the next step."""
    [event] = run.step().events
    assert isinstance(event, BlockStored)
    return event


def test_stored_carries_tokens_parent_and_medium() -> None:
    run = Run(9, max_num_batched_tokens=8)
    run.add("a", [(100, 14)])
    first, second, third = run.hashes("a")
    assert stored(run) == BlockStored((first, second), None, tuple(range(100, 108)), 4, 0, None, (None, None), "GPU")
    assert stored(run) == BlockStored((third,), second, tuple(range(108, 112)), 4, 0, None, (None,), "GPU")


def test_extra_keys_are_the_adapters_name_and_the_salt_of_the_first_block() -> None:
    run = Run(9, max_num_batched_tokens=8)
    run.add("a", [(100, 14)], lora="sql", cache_salt="tenant-a")
    event = stored(run)
    assert (event.lora_name, event.extra_keys) == ("sql", (("sql", "tenant-a"), ("sql",)))
    assert stored(run).extra_keys == (("sql",),)


def test_without_an_adapter_only_the_first_block_has_extra_keys() -> None:
    run = Run(9)
    run.add("a", [(100, 9)], cache_salt="tenant-a")
    event = stored(run)
    assert (event.lora_name, event.extra_keys) == (None, (("tenant-a",), None))


def test_a_salted_request_that_hits_its_first_block_stores_later_ones_without_the_salt() -> None:
    run = Run(20)
    run.add("a", [(100, 5)], cache_salt="tenant-a", max_tokens=1)
    run.step()
    run.add("b", [(100, 9)], cache_salt="tenant-a")
    event = stored(run)
    assert event.parent_block_hash == run.hashes("b")[0]
    assert event.extra_keys == (None,)


def test_an_empty_salt_is_no_key() -> None:
    run = Run(9)
    run.add("a", [(100, 9)], cache_salt="")
    assert stored(run).extra_keys == (None, None)


def test_what_is_popped_is_removed_before_anything_is_stored() -> None:
    run = Run(4)
    run.add("a", [(100, 12)], max_tokens=1)
    run.step()
    run.add("b", [(500, 12)], max_tokens=1)
    outcome = run.step()
    assert [type(event) for event in outcome.events] == [BlockRemoved, BlockRemoved, BlockRemoved, BlockStored]
    assert all(event.medium == "GPU" for event in outcome.events if isinstance(event, BlockRemoved))


def test_hits_frees_and_aborts_emit_nothing() -> None:
    run = Run(9)
    run.add("a", [(100, 8)])
    run.step()
    assert run.abort("a").events == ()
    run.add("b", [(100, 7)], max_tokens=1)
    outcome = run.step()
    assert outcome.calls[0].hit_blocks == ((1,),)
    assert outcome.events == ()


def test_a_reset_clears_without_removing() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=1)
    run.step()
    assert run.reset().events == (AllBlocksCleared(),)
    assert run.pool.reset_prefix_cache()


def test_events_are_taken_once_an_action() -> None:
    run = Run(9)
    run.add("a", [(100, 8)], max_tokens=3)
    assert [events(run.step()) != [] for _ in range(3)] == [True, False, False]
