"""What everything in this package is rendered from: one moment of one branch."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.services.columns import Columns
from app.services.cursor import Applied, BlockCounts, Cursor
from app.services.session import MAIN, Node, Session
from engine.actions import Action
from engine.block_pool import BlockPool
from engine.history import History
from engine.kv_cache_manager import KVCacheManager
from engine.sched.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Moment:
    """A cursor, what the branch remembers, and where the page is. Read only; valid while the session's lock is held."""

    cursor: Cursor
    columns: Columns
    actions: list[Action]
    title: str
    base: str
    """What relative URLs start with: "SESSION/", or "" where the page's address ends in a slash."""
    branch: str = MAIN
    session_id: str = ""
    branches: dict[str, Node] = field(default_factory=dict)
    """Every branch of the session."""
    numbers: dict[str, int] | None = None
    """Other numbers of the requests than this branch's own, where it is shown beside another one."""

    @classmethod
    def of(cls, session: Session, cursor: Cursor) -> Moment:
        """The moment at which `cursor` stands."""
        branch = session.branch
        chosen, nodes = session.chosen, session.nodes
        title = session.shown_title
        return cls(cursor, branch.columns, branch.actions, title, session.source.base, chosen, session.id, nodes)

    @property
    def at(self) -> int:
        """K."""
        return self.cursor.at

    @property
    def applied(self) -> Applied | None:
        """The action that led here."""
        return self.cursor.applied

    @property
    def changed(self) -> frozenset[int]:
        """Blocks that this action changed."""
        return self.applied.changed_blocks if self.applied else frozenset()

    @property
    def evicted(self) -> frozenset[int]:
        """Blocks that lost a hash in this action."""
        return self.applied.evicted_blocks if self.applied else frozenset()

    @property
    def counts(self) -> BlockCounts:
        """The usable blocks by state now."""
        return self.cursor.counts

    @property
    def scheduler(self) -> Scheduler:
        """The engine's scheduler."""
        return self.cursor.simulation.scheduler

    @property
    def manager(self) -> KVCacheManager:
        """The engine's KV-cache manager."""
        return self.scheduler.kv_cache_manager

    @property
    def pool(self) -> BlockPool:
        """The engine's block pool."""
        return self.manager.block_pool

    @property
    def history(self) -> History:
        """Holders, lineage and losses."""
        return self.cursor.simulation.history

    def number(self, request: str) -> int:
        """A request's number in order of first add."""
        return (self.numbers or self.columns.numbers)[request]

    def holders(self, block: int) -> list[int]:
        """The numbers of at most two requests that hold a block, the longest holder first."""
        return [self.number(name) for name in self.history.holders.get(block, ())[:2]]

    def label(self, action: int) -> str:
        """As "step 3", or "action 7" for what is no step."""
        steps = self.columns.steps
        return f"step {steps[action + 1]}" if steps[action + 1] > steps[action] else f"action {action + 1}"

    def query(self, at: int) -> str:
        """The relative URL of another moment of this branch."""
        return f"?branch={self.branch}&at={at}"
