"""Block hashes: a chain over runs of H tokens (behaviour 2).

A hash covers one full run of tokens, its parent and the extra keys; since parents are chained it stands for the whole
prefix that ends with the run.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence

import cbor2
import xxhash

BlockHash = bytes
ExtraKeys = tuple[tuple[str, ...], ...]
HashFn = Callable[[object], BlockHash]

NONE_HASH_SEED = "vllm-none-hash"


def sha256_cbor(value: object) -> BlockHash:
    """SHA-256 (32 bytes) of the canonical CBOR of `value` (2.3)."""
    return hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()


def sha256(value: object) -> BlockHash:
    """SHA-256 (32 bytes) of the pickle, protocol 5, of `value` (2.3)."""
    return hashlib.sha256(pickle.dumps(value, protocol=5)).digest()


def xxhash_cbor(value: object) -> BlockHash:
    """XXH3 (16 bytes, big-endian) of the canonical CBOR of `value` (2.3)."""
    return xxhash.xxh3_128_digest(cbor2.dumps(value, canonical=True))


def xxhash_pickle(value: object) -> BlockHash:
    """XXH3 (16 bytes, big-endian) of the pickle, protocol 5, of `value` (2.3)."""
    return xxhash.xxh3_128_digest(pickle.dumps(value, protocol=5))


HASH_FUNCTIONS: dict[str, HashFn] = {
    "sha256_cbor": sha256_cbor,
    "sha256": sha256,
    "xxhash": xxhash_pickle,
    "xxhash_cbor": xxhash_cbor,
}


def init_none_hash(hash_fn: HashFn) -> BlockHash:
    """The parent of every first block: the hash of a fixed text (2.2). The environment is never read."""
    return hash_fn(NONE_HASH_SEED)


def hash_block_tokens(hash_fn: HashFn, parent: BlockHash, tokens: Sequence[int], extra: ExtraKeys | None) -> BlockHash:
    """The hash of one run of tokens behind `parent` (2.1)."""
    return hash_fn((parent, tuple(tokens), extra))


def generate_block_hash_extra_keys(lora: str | None, cache_salt: str | None, first: bool) -> ExtraKeys | None:
    """What else separates a block: the adapter in all, the salt only in the `first` (2.4). None when nothing."""
    keys: list[tuple[str, ...]] = []
    if lora is not None:
        keys.append(("lora", lora, "/lora/" + lora))
    if first and cache_salt:
        keys.append(("cache_salt", cache_salt))
    return tuple(keys) or None


def short_hash(block_hash: BlockHash) -> str:
    """The low 64 bits as 16 hex digits: how records and the page write a hash (0.5)."""
    return block_hash[-8:].hex()


class BlockHasher:
    """Extends a request's hashes over every full run of `hash_size` tokens not hashed yet (3.2)."""

    __slots__ = ("_hash_fn", "hash_size", "none_hash")

    def __init__(self, hash_fn: HashFn, none_hash: BlockHash, hash_size: int) -> None:
        self._hash_fn = hash_fn
        self.none_hash = none_hash
        self.hash_size = hash_size

    def extend(
        self,
        hashes: list[BlockHash],
        token_ids: Sequence[int],
        lora: str | None,
        cache_salt: str | None,
        num_tokens: int | None = None,
    ) -> None:
        """Append the missing hashes of the first `num_tokens` of `token_ids` (None: of all) to `hashes`, in place."""
        size, fn = self.hash_size, self._hash_fn
        parent = hashes[-1] if hashes else self.none_hash
        later = generate_block_hash_extra_keys(lora, cache_salt, first=False)
        end = len(token_ids) if num_tokens is None else num_tokens
        for start in range(len(hashes) * size, end - size + 1, size):
            extra = later if start else generate_block_hash_extra_keys(lora, cache_salt, first=True)
            parent = hash_block_tokens(fn, parent, token_ids[start : start + size], extra)
            hashes.append(parent)
