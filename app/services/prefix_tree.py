"""The hashed blocks as a prefix tree of chains, kept up to date by what each action changed.

A chain is a path without forks, as long as it can be; its children hang at its last key. A key whose parent is no
longer cached starts a chain of its own and is taken in again when the parent comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from engine.kv_cache_block import Key


class Chain:
    """Keys one behind the other; `waits_for` is the parent that is not cached, for a chain that hangs nowhere."""

    __slots__ = ("children", "id", "keys", "parent", "waits_for")

    def __init__(self, chain_id: int, keys: list[Key]) -> None:
        self.id = chain_id
        self.keys = keys
        self.parent: Chain | None = None
        self.children: dict[int, Chain] = {}
        self.waits_for: Key | None = None


class PrefixTree:
    """Every cached key is in exactly one chain. Ids of chains are never used again.

    `changed` and `gone` are the chains that the latest `update` changed (in keys or place) or ended.
    """

    def __init__(self) -> None:
        self.chains: dict[int, Chain] = {}
        self.changed: set[int] = set()
        self.gone: set[int] = set()
        self._chain_of: dict[Key, int] = {}
        self._orphans: dict[Key, dict[int, Chain]] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._chain_of)

    def chain_of(self, key: Key) -> Chain | None:
        """The chain that a key is in; None when it is not cached."""
        chain_id = self._chain_of.get(key)
        return None if chain_id is None else self.chains[chain_id]

    def fork(self) -> PrefixTree:
        """An independent copy. O(keys), by whole lists."""
        twin = PrefixTree()
        twin._next_id, twin.changed, twin.gone = self._next_id, self.changed.copy(), self.gone.copy()
        for chain in self.chains.values():
            twin.chains[chain.id] = Chain(chain.id, chain.keys[:])
        for chain in self.chains.values():
            copy = twin.chains[chain.id]
            copy.parent = twin.chains[chain.parent.id] if chain.parent else None
            copy.children = {child: twin.chains[child] for child in chain.children}
            copy.waits_for = chain.waits_for
        twin._chain_of = self._chain_of.copy()
        for key, orphans in self._orphans.items():
            twin._orphans[key] = {chain_id: twin.chains[chain_id] for chain_id in orphans}
        return twin

    def update(
        self,
        keys: Iterable[Key],
        is_cached: Callable[[Key], bool],
        parent_of: Callable[[Key], Key | None],
        *,
        cleared: bool,
    ) -> None:
        """Take in what an action did to `keys`, in their order; `cleared`: everything was forgotten before."""
        self.changed, self.gone = set(), set()
        if cleared:
            self.gone = set(self.chains)
            self.chains.clear()
            self._chain_of.clear()
            self._orphans.clear()
        before = self._next_id
        for key in keys:
            present = key in self._chain_of
            if is_cached(key) and not present:
                self._add(key, parent_of(key))
            elif present and not is_cached(key):
                self._remove(key)
        self.changed -= self.gone
        self.gone = {chain_id for chain_id in self.gone if chain_id < before}

    # ---- one key

    def _add(self, key: Key, parent: Key | None) -> None:
        above = self.chain_of(parent) if parent is not None else None
        if above is not None:
            assert parent is not None
            self._split_behind(above, parent)
        if above is not None and not above.children:
            above.keys.append(key)
            chain = above
        else:
            chain = self._new([key])
            self._hang(chain, above, parent)
        self._chain_of[key] = chain.id
        self.changed.add(chain.id)
        for orphan in list(self._orphans.get(key, {}).values()):
            self._hang(orphan, chain, key)
        self._merge(chain)

    def _remove(self, key: Key) -> None:
        chain = self.chains[self._chain_of[key]]
        self._split_behind(chain, key)
        del self._chain_of[key]
        for child in list(chain.children.values()):
            self._hang(child, None, key)
        chain.keys.pop()
        self.changed.add(chain.id)
        if not chain.keys:
            above = chain.parent
            self._unhang(chain)
            del self.chains[chain.id]
            self.gone.add(chain.id)
            if above is not None:
                self._merge(above)

    # ---- whole chains

    def _new(self, keys: list[Key]) -> Chain:
        chain = Chain(self._next_id, keys)
        self._next_id += 1
        self.chains[chain.id] = chain
        self.changed.add(chain.id)
        return chain

    def _unhang(self, chain: Chain) -> None:
        if chain.parent is not None:
            del chain.parent.children[chain.id]
        elif chain.waits_for is not None:
            waiting = self._orphans[chain.waits_for]
            del waiting[chain.id]
            if not waiting:
                del self._orphans[chain.waits_for]
        chain.parent = chain.waits_for = None

    def _hang(self, chain: Chain, above: Chain | None, parent: Key | None) -> None:
        """Hang a chain at the last key of `above`, or let it wait for the key `parent`."""
        self._unhang(chain)
        chain.parent = above
        if above is not None:
            above.children[chain.id] = chain
        elif parent is not None:
            chain.waits_for = parent
            self._orphans.setdefault(parent, {})[chain.id] = chain
        self.changed.add(chain.id)

    def _split_behind(self, chain: Chain, key: Key) -> None:
        """Make `key` the last of its chain; what stood behind it becomes a child."""
        if chain.keys[-1] == key:
            return
        place = chain.keys.index(key) + 1
        tail = self._new(chain.keys[place:])
        del chain.keys[place:]
        for moved in tail.keys:
            self._chain_of[moved] = tail.id
        for child in list(chain.children.values()):
            self._hang(child, tail, None)
        self._hang(tail, chain, None)
        self.changed.add(chain.id)

    def _merge(self, chain: Chain) -> None:
        """An only child is no fork: it becomes part of the chain."""
        if len(chain.children) != 1:
            return
        (child,) = chain.children.values()
        self._unhang(child)
        chain.keys.extend(child.keys)
        for moved in child.keys:
            self._chain_of[moved] = chain.id
        for grandchild in list(child.children.values()):
            self._hang(grandchild, chain, None)
        del self.chains[child.id]
        self.gone.add(child.id)
        self.changed.add(chain.id)
