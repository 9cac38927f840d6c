"""Sessions in memory: checkpoints, slices, the store, the prefix tree."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from app.gallery import LESSON
from app.services.prefix_tree import PrefixTree
from app.services.running import changed_nothing
from app.services.session import FIRST_INTERVAL, Branch
from app.services.sessions import Sessions
from app.services.sources import STORY, Source
from app.settings import Settings
from app.store import StaleError, Store, StoredBranch, StoredSession, StoreError
from engine.actions import AddRequest, Step
from engine.config import EngineConfig
from engine.kv_cache_block import Key
from engine.record import current_state
from engine.tokens import Own, Shared

BUILTIN = Path(__file__).parent.parent / "fixtures" / "one-call.json"


def long_branch(steps: int, most: int = 256) -> Branch:
    branch = Branch(EngineConfig(200, block_size=4, max_model_len=100_000))
    branch.most_checkpoints = most
    branch.append(AddRequest("a", (Own(10),), 100_000))
    for _ in range(steps - 1):
        branch.append(Step())
    return branch


def test_a_past_moment_costs_a_bounded_replay_and_is_the_same() -> None:
    branch = long_branch(900)
    straight = Branch(branch.config, branch.actions)
    for at in (0, 1, 63, 64, 65, 500, 899, 900, 130):
        cursor = branch.cursor_for(at)
        assert at - cursor.at <= 2 * FIRST_INTERVAL
        branch.advance(cursor, at, 60)
        fresh = Branch(branch.config, branch.actions)
        fresh.advance(fresh.head, at, 60)
        assert current_state(cursor.simulation) == current_state(fresh.head.simulation)
    straight.advance(straight.head, 900, 60)
    assert current_state(straight.head.simulation) == current_state(branch.head.simulation)


def busy(most: int) -> Branch:
    """Preemptions, evictions, shared prefixes: everything that a checkpoint must keep."""
    branch = Branch(EngineConfig(40, block_size=4, max_num_batched_tokens=64, max_num_seqs=8))
    branch.most_checkpoints = most
    for number in range(120):
        branch.append(AddRequest(f"r{number}", (Shared("system", 8), Own(5 + number % 30)), 20 + number % 25))
        for _ in range(6):
            branch.append(Step())
    return branch


@pytest.mark.parametrize("most", [4, 256])
def test_any_moment_is_that_of_a_replay(most: int) -> None:
    branch, rng = busy(most), random.Random(most)
    assert sum(any(one.what == "preempted" for one in told) for told in branch.columns.notable.values()) > 5
    wanted = sorted(rng.sample(range(branch.end), 40))
    found = {}
    for at in rng.sample(wanted, len(wanted)):
        cursor = branch.at_hand(at) or branch.cursor_for(at)
        branch.advance(cursor, at, 60)
        found[at] = current_state(cursor.simulation), sorted(cursor.tree.changed), cursor.counts
    fresh = Branch(branch.config, branch.actions)
    for at in wanted:
        fresh.advance(fresh.head, at, 60)
        assert found[at] == (current_state(fresh.head.simulation), sorted(fresh.head.tree.changed), fresh.head.counts)


def test_a_moment_that_is_a_checkpoint_still_tells_what_changed() -> None:
    branch = long_branch(200)
    (at, *_) = branch._checkpoints
    kept, fresh = branch.cursor_for(at), Branch(branch.config, branch.actions)
    fresh.advance(fresh.head, at, 60)
    assert kept.at == at
    assert (kept.tree.changed, kept.tree.gone) == (fresh.head.tree.changed, fresh.head.tree.gone)


def test_checkpoints_stay_few() -> None:
    branch = long_branch(FIRST_INTERVAL * 40, most=32)
    assert 16 <= branch.num_checkpoints <= 32


def test_a_replay_stops_after_its_time_with_what_it_has(tmp_path: Path) -> None:
    store = Store(tmp_path)
    settings = Settings(data=tmp_path, replay_seconds=0.0001)
    sessions = Sessions(settings, store)

    async def look() -> int:
        async with sessions.opened(Source(STORY, LESSON)) as session:
            session.replace(Branch(session.branch.config, session.branch.actions))
            session.branch.actions += [Step()] * 5000
            return (await sessions.seek(session, 5000)).at

    at = asyncio.run(look())
    assert 0 < at < 5000
    sessions.close()


def test_a_step_that_changes_nothing() -> None:
    branch = Branch(EngineConfig(3, block_size=4))
    branch.append(AddRequest("big", (Own(40),), 2))
    branch.append(Step())
    assert branch.head.applied is not None
    assert changed_nothing(branch.head.applied)


def stored(name: str, *actions: str) -> StoredSession:
    return StoredSession(name, b"s", "title", "{}", actions, (StoredBranch("main", "main", num_own=len(actions)),))


def test_the_store_keeps_what_it_was_given(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "directory")
    store.create(stored("x", "0", "1"), "main")
    store.append("x", "main", 2, ["2", "3"])
    store.close()
    again = Store(tmp_path / "new" / "directory")
    assert again.load("x", "main") == stored("x", "0", "1", "2", "3")
    assert again.load("y", "main") is None


def test_two_writers_of_one_action(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    first.create(stored("x", "0"), "main")
    first.append("x", "main", 1, ["a"])
    with pytest.raises(StaleError):
        second.append("x", "main", 1, ["b", "c"])
    assert second.load("x", "main") == stored("x", "0", "a")


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot keep sessions in"):
        Store(tmp_path / "file")


def chains_of(parents: dict[Key, Key | None]) -> set[tuple[Key, ...]]:
    """Every path without forks, found the plain way."""
    children: dict[Key, list[Key]] = {key: [] for key in parents}
    for key, parent in parents.items():
        if parent in children:
            children[parent].append(key)
    heads = [key for key, parent in parents.items() if parent not in children or len(children[parent]) != 1]
    chains = set()
    for head in heads:
        chain = [head]
        while len(children[chain[-1]]) == 1:
            chain += children[chain[-1]]
        chains.add(tuple(chain))
    return chains


@pytest.mark.parametrize("seed", range(20))
def test_the_prefix_tree_is_the_one_found_plainly(seed: int) -> None:
    rng = random.Random(seed)
    universe: dict[Key, Key | None] = {}
    for number in range(40):
        universe[bytes([number]), 0] = rng.choice([None, *universe]) if universe else None
    tree, present = PrefixTree(), set[Key]()
    for turn in range(200):
        keys = rng.sample(list(universe), rng.randint(1, 5))
        present ^= set(keys)
        tree.update(keys, present.__contains__, universe.get, cleared=False)
        if turn % 50 == 49:
            tree = tree.fork()
        there = {key: universe[key] for key in universe if key in present}
        assert {tuple(chain.keys) for chain in tree.chains.values()} == chains_of(there)
        for chain in tree.chains.values():
            parent = universe[chain.keys[0]]
            assert (chain.parent.keys[-1] if chain.parent else None) == (parent if parent in present else None)
