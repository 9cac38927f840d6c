"""Permalinks: one branch, a moment and a selection, compressed into the code behind `/p/`.

::

    code     = version character, then base64url without padding of: 3 bytes of checksum, raw deflate of the payload
    payload  = {"at": 8, "select": "block:3", "scenario": {…}}  as compact JSON in UTF-8
    checksum = the low 24 bits of the payload's CRC-32, big-endian

The deflate starts with `DICTIONARY` behind it, so that the words of the format cost next to nothing. In the scenario
the list of actions may be turned into columns; whichever gives the shorter code is taken::

    "actions": [shapes, runs, columns]
    shapes   = the lists of keys that occur, each once, in order of appearance
    runs     = shape, count, shape, count, …: the actions in order
    columns  = for each shape, for each of its keys: the values in order, or one value that holds for all

What was written is kept: `decode` gives a scenario whose JSON is that of the encoded one, key order included.

Every build reads the links of every earlier one. So nothing of a version is ever changed, its dictionary least of all:
a new way to write gets the next version character, and the old reader stays.

::

    InputError
    ├── ScenarioError, ConfigError    the link is whole, but its scenario is none
    │   └── LinkError                 broken, cut short, or made by a newer Poolscope
    └── LimitError                    too large, inflated or in what it holds
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Final, TypeAlias

from engine.errors import LimitError, ScenarioError
from engine.scenario import Limits, Scenario, parse_scenario
from engine.strict_json import array, loads, record, text, whole_number
from engine.tokens import Tokenize

VERSION: Final = "1"
MAX_BYTES: Final = 2_000_000
"""The most that a link may hold, inflated, and the longest scenario it may give, as compact JSON in UTF-8."""
MAX_CODE: Final = MAX_BYTES * 4 // 3 + 1_000
"""No code of a payload within `MAX_BYTES` is longer, in characters."""
MAX_SELECT: Final = 300
"""The longest selection, in characters."""
MOST_KEYS: Final = 100
"""Of a shape of columns; no action of this version has nearly as many."""
CHECKSUM_BYTES: Final = 3
LEAST_BODY: Final = 20
"""No code of a scenario is shorter, in characters behind the version."""
_BASE64: Final = re.compile(r"[A-Za-z0-9_-]*")

DICTIONARY: Final = (
    b'"sliding_window","chunked_local_attention","mamba","align","abort","reset_prefix_cache","text","async":true,'
    b'"steps":"sliding_window":"attention_chunk_size":"mamba_cache_mode":"num_speculative_blocks":"eagle":"kind":'
    b'"full_attention","needs_kv_cache_zeroing":"num_lookahead_tokens":"prefix_caching_hash_algo":"sha256_cbor","xxhash_cbor",'
    b'"hash_block_size":"prefix_cache_retention_interval":"policy":"priority",'
    b'"num_speculative_tokens":"use_eagle":true,"groups":[{"kind":"full_attention"},{"kind":"sliding_window",'
    b'"scheduler_reserve_full_isl":false,"enable_chunked_prefill":false,"enable_prefix_caching":false,'
    b'"long_prefill_token_threshold":"watermark":0.05,"max_num_batched_tokens":2048,"max_num_seqs":8,'
    b'"max_model_len":256,"block_size":16,"external":{"tokens":,"skip_reading_prefix_cache":true,"lora":'
    b'"cache_salt":"priority":"accept":"stop_token_ids":"reset_running_requests":true},{"do":"abort","id":'
    b'{"do":"reset_prefix_cache"},{"do":"add_request","id":"A","prompt":[{"shared":"system","tokens":64},'
    b'{"continue":"A"},{"text":"],"max_tokens":4,"output":[[1000000,16]]},{"do":"step"},{"do":"step"},'
    b'"actions":[[["do","id","prompt","max_tokens","output"],["do","id","prompt","max_tokens"],["do"],["do","abort"],'
    b'["do","id"],["do","reset_running_requests"]],[0,1,1,1,0,2,1,4],[[["add_request"],["A","B","C","r1","r2","r3"],'
    b'[[[1000,128]],[{"tokens":40}],[{"shared":"system","tokens":64},{"tokens":16}]],[1]],[["step"]]]}}'
    b'{"at":0,"select":"block:1","select":"","scenario":{"version":1,"title":"","config":{"num_blocks":101,'
)
"""What the deflate of version 1 may refer back to; what comes last is the cheapest. Never change it."""

Columns: TypeAlias = list[list[list[object]]]


class LinkError(ScenarioError):
    """The code of a link that can't be read; `code` is malformed_link, malformed_link_cut_short or newer_link."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a permalink holds. `at`: K, actions executed; `select`: as in the page's URL, such as `block:3`, or ""."""

    scenario: Scenario
    at: int
    select: str


def encode(scenario: Scenario, at: int, select: str = "") -> str:
    """The code of a permalink; the same for the same link on one build.

    Raises:
        LimitError: the scenario is too large for any link.
        ScenarioError: there is no moment `at`, or the selection is too long.
    """
    _place(at, select, len(scenario.actions))
    written = scenario.to_json()
    payload: dict[str, object] = {"at": at, "select": select, "scenario": written}
    plain = _dumps(payload)
    if len(plain) > MAX_BYTES:
        message = f"the scenario takes {len(plain)} bytes as JSON, too much for a link"
        raise LimitError("over_limit", message, "link", f"at most {MAX_BYTES} bytes; a download holds more")
    columns = _to_columns(array(written["actions"], "actions", "actions"))
    in_columns = _dumps({**payload, "scenario": {**written, "actions": columns}})
    ways = [way for way in (plain, in_columns) if len(way) <= MAX_BYTES]
    return VERSION + min(map(_pack, ways), key=len)


def decode(code: str, limits: Limits, tokenize: Tokenize | None = None) -> Link:
    """What the code of a permalink holds, checked like a scenario that was typed. Nothing is run.

    Raises:
        LinkError: the code is broken, cut short, or made by a newer Poolscope.
        LimitError: it holds more than this program takes.
        InputError: it holds a scenario that is none.
    """
    payload = record(_read(_unpack(code)), "link", ("at", "select", "scenario"), ("at", "select", "scenario"))
    written = payload["scenario"]
    if isinstance(written, dict) and isinstance(actions := written.get("actions"), list):
        if actions and isinstance(actions[0], list):
            actions = written["actions"] = _from_columns(actions, limits)
        limits.check_counts(len(actions), 0)
    scenario = parse_scenario(written, tokenize)
    limits.check(scenario, tokenize)
    return Link(scenario, *_place(payload["at"], payload["select"], len(scenario.actions)))


def _place(at: object, select: object, end: int) -> tuple[int, str]:
    """Moment and selection, checked."""
    return whole_number(at, "link.at", 0, end), text(select, "link.select", 0, MAX_SELECT)


def _dumps(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


# Bytes and characters


def _pack(payload: bytes) -> str:
    """Checksum and deflate, as base64url."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
    packed = _checksum(payload) + deflate.compress(payload) + deflate.flush()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")


def _checksum(payload: bytes) -> bytes:
    return zlib.crc32(payload).to_bytes(4, "big")[-CHECKSUM_BYTES:]


def _unpack(code: str) -> bytes:
    """The payload of a code of any version up to this one."""
    if len(code) > MAX_CODE:
        message = f"the link is {len(code)} characters long"
        raise LimitError("over_limit", message, "link", f"at most {MAX_CODE} characters")
    if not code:
        raise _cut_short()
    if code[0] != VERSION:
        if code[0].isascii() and code[0].isalnum() and code[0] > VERSION and _is_well_formed(code[1:]):
            expected = f"a link of version {VERSION}, or a newer Poolscope to open it"
            raise LinkError("newer_link", "this link was made by a newer Poolscope", "link", expected)
        raise _broken()
    return _inflate(_bytes_of(code[1:]))


def _is_well_formed(body: str) -> bool:
    """Whether a later version can have written it: a mistyped address is broken, and not from the future."""
    return len(body) >= LEAST_BODY and len(body) % 4 != 1 and _BASE64.fullmatch(body) is not None


def _bytes_of(body: str) -> bytes:
    """Undo base64url; no other characters, no padding."""
    if not _BASE64.fullmatch(body):
        raise _broken()
    if len(body) % 4 == 1 or len(body) * 3 // 4 <= CHECKSUM_BYTES:
        raise _cut_short()
    return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))


def _inflate(packed: bytes) -> bytes:
    """The payload, never more than `MAX_BYTES` of it in memory."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS, zdict=DICTIONARY)
    try:
        payload = inflate.decompress(packed[CHECKSUM_BYTES:], MAX_BYTES + 1)
    except zlib.error:
        raise _broken() from None
    if len(payload) > MAX_BYTES:
        raise _too_large()
    if not inflate.eof:
        raise _cut_short()
    if inflate.unused_data or _checksum(payload) != packed[:CHECKSUM_BYTES]:
        raise _broken()
    return payload


def _read(payload: bytes) -> object:
    try:
        return loads(payload)
    except ScenarioError as error:
        if error.code == "malformed_json":
            raise _broken() from None
        raise


def _broken() -> LinkError:
    return LinkError("malformed_link", "the link is broken", "link", "all of it, just as it was copied")


def _cut_short() -> LinkError:
    message = "the link is cut short: its end is missing"
    return LinkError("malformed_link_cut_short", message, "link", "all of it, just as it was copied")


def _too_large() -> LimitError:
    return LimitError("over_limit", "the link holds too much", "link", f"at most {MAX_BYTES} bytes when inflated")


# Columns


def _to_columns(actions: list[object]) -> list[object]:
    """`[shapes, runs, columns]` of a list of objects; `_from_columns` undoes it."""
    rows: dict[tuple[str, ...], list[dict[str, object]]] = {}
    places: dict[tuple[str, ...], int] = {}
    runs: list[int] = []
    last: tuple[str, ...] | None = None
    for action in actions:
        assert isinstance(action, dict), action
        shape = tuple(action)
        rows.setdefault(shape, []).append(action)
        if shape == last:
            runs[-1] += 1
        else:
            runs += (places.setdefault(shape, len(places)), 1)
        last = shape
    columns = [[_column([row[key] for row in of_shape]) for key in shape] for shape, of_shape in rows.items()]
    return [[list(shape) for shape in rows], runs, columns]


def _column(values: list[object]) -> list[object]:
    """The values, or one if it holds for all; 1, 1.0 and true are three."""
    first = _dumps(values[0])
    return values[:1] if all(_dumps(value) == first for value in values) else values


def _from_columns(packed: list[object], limits: Limits) -> list[object]:
    """The list of objects. A column of one value may stand for many: the sizes are checked before anything is built."""
    if len(packed) != 3:
        raise _broken()
    shapes = [_keys(shape) for shape in array(packed[0], "link.shapes", "lists of keys")]
    numbers = [whole_number(number, "link.runs", 0) for number in array(packed[1], "link.runs", "numbers")]
    runs = list(zip(numbers[::2], numbers[1::2], strict=False))
    counts = [0] * len(shapes)
    for shape, count in runs:
        if shape >= len(shapes) or not count:
            raise _broken()
        counts[shape] += count
    limits.check_counts(sum(counts), 0)
    columns = [array(columns, "link.columns", "columns") for columns in array(packed[2], "link.columns", "columns")]
    if len(numbers) % 2 or len(columns) != len(shapes):
        raise _broken()
    parts = [
        (keys, _columns(keys, values, count), count)
        for keys, values, count in zip(shapes, columns, counts, strict=True)
    ]
    if sum(_unfolded(keys, values, count) for keys, values, count in parts) > MAX_BYTES:
        raise _too_large()
    rows = [_objects(keys, values, count) for keys, values, count in parts]
    return [next(rows[shape]) for shape, count in runs for _ in range(count)]


def _keys(shape: object) -> list[str]:
    """The keys of a shape: at least one and no more than an action can have, each once."""
    keys = [text(key, "link.shapes") for key in array(shape, "link.shapes", "keys")]
    if not 0 < len(keys) <= MOST_KEYS or len(set(keys)) != len(keys):
        raise _broken()
    return keys


def _columns(keys: list[str], values: list[object], count: int) -> list[list[object]]:
    """The columns of a shape that stands for `count` objects: for each key so many values, or one."""
    columns = [array(column, "link.columns", "values") for column in values]
    if len(columns) != len(keys) or any(len(column) not in (1, count) for column in columns):
        raise _broken()
    return columns


def _unfolded(keys: list[str], columns: list[list[object]], count: int) -> int:
    """How many bytes the `count` objects of a shape take as compact JSON, each with a comma behind it."""
    size = count * (2 + sum(len(_dumps(key)) + 2 for key in keys))
    for column in columns:
        alone = _size(column) - 1 - len(column)
        size += alone if len(column) == count else alone * count
    return size


def _objects(keys: list[str], columns: list[list[object]], count: int) -> Iterator[dict[str, object]]:
    """The `count` objects of a shape, one at a time."""
    full = [column if len(column) == count else repeat(column[0], count) for column in columns]
    return (dict(zip(keys, row, strict=True)) for row in zip(*full, strict=True))


def _size(column: list[object]) -> int:
    """Bytes of compact JSON; what nests too deeply to be written is no scenario's."""
    try:
        return len(_dumps(column))
    except RecursionError:
        raise _broken() from None
