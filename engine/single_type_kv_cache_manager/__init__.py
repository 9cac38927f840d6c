"""Block tables of one KV-cache group: `base` has the rules common to all kinds, a module a kind the rest."""

from engine.block_pool import BlockPool
from engine.config import EngineConfig
from engine.kv_cache_interface import (
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    KVCacheSpec,
    MambaSpec,
    SlidingWindowSpec,
)
from engine.single_type_kv_cache_manager.base import TOTAL, Count, Found, Lookup, SingleTypeKVCacheManager
from engine.single_type_kv_cache_manager.chunked_local import ChunkedLocalAttentionManager
from engine.single_type_kv_cache_manager.full_attention import FullAttentionManager
from engine.single_type_kv_cache_manager.mamba import MambaAlignManager, MambaManager
from engine.single_type_kv_cache_manager.sliding_window import SlidingWindowManager

__all__ = ["TOTAL", "Count", "Found", "Lookup", "SingleTypeKVCacheManager", "manager_class", "manager_of"]


def manager_class(spec: KVCacheSpec) -> type[SingleTypeKVCacheManager]:
    """The manager of a kind."""
    match spec:
        case SlidingWindowSpec():
            return SlidingWindowManager
        case ChunkedLocalAttentionSpec():
            return ChunkedLocalAttentionManager
        case MambaSpec(mode="align"):
            return MambaAlignManager
        case MambaSpec():
            return MambaManager
    assert isinstance(spec, FullAttentionSpec), spec
    return FullAttentionManager


def manager_of(spec: KVCacheSpec, pool: BlockPool, group: int, config: EngineConfig) -> SingleTypeKVCacheManager:
    """The manager of one group."""
    return manager_class(spec)(spec, pool, group, config)
