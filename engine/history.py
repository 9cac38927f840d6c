"""What cannot be read from the present state, folded from the trace: holders, lineage of hashes, lost hashes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.block_hash import BlockHash
from engine.config import EngineConfig
from engine.kv_cache_block import Key
from engine.trace import Entry


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a hash stands in its chain: the hash before it, and how many tokens its prefix has."""

    parent: BlockHash | None
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A block lost a hash: in which action, and for whose new block; None: a reset."""

    action: int
    block: int
    by: str | None


class History:
    """Folded outcome by outcome; equal traces give equal histories."""

    def __init__(self, config: EngineConfig) -> None:
        self._block_sizes = [group.block_size for group in config.groups]
        self._hash_size = config.hash_size
        self.holders: dict[int, tuple[str, ...]] = {}
        """Held block -> the requests that hold it, the longest holder first."""
        self.lineage: dict[Key, Lineage] = {}
        """Every key that was ever stored, here or in a fork: a key says all of its prefix, so forks share them."""
        self._shares_lineage = not config.partial_hits  # a partial key may get another parent
        self.losses: dict[Key, Loss] = {}
        """Key -> its latest loss; it may be cached again, or still, in another block."""
        self.hit_blocks: dict[str, tuple[int, ...]] = {}
        """Request that holds blocks -> leading table entries that were hits at its admission, a number a group."""

    def fork(self) -> History:
        """An independent copy."""
        twin = object.__new__(History)
        twin.__dict__.update(self.__dict__)
        for name in ("holders", "losses", "hit_blocks", *(() if self._shares_lineage else ("lineage",))):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def absorb(self, index: int, log: Iterable[Entry]) -> None:
        """Fold in the trace of action `index`."""
        holders = self.holders
        request, copied, hit = "", False, ()
        for entry in log:
            kind = entry[0]
            if kind == "call":
                request, hit = entry[1], entry[7]
            elif kind == "return":
                if entry[1] is not None and any(hit):
                    self.hit_blocks[request] = tuple(map(len, hit))
            elif kind == "touch":
                for block in entry[2]:
                    holders[block] = (*holders.get(block, ()), request)
            elif kind == "pop":
                for block in entry[2]:
                    holders[block] = (request,)
                for _, block, keys in entry[3]:
                    self._lost(keys, Loss(index, block, request))
            elif kind == "replace":
                self._lost(entry[2], Loss(index, entry[1], request))
            elif kind == "clear":
                for block, keys in entry[1]:
                    self._lost(keys, Loss(index, block, None))
            elif kind in ("hash", "hash_partial"):
                self._stored(entry)
            elif kind == "copy":
                _, _, _, source, copy, held = entry
                self._release(source if held == copy else copy, request)
            elif kind in ("preempt", "finish", "received"):
                request = entry[1]
                if kind != "received":
                    self.hit_blocks.pop(request, None)
            elif kind == "copies":
                copied = True
            elif kind == "free":
                # What a copy held besides is no request's.
                for block in () if copied else entry[2]:
                    self._release(block, request)
                copied = False

    def _lost(self, keys: Iterable[Key], loss: Loss) -> None:
        self.losses.update(dict.fromkeys(keys, loss))

    def _release(self, block: int, request: str) -> None:
        left = tuple(name for name in self.holders.get(block, ()) if name != request)
        if left:
            self.holders[block] = left
        else:
            self.holders.pop(block, None)

    def _stored(self, entry: Entry) -> None:
        """A chain of hashes; each is the parent of the next (1.8, 7.12)."""
        if entry[0] == "hash_partial":
            _, group, _, block_hash, parent, num_tokens = entry
            self.lineage[block_hash, group] = Lineage(parent, num_tokens)
            return
        _, group, _, _, _, hashes, _, indexes, parents = entry
        size = self._block_sizes[group]
        for block_hash, index, parent in zip(hashes, indexes, parents, strict=True):
            self.lineage[block_hash, group] = Lineage(parent, (index + 1) * size)
