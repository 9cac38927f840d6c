"""A simulation at one moment, with what views need beside the engine's own state, kept up to date action by action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from app.services.limits import requests_weight
from app.services.prefix_tree import PrefixTree
from app.tokenizer import tokenize
from engine.actions import Action, Step
from engine.config import EngineConfig
from engine.kv_cache_block import NULL_BLOCK, Key
from engine.kv_cache_manager import PrefixCacheStats
from engine.kv_events import AllBlocksCleared, BlockRemoved, BlockStored, KVCacheEvent
from engine.simulation import Outcome, Simulation
from engine.step_trace import BlockEvent, StepTrace, block_events, read_step
from engine.trace import Entry


@dataclass(frozen=True, slots=True)
class BlockCounts:
    """The usable blocks by state."""

    live: int
    cached: int
    """Free, but they carry a hash."""
    empty: int
    """Free, without a hash."""


@dataclass(frozen=True, slots=True)
class PartHit:
    """A copy-on-write: `copy` is the request's own, its first `tokens` tokens were hit in `source`."""

    copy: int
    source: int
    tokens: int


class Applied:
    """An action that was executed; its trace is read when somebody asks, and then once."""

    def __init__(self, outcome: Outcome, before: BlockCounts) -> None:
        self.outcome = outcome
        self.before = before
        """The usable blocks by state before it."""

    @cached_property
    def trace(self) -> StepTrace:
        """Everything it told."""
        return read_step(self.outcome.log)

    @cached_property
    def events(self) -> tuple[BlockEvent, ...]:
        """What happened to which block, in order."""
        return tuple(block_events(self.outcome.log))

    @cached_property
    def changed_blocks(self) -> frozenset[int]:
        """Blocks whose owners, `ref_cnt`, hash or place among free or held changed; never the null block."""
        return frozenset(event.block for event in self.events) - {NULL_BLOCK}

    @cached_property
    def evicted_blocks(self) -> frozenset[int]:
        """Blocks that lost a hash: to a new owner, to a longer prefix, or to a reset."""
        return frozenset(event.block for event in self.events if event.what == "evicted")


class Cursor:
    """Moves forward only; `fork` it to keep a moment."""

    def __init__(self, config: EngineConfig, *, has_connector: bool = False) -> None:
        self.simulation = Simulation(config, has_connector=has_connector, tokenize=tokenize)
        self.tree = PrefixTree()
        self.applied: Applied | None = None
        """The action that led here; None at the start."""
        self.copies: dict[str, dict[int, PartHit]] = {}
        """Request that holds blocks -> group -> its copy of a block that it hit only in part."""
        self.extra_refs = 0
        """Holders of shared blocks beyond the first of each: so many blocks are counted twice in the tables."""
        self._cached_free = 0

    @property
    def at(self) -> int:
        """K: actions executed."""
        return self.simulation.num_actions

    @property
    def counts(self) -> BlockCounts:
        """The usable blocks by state now."""
        pool = self.simulation.scheduler.kv_cache_manager.block_pool
        free = pool.num_free_blocks
        return BlockCounts(pool.num_blocks - 1 - free, self._cached_free, free - self._cached_free)

    @property
    def queues(self) -> tuple[int, int]:
        """How many requests wait, those that wait for a load too, and how many run."""
        scheduler = self.simulation.scheduler
        return len(scheduler.waiting) + len(scheduler.loads.holding), len(scheduler.running)

    @property
    def is_loading(self) -> bool:
        """Whether a load from a connector goes on, or has come and is not taken up: the next step brings it on."""
        simulation = self.simulation
        return simulation.connector is not None and bool(
            simulation.connector.loading or simulation.scheduler.loads.arrived
        )

    @property
    def weight(self) -> int:
        """About how many bytes it takes of its own: columns over the pool, tables, keys, what was lost."""
        history = self.simulation.history
        entries = 2 * len(self.tree) + len(history.holders) + len(history.losses)
        return 50_000 + 50 * self.simulation.config.num_blocks + 55 * entries + 100 * len(self.simulation.scripts)

    @property
    def requests_weight(self) -> int:
        """About how many bytes the living requests take; forks share most of them."""
        return requests_weight(self.simulation)

    def fork(self) -> Cursor:
        """An independent copy. O(pool)."""
        twin = object.__new__(Cursor)
        twin.simulation = self.simulation.fork()
        twin.tree = self.tree.fork()
        twin.applied = self.applied
        twin.copies = {name: groups.copy() for name, groups in self.copies.items()}
        twin.extra_refs, twin._cached_free = self.extra_refs, self._cached_free
        return twin

    def beside(self, simulation: Simulation, log: tuple[Entry, ...]) -> Cursor:
        """The same moment with another engine, on which something was tried that told `log`. For looking at only."""
        twin = object.__new__(Cursor)
        twin.__dict__.update(self.__dict__)
        twin.simulation = simulation
        twin.applied = Applied(Outcome(self.at, Step(), log, (), PrefixCacheStats()), self.counts)
        return twin

    def apply(self, action: Action) -> Applied:
        """Execute one action.

        Raises:
            RequestError: it is impossible now; nothing has changed.
        """
        before = self.counts
        outcome = self.simulation.apply(action)
        self._count(outcome)
        self._note_copies(outcome)
        self._grow_tree(outcome.events)
        self.applied = Applied(outcome, before)
        return self.applied

    def _count(self, outcome: Outcome) -> None:
        """Keep the number of free blocks that carry a hash, and of holders beyond the first."""
        for entry in outcome.log:
            match entry:
                case ("touch", _, _, _, places):
                    idle = sum(place is not None for place in places)
                    self._cached_free -= idle
                    self.extra_refs += len(places) - idle
                case ("pop", _, _, evicted):
                    self._cached_free -= len(evicted)
                case ("copy", _, _, _, _, _):
                    self.extra_refs += 1
                case ("free", _, _, _, back, held, _):
                    self._cached_free += len(back)
                    self.extra_refs -= len(held)
        if outcome.reset:
            self._cached_free = 0

    def _note_copies(self, outcome: Outcome) -> None:
        """Keep who got a copy of a block that was hit only in part (7.12)."""
        local = 0
        for entry in outcome.log:
            match entry:
                case ("call", _, computed, hit, *_):
                    local = computed + hit
                case ("copy", group, request, source, copy, held) if held == copy:
                    size = self.simulation.config.groups[group].block_size
                    self.copies.setdefault(request, {})[group] = PartHit(copy, source, local % size)
                case ("preempt" | "finish", request, _):
                    self.copies.pop(request, None)

    def _grow_tree(self, events: Iterable[KVCacheEvent]) -> None:
        """Bring the prefix tree to what the hash map holds now."""
        keys: dict[Key, None] = {}
        cleared = False
        for event in events:
            match event:
                case BlockStored(block_hashes=hashes, group=group):
                    keys.update(((block_hash, group), None) for block_hash in hashes)
                case BlockRemoved(block_hash=block_hash, group=group):
                    keys[block_hash, group] = None
                case AllBlocksCleared():
                    cleared = True
        cached = self.simulation.scheduler.kv_cache_manager.block_pool.cached
        self.tree.update(keys, lambda key: cached.get_one_block(key) is not None, self._parent_of, cleared=cleared)

    def _parent_of(self, key: Key) -> Key | None:
        lineage = self.simulation.history.lineage.get(key)
        return None if lineage is None or lineage.parent is None else (lineage.parent, key[1])
