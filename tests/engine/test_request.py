"""Requests (3): counters, hashes that grow with the output, statuses."""

from __future__ import annotations

from engine.block_hash import HASH_FUNCTIONS, BlockHasher, init_none_hash
from engine.request import Request, RequestStatus
from tests.engine.helpers import Run, preempted

HASHER = BlockHasher(HASH_FUNCTIONS["sha256_cbor"], init_none_hash(HASH_FUNCTIONS["sha256_cbor"]), 4)


def test_counters_of_a_new_request() -> None:
    request = Request("a", range(10, 16), 8, HASHER)
    assert request.status is RequestStatus.WAITING
    assert (request.num_prompt_tokens, request.num_tokens, request.num_output_tokens) == (6, 6, 0)
    assert (request.num_computed_tokens, request.num_preemptions, request.is_prefill_chunk) == (0, 0, False)
    assert len(request.block_hashes) == 1


def test_drafts_count_beside_the_known_tokens() -> None:
    request = Request("a", range(10, 16), 8, HASHER)
    request.spec_token_ids = [1, 2, 3]
    assert (request.num_tokens, request.num_tokens_with_spec) == (6, 9)


def test_hashes_grow_after_every_single_output_token() -> None:
    request = Request("a", range(10, 16), 8, HASHER)
    counts = []
    for token in range(16, 23):
        request.append_output_token(token)
        counts.append((request.num_tokens, request.num_output_tokens, len(request.block_hashes)))
    assert counts == [(7, 1, 1), (8, 2, 2), (9, 3, 2), (10, 4, 2), (11, 5, 2), (12, 6, 3), (13, 7, 3)]
    assert request.block_hashes == Request("b", range(10, 23), 8, HASHER).block_hashes


def test_a_short_prompt_has_its_first_hash_when_the_first_run_is_full() -> None:
    request = Request("a", [10], 8, HASHER, cache_salt="s")
    for token in (11, 12, 13):
        assert request.block_hashes == []
        request.append_output_token(token)
    assert request.block_hashes == Request("b", range(10, 14), 8, HASHER, cache_salt="s").block_hashes


def test_hashes_are_computed_with_caching_off_too() -> None:
    run = Run(9, enable_prefix_caching=False)
    run.add("a", [(10, 9)])
    run.step()
    assert len(run.hashes("a")) == 2
    assert len(run.pool.cached) == 0


def test_drafts_are_never_hashed() -> None:
    run = Run(9, num_speculative_tokens=3)
    run.add("a", [(10, 6)], accept=[0])
    run.steps(2)
    request = run.request("a")
    assert (request.num_tokens, request.num_tokens_with_spec, len(request.block_hashes)) == (8, 11, 2)


def test_preemption_keeps_output_ids_and_hashes() -> None:
    run = Run(5)
    run.add("a", 8, max_tokens=30)
    run.add("b", 7, max_tokens=30)
    run.step()
    before = run.request("b").all_token_ids[:]
    assert preempted(run.step()) == ["b"]
    request = run.request("b")
    assert request.status is RequestStatus.PREEMPTED
    assert (request.all_token_ids, len(request.block_hashes)) == (before, 2)
    assert (request.num_computed_tokens, request.num_preemptions, request.num_output_tokens) == (0, 1, 1)


def test_a_chunk_that_does_not_reach_the_end_marks_the_request_as_in_prefill() -> None:
    run = Run(20, max_num_batched_tokens=8)
    run.add("a", 14)
    seen = []
    for _ in range(3):
        run.step()
        seen.append((run.comp("a"), run.request("a").is_prefill_chunk, run.request("a").num_output_tokens))
    assert seen == [(8, True, 0), (14, False, 1), (15, False, 2)]


def test_between_steps_the_newest_token_is_still_to_be_computed() -> None:
    run = Run(20, num_speculative_tokens=3)
    run.add("a", 9, accept=[3, 0, 2, 1], max_tokens=20)
    for _ in range(6):
        run.step()
        assert run.comp("a") == run.request("a").num_tokens - 1


def test_a_fork_shares_nothing_that_changes() -> None:
    request = Request("a", range(10, 17), 8, HASHER)
    twin = request.fork()
    twin.append_output_token(17)
    twin.spec_token_ids.append(1)
    assert (request.num_tokens, len(request.block_hashes), request.spec_token_ids) == (7, 1, [])
    assert (twin.num_tokens, len(twin.block_hashes)) == (8, 2)


def test_forks_share_tokens_until_one_says_something_else() -> None:
    request = Request("a", range(10, 13), 8, HASHER)
    twin, third = request.fork(), request.fork()
    request.append_output_token(50)
    request.append_output_token(51)
    twin.append_output_token(50)
    third.append_output_token(60)
    twin.append_output_token(70)
    assert request.all_token_ids == [10, 11, 12, 50, 51]
    assert twin.all_token_ids == [10, 11, 12, 50, 70]
    assert third.all_token_ids == [10, 11, 12, 60]
    assert (twin.token_ids(2, 5), third.fork().token_ids(0, 4)) == ([12, 50, 70], [10, 11, 12, 60])
    for one in (request, twin, third):
        assert one.block_hashes == Request("b", one.all_token_ids, 8, HASHER).block_hashes
