"""Full attention: every block of a sequence is kept (behaviour 4.1, 7.6, 7.12)."""

from __future__ import annotations

from engine.kv_cache_interface import KVCacheSpec, cdiv
from engine.request import Request
from engine.single_type_kv_cache_manager.base import Found, Lookup, SingleTypeKVCacheManager


class FullAttentionManager(SingleTypeKVCacheManager):
    """Walks the chain of hashes; the first miss ends a hit."""

    releases = False

    @staticmethod
    def find_longest_cache_hit(spec: KVCacheSpec, lookup: Lookup) -> Found:
        """Full blocks while they are cached, then the longest cached part of the next one if hits may be partial."""
        size, hashes = spec.block_size, lookup.hashes
        fine = size // lookup.hash_size
        blocks: tuple[list[int], ...] = tuple([] for _ in lookup.members)
        missing = None
        full = 0
        while full < lookup.bound // size:
            block_hash = hashes[(full + 1) * fine - 1]
            cached = lookup.pool.get_cached_block(block_hash, lookup.members)
            if cached is None:
                missing = block_hash
                break
            for table, block in zip(blocks, cached, strict=True):
                table.append(block)
            full += 1
        length = full * size
        if lookup.alignment < size and size % lookup.alignment == 0:
            length = FullAttentionManager._probe_next(lookup, blocks, full, fine)
        found = len(blocks[0])
        if lookup.drop and length > 0:
            length -= min(lookup.alignment, size)
        length -= length % lookup.alignment
        for table in blocks:
            del table[cdiv(length, size) :]
        return Found(blocks, length, found, missing)

    @staticmethod
    def _probe_next(lookup: Lookup, blocks: tuple[list[int], ...], full: int, fine: int) -> int:
        """The longest cached part of the block behind `full` full ones, appended as a partial block; the new length."""
        size = lookup.hash_size
        last = min((full + 1) * fine - 1, lookup.bound // size, len(lookup.hashes))
        for index in range(last - 1, full * fine - 1, -1):
            cached = lookup.pool.get_cached_block(lookup.hashes[index], lookup.members)
            if cached is not None:
                for table, block in zip(blocks, cached, strict=True):
                    table.append(block)
                return (index + 1) * size
        return full * fine * size

    def caches_partial_tail(self) -> bool:
        """Only where hashes are finer than blocks."""
        return self.block_size != self.hash_size

    def cache_partial_tail(self, request: Request, num_tokens: int) -> None:
        """The prompt's own last hash boundary, if it lies inside a block (7.12)."""
        prompt = request.num_prompt_tokens if self.eagle else request.num_prompt_tokens - 1
        tail = prompt // self.hash_size * self.hash_size
        if 0 < tail <= num_tokens and tail % self.block_size:
            table = self.req_to_blocks[request.request_id]
            index = tail // self.block_size
            if index < len(table):
                self.pool.cache_partial_block(request, table[index], tail, self.group)
