"""Chunked local attention: a token sees only its own chunk (behaviour 4.3, 5.3, 5.4)."""

from __future__ import annotations

from engine.kv_cache_block import NULL_BLOCK
from engine.kv_cache_interface import ChunkedLocalAttentionSpec, KVCacheSpec, cdiv
from engine.single_type_kv_cache_manager.base import Found, Lookup, SingleTypeKVCacheManager


class ChunkedLocalAttentionManager(SingleTypeKVCacheManager):
    """Chunks of C tokens; whatever lies before the present chunk counts as there."""

    spec: ChunkedLocalAttentionSpec

    @staticmethod
    def find_longest_cache_hit(spec: KVCacheSpec, lookup: Lookup) -> Found:
        """Nulls up to the chunk of the limit, without looking, then blocks while they are cached."""
        assert isinstance(spec, ChunkedLocalAttentionSpec)
        size, chunk = spec.block_size, spec.attention_chunk_size
        fine = size // lookup.hash_size
        start = lookup.bound // chunk * chunk // size
        tables: tuple[list[int], ...] = tuple([NULL_BLOCK] * start for _ in lookup.members)
        missing = None
        for index in range(start, lookup.bound // size):
            block_hash = lookup.hashes[(index + 1) * fine - 1]
            cached = lookup.pool.get_cached_block(block_hash, lookup.members)
            if cached is None:
                missing = block_hash
                break
            for table, block in zip(tables, cached, strict=True):
                table.append(block)
        found = len(tables[0])
        return Found(tables, found * size, found, missing)

    def get_num_skipped_tokens(self, num_computed_tokens: int) -> int:
        """Every chunk that is over."""
        chunk = self.spec.attention_chunk_size
        return num_computed_tokens // chunk * chunk

    def admission_cap(self) -> int:
        """A chunk and the tokens of one step."""
        tokens = self.spec.attention_chunk_size + self.config.max_num_batched_tokens
        return cdiv(min(tokens, self.config.max_model_len), self.block_size)
