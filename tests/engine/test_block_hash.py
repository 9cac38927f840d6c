"""Hashing (2): the bytes that are hashed, the chain, the extra keys, NONE_HASH."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import pytest
import xxhash

from engine.block_hash import (
    HASH_FUNCTIONS,
    BlockHash,
    BlockHasher,
    ExtraKeys,
    generate_block_hash_extra_keys,
    hash_block_tokens,
    init_none_hash,
    short_hash,
)
from tests.engine.helpers import Run, short

SHA256_CBOR = HASH_FUNCTIONS["sha256_cbor"]
NONE_HASH = bytes.fromhex("9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0")
PICKLE_NONE_HASH = bytes.fromhex("066b1e8987e027138e98701c46128929378935f9b6cd1549105ae6b4f0d71198")
PROMPT = list(range(10, 19))


def chain(algorithm: str, lora: str | None = None, salt: str | None = None, size: int = 4) -> list[BlockHash]:
    """The hashes of PROMPT."""
    function = HASH_FUNCTIONS[algorithm]
    hashes: list[BlockHash] = []
    BlockHasher(function, init_none_hash(function), size).extend(hashes, PROMPT, lora, salt)
    return hashes


# ---- an encoder written from 2.3 alone, so that the library's bytes are checked against the rule


def cbor_head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    for low, form in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if value < 1 << 8 * struct.calcsize(form):
            return bytes([major << 5 | low]) + struct.pack(form, value)
    raise ValueError(value)


def cbor(value: object) -> bytes:
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return cbor_head(0, value)
    if isinstance(value, bytes):
        return cbor_head(2, len(value)) + value
    if isinstance(value, str):
        return cbor_head(3, len(value.encode())) + value.encode()
    assert isinstance(value, tuple)
    return cbor_head(4, len(value)) + b"".join(map(cbor, value))


def pickled(value: object) -> bytes:
    body = pickle_item(value) + b"."
    return b"\x80\x05\x95" + struct.pack("<Q", len(body)) + body


def pickle_item(value: object) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, int):
        if value < 256:
            return b"K" + struct.pack("<B", value)
        return b"M" + struct.pack("<H", value) if value < 65536 else b"J" + struct.pack("<i", value)
    if isinstance(value, bytes):
        return b"C" + bytes([len(value)]) + value + b"\x94"
    if isinstance(value, str):
        text = value.encode()
        head = b"\x8c" + bytes([len(text)]) if len(text) < 256 else b"X" + struct.pack("<I", len(text))
        return head + text + b"\x94"
    assert isinstance(value, tuple)
    items = b"".join(map(pickle_item, value))
    close = {1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(value))
    return items + close + b"\x94" if close else b"(" + items + b"t\x94"


def digest_of(algorithm: str, value: object) -> bytes:
    data = cbor(value) if algorithm.endswith("_cbor") else pickled(value)
    if algorithm.startswith("sha256"):
        return hashlib.sha256(data).digest()
    return xxhash.xxh3_128(data).intdigest().to_bytes(16, "big")


# ---- the worked example, 2.6


def test_none_hash_is_the_hash_of_a_fixed_text() -> None:
    assert init_none_hash(SHA256_CBOR) == NONE_HASH
    assert hashlib.sha256(bytes.fromhex("6e766c6c6d2d6e6f6e652d68617368")).digest() == NONE_HASH
    assert init_none_hash(HASH_FUNCTIONS["sha256"]) == PICKLE_NONE_HASH


def test_each_hash_covers_its_parent_its_tokens_and_its_extra_keys() -> None:
    first = hashlib.sha256(bytes.fromhex("835820") + NONE_HASH + bytes.fromhex("840a0b0c0df6")).digest()
    assert first.hex() == "07841fcbeb0cfa576484ba8780ae875b6b1bb60cdb811365562191918b384279"
    second = hashlib.sha256(bytes.fromhex("835820") + first + bytes.fromhex("840e0f1011f6")).digest()
    assert second.hex() == "dbdbc64fc5ce89b4440665a609ffb000ce2f542f722aa6c022ca3f4e88204e3e"
    assert chain("sha256_cbor") == [first, second]
    assert short(chain("sha256_cbor")) == ["562191918b384279", "22ca3f4e88204e3e"]


@pytest.mark.parametrize(
    ("lora", "salt", "extra", "wanted"),
    [
        (None, "tenant-a", "81 82 6a 63616368655f73616c74 68 74656e616e742d61", "670eed33cf67a780"),
        ("sql", None, "81 83 64 6c6f7261 63 73716c 69 2f6c6f72612f73716c", "053d31e492ac7382"),
        (
            "sql",
            "tenant-a",
            "82 83 64 6c6f7261 63 73716c 69 2f6c6f72612f73716c 82 6a 63616368655f73616c74 68 74656e616e742d61",
            "01b9213b64cdf323",
        ),
    ],
    ids=["salt", "lora", "both"],
)
def test_extra_keys_in_the_first_block(lora: str | None, salt: str | None, extra: str, wanted: str) -> None:
    data = bytes.fromhex("835820") + NONE_HASH + bytes.fromhex("840a0b0c0d" + extra)
    first = chain("sha256_cbor", lora, salt)[0]
    assert first == hashlib.sha256(data).digest()
    assert short_hash(first) == wanted


def test_the_pickle_example() -> None:
    assert hashlib.sha256(bytes.fromhex("80059512000000000000008c0e766c6c6d2d6e6f6e652d68617368942e")).digest() == (
        PICKLE_NONE_HASH
    )
    data = "80059532000000000000004320" + PICKLE_NONE_HASH.hex() + "94284b0a4b0b4b0c4b0d74944e87942e"
    assert chain("sha256")[0] == hashlib.sha256(bytes.fromhex(data)).digest()
    assert short(chain("sha256")) == ["442472c890ff51e1", "0e4501638543d69d"]


# ---- the functions, 2.3


def test_cbor_integers_take_their_shortest_form() -> None:
    ids = (23, 24, 255, 256, 65535, 65536, 1000000, 4294967296)
    items = "17 1818 18ff 190100 19ffff 1a00010000 1a000f4240 1b0000000100000000"
    data = bytes.fromhex("83 5820" + NONE_HASH.hex() + "88" + items + "f6")
    assert cbor((NONE_HASH, ids, None)) == data
    assert hash_block_tokens(SHA256_CBOR, NONE_HASH, ids, None) == hashlib.sha256(data).digest()


EXTRAS: list[ExtraKeys | None] = [
    None,
    (("cache_salt", "tenant-a"),),
    (("lora", "sql", "/lora/sql"),),
    (("lora", "sql", "/lora/sql"), ("cache_salt", "naïve-β")),
    (("cache_salt", "x" * 300),),
]


@pytest.mark.parametrize("algorithm", HASH_FUNCTIONS)
@pytest.mark.parametrize("extra", EXTRAS, ids=["none", "salt", "lora", "both", "long"])
@pytest.mark.parametrize(
    "tokens",
    [(0,), (1, 300), (255, 256, 65536), (65535, 65536, 2**31 - 1, 7), tuple(range(1000, 1016)), tuple(range(300))],
    ids=["1", "2", "3", "4", "16", "300"],
)
def test_every_algorithm_hashes_the_bytes_of_the_rule(
    algorithm: str, extra: ExtraKeys | None, tokens: tuple[int, ...]
) -> None:
    function = HASH_FUNCTIONS[algorithm]
    parent = init_none_hash(function)
    assert parent == digest_of(algorithm, "vllm-none-hash")
    assert hash_block_tokens(function, parent, list(tokens), extra) == digest_of(algorithm, (parent, tokens, extra))


@pytest.mark.parametrize(
    ("algorithm", "length"), [("sha256", 32), ("sha256_cbor", 32), ("xxhash", 16), ("xxhash_cbor", 16)]
)
def test_length_of_a_digest(algorithm: str, length: int) -> None:
    assert [len(one) for one in chain(algorithm)] == [length, length]


def test_records_show_the_last_eight_bytes() -> None:
    assert short_hash(bytes(range(16))) == "08090a0b0c0d0e0f"
    assert short_hash(bytes(range(32))) == "18191a1b1c1d1e1f"


# ---- the chain and the extra keys, 2.1, 2.4


@pytest.mark.parametrize("count", [0, 3, 4, 7, 8, 9])
def test_only_full_runs_are_hashed(count: int) -> None:
    hashes: list[BlockHash] = []
    BlockHasher(SHA256_CBOR, NONE_HASH, 4).extend(hashes, PROMPT[:count], None, None)
    assert len(hashes) == count // 4


def test_extending_goes_on_where_it_stopped() -> None:
    hasher = BlockHasher(SHA256_CBOR, NONE_HASH, 4)
    hashes: list[BlockHash] = []
    for count in range(len(PROMPT) + 1):
        hasher.extend(hashes, PROMPT[:count], "sql", "tenant-a")
    assert hashes == chain("sha256_cbor", "sql", "tenant-a")


def test_equal_tokens_behind_another_parent_have_another_hash() -> None:
    hashes: list[BlockHash] = []
    BlockHasher(SHA256_CBOR, NONE_HASH, 2).extend(hashes, [1, 2, 1, 2], None, None)
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    ("lora", "salt", "first", "wanted"),
    [
        (None, None, True, None),
        (None, "", True, None),
        (None, "s", True, (("cache_salt", "s"),)),
        (None, "s", False, None),
        ("l", "s", True, (("lora", "l", "/lora/l"), ("cache_salt", "s"))),
        ("l", "s", False, (("lora", "l", "/lora/l"),)),
    ],
)
def test_the_adapter_keys_every_block_and_the_salt_only_the_first(
    lora: str | None, salt: str | None, first: bool, wanted: ExtraKeys | None
) -> None:
    assert generate_block_hash_extra_keys(lora, salt, first) == wanted


@pytest.mark.parametrize("algorithm", HASH_FUNCTIONS)
def test_every_algorithm_separates_by_extra_keys(algorithm: str) -> None:
    function = HASH_FUNCTIONS[algorithm]
    none = init_none_hash(function)
    first = digest_of(algorithm, (none, (10, 11, 12, 13), (("lora", "l", "/lora/l"), ("cache_salt", "s"))))
    second = digest_of(algorithm, (first, (14, 15, 16, 17), (("lora", "l", "/lora/l"),)))
    assert chain(algorithm, "l", "s") == [first, second]
    chains: Sequence[list[BlockHash]] = [chain(algorithm, lora, salt) for lora in (None, "l") for salt in (None, "s")]
    assert len({one for hashes in chains for one in hashes}) == 8


# ---- NONE_HASH, 2.2


@pytest.mark.parametrize("algorithm", HASH_FUNCTIONS)
@pytest.mark.parametrize("seed", [None, "0", "random", "vllm-none-hash-2"])
def test_the_environment_is_never_read(algorithm: str, seed: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    run = Run(9, prefix_caching_hash_algo=algorithm)
    run.add("a", [(10, 9)])
    assert run.hashes("a") == chain(algorithm)


@pytest.mark.parametrize("algorithm", HASH_FUNCTIONS)
def test_none_hash_is_an_argument_of_the_engine(algorithm: str) -> None:
    none_hash = bytes(range(16))
    run = Run(9, prefix_caching_hash_algo=algorithm, none_hash=none_hash)
    run.add("a", [(10, 9)])
    assert run.hashes("a")[0] == digest_of(algorithm, (none_hash, (10, 11, 12, 13), None))


def test_a_hash_size_of_its_own_cuts_finer_runs() -> None:
    """With H below B a block's hash is the fine hash that ends with it (2.5)."""
    fine, coarse = chain("sha256_cbor", size=2), chain("sha256_cbor")
    assert len(fine) == 4
    assert set(fine).isdisjoint(coarse)
    assert fine[1] == digest_of("sha256_cbor", (fine[0], (12, 13), None))
