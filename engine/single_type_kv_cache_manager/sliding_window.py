"""Sliding window: only the last blocks are kept, and a hit needs only those (behaviour 4.2, 7.6, 7.8)."""

from __future__ import annotations

from engine.kv_cache_block import NULL_BLOCK
from engine.kv_cache_interface import KVCacheSpec, SlidingWindowSpec, cdiv
from engine.request import Request
from engine.single_type_kv_cache_manager.base import Found, Lookup, SingleTypeKVCacheManager
from engine.single_type_kv_cache_manager.retention import reachable_positions


def blocks_in_window(spec: SlidingWindowSpec) -> int:
    """`need`: the blocks that the W - 1 tokens before the next one can lie in (4.2)."""
    return cdiv(spec.sliding_window - 1, spec.block_size)


class SlidingWindowManager(SingleTypeKVCacheManager):
    """A window of W tokens: the next token sees W - 1 earlier ones."""

    spec: SlidingWindowSpec

    @staticmethod
    def find_longest_cache_hit(spec: KVCacheSpec, lookup: Lookup) -> Found:
        """From the right: the first run of cached blocks that fills the window, with nulls before it."""
        assert isinstance(spec, SlidingWindowSpec)
        size, alignment = spec.block_size, lookup.alignment
        fine = size // lookup.hash_size
        need = blocks_in_window(spec) + lookup.drop
        tables: tuple[list[int], ...] = tuple([NULL_BLOCK] * (lookup.bound // size) for _ in lookup.members)
        run, filled, missing = 0, False, None
        for index in range(lookup.bound // size - 1, -1, -1):
            block_hash = lookup.hashes[(index + 1) * fine - 1]
            cached = lookup.pool.get_cached_block(block_hash, lookup.members)
            if cached is None:
                run, missing = 0, missing or block_hash
                continue
            end = (index if lookup.drop else index + 1) * size
            if run == 0 and size != alignment and end % alignment:
                continue
            for table, block in zip(tables, cached, strict=True):
                if run == 0:
                    del table[index + 1 :]
                table[index] = block
            run += 1
            if run >= need:
                filled = True
                break
        length = len(tables[0]) if filled else run
        if not filled:
            length = _aligned(length, size, alignment)
        found = length
        if lookup.drop and length:
            length = _aligned(length - 1, size, alignment)
        for table in tables:
            del table[length:]
        return Found(tables, length * size, found, missing)

    def get_num_skipped_tokens(self, num_computed_tokens: int) -> int:
        """All but the W - 1 tokens that the next one sees."""
        return max(0, num_computed_tokens - self.spec.sliding_window + 1)

    def admission_cap(self) -> int:
        """A window and the tokens of one step, and one block for their not starting at a block's edge."""
        tokens = self.spec.sliding_window - 1 + self.config.max_num_batched_tokens
        return cdiv(min(tokens, self.config.max_model_len), self.block_size) + 1

    def reachable_block_mask(self, request: Request, first: int, end: int) -> list[bool] | None:
        """The last blocks of each segment, and those before each position that a retained hit can end at (7.8)."""
        size, alignment, interval = self.block_size, self.config.alignment, self.config.prefix_cache_retention_interval
        if alignment % size:
            return None
        need, shift = blocks_in_window(self.spec) + self.eagle, int(self.eagle)
        segment = alignment if interval is None else interval
        per = segment // size
        if per and need >= per:
            return None
        chosen = [bool(per) and index >= shift and (index - shift) % per >= per - need for index in range(first, end)]
        if interval is not None:
            for position in reachable_positions(self.config, request):
                stop = position // alignment * alignment // size + shift
                for index in range(max(stop - need, first), min(stop, end)):
                    chosen[index - first] = True
        return chosen


def _aligned(length: int, size: int, alignment: int) -> int:
    """The most blocks, at most `length`, whose tokens are a multiple of the alignment."""
    while size != alignment and length and length * size % alignment:
        length -= 1
    return length
