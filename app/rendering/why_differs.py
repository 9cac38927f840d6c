"""What keeps two requests from sharing a block behind the same prefix: their tokens, a salt, an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.contexts import Piece, Words
from app.rendering.moment import Moment
from app.rendering.words import count, isolated, sentence
from engine.actions import AddRequest
from engine.block_hash import BlockHash
from engine.kv_cache_block import Key
from engine.tokens import tokens_between

MOST: Final = 30
"""So many cached blocks are looked into."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A cached block that others could have hit: whose tokens it holds, None: nobody knows."""

    block: int
    key: Key
    owner: str | None


@dataclass(frozen=True, slots=True)
class _Hashed:
    """What is in the hash of one block beside the hash before it."""

    tokens: Sequence[int]
    salt: str | None
    """Of a first block."""
    lora: str | None


def differs(moment: Moment, request: str, stored: Sequence[Stored], start: int, size: int) -> tuple[Words, Stored]:
    """Why the block at token `start` of a request is none of those `stored`, told of the one most like it."""
    mine = _hashed(moment, request, start, size)
    best, theirs, most = stored[0], None, -1
    for one in stored[:MOST] if mine is not None else ():
        found = _hashed(moment, one.owner, start, size, one.key[0]) if one.owner is not None else None
        if mine is not None and found is not None and (same := _same(mine.tokens, found.tokens)) > most:
            best, theirs, most = one, found, same
    block = f"Block {best.block}" + ("" if best.owner is None else " of {}")
    if mine is None or theirs is None or not most:
        where = f"behind token {start - 1}" if start else "from the first block on"
        told = f"It was never stored. {block} has other tokens {where}."
    elif most < size:
        told = (
            f"It was never stored. {block} has the same {count(most, 'token')} at first and others from token "
            f"{start + most} on: only a whole block can be hit."
        )
    else:
        told = f"It was never stored. {block} has the same {size} tokens with "
    words = sentence(moment, told, *(() if best.owner is None else (best.owner,)))
    if mine is not None and theirs is not None and most == size:
        words = (*words, Piece(f"{_keys_apart(mine, theirs)}, and that is in the hash too."))
    if others := len(stored) - 1:
        verb = "goes" if others == 1 else "go"
        words = (*words, Piece(f" {count(others, 'other block')} {verb} on differently too."))
    return words, best


def _keys_apart(mine: _Hashed, theirs: _Hashed) -> str:
    pairs = [("cache_salt", mine.salt, theirs.salt), ("LoRA adapter", mine.lora, theirs.lora)]
    return " and ".join(f"{_named(name, its)} instead of {_value(own)}" for name, own, its in pairs if own != its)


def _named(name: str, value: str | None) -> str:
    return f"no {name}" if value is None else f"the {name} {isolated(value)}"


def _value(value: str | None) -> str:
    return "none" if value is None else isolated(value)


def _same(mine: Sequence[int], theirs: Sequence[int]) -> int:
    """How many tokens are equal from the start on."""
    return next((at for at, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), len(mine))


def _hashed(moment: Moment, request: str, start: int, size: int, block_hash: BlockHash | None = None) -> _Hashed | None:
    """What the block at token `start` of the latest request of this name is made of; with this hash if one is given."""
    added = next((one for one in reversed(moment.actions[: moment.at]) if _adds(one, request)), None)
    script = moment.cursor.simulation.scripts.get(request)
    if not isinstance(added, AddRequest) or script is None:
        return None
    spans = script.so_far()
    hasher = moment.cursor.simulation.hasher
    if block_hash is not None:
        hashes: list[BlockHash] = []
        hasher.extend(hashes, tokens_between(spans, 0, start + size), added.lora, added.cache_salt)
        if not hashes or hashes[-1] != block_hash:
            return None
    tokens = tokens_between(spans, start, start + size)
    return _Hashed(tokens, None if start else added.cache_salt or None, added.lora)


def _adds(action: object, request: str) -> bool:
    return isinstance(action, AddRequest) and action.id == request
