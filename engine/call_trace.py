"""One `allocate_slots` call, stage by stage, as frozen classes made from a log (behaviour 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.block_hash import BlockHash
from engine.kv_cache_block import Key
from engine.trace import STAGES, Entry


@dataclass(frozen=True, slots=True)
class CountTerms:
    """The count of one group in blocks (5.5).

    `need - held - hits (or skipped) = fresh`, `fresh + idle_hits + copies = total`. Mamba in mode "align" keeps one
    running state, so `fresh` is less there; a hit whose state is only being made counts N + 1 in all (7.10).
    """

    need: int
    held: int
    skipped: int
    hits: int
    fresh: int
    idle_hits: int
    copies: int
    """Copies of a partly hit block (7.12)."""
    total: int


@dataclass(frozen=True, slots=True)
class FitTest:
    """`needed + headroom <= free - reserved`, in blocks: the gate (5.3) or the check (5.6)."""

    tokens: int
    terms: tuple[CountTerms, ...]
    needed: int
    headroom: int
    free: int
    reserved: int

    @property
    def passes(self) -> bool:
        """Whether the blocks fit."""
        return self.spare >= 0

    @property
    def spare(self) -> int:
        """Free blocks left over; negative: so many are missing."""
        return self.free - self.reserved - self.needed - self.headroom


@dataclass(frozen=True, slots=True)
class Touched:
    """A hit block that got one more holder; `place` in the free queue that it left, None if it was held."""

    group: int
    block: int
    ref_before: int
    place: int | None


@dataclass(frozen=True, slots=True)
class Popped:
    """A new block from the head of the free queue, and the keys it lost."""

    group: int
    block: int
    place: int
    lost: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Registered:
    """Table entries `first` .. `end` - 1 of a group were registered (1.8).

    Of those that were chosen: entry `indexes[i]`, which is `blocks[i]`, got `hashes[i]`.
    """

    group: int
    first: int
    end: int
    blocks: tuple[int, ...]
    hashes: tuple[BlockHash, ...]
    parent: BlockHash | None
    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartialPrefix:
    """A prefix of `num_tokens` tokens that ends inside `block` was registered (7.12)."""

    group: int
    block: int
    block_hash: BlockHash
    parent: BlockHash | None
    num_tokens: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """Blocks given back by one `free_blocks` (1.7): in which order, where they went, and who is still held."""

    group: int
    blocks: tuple[int, ...]
    front: tuple[int, ...]
    """Unhashed: places 0, 1, .. of the free queue."""
    back: tuple[int, ...]
    """Hashed: behind the tail."""
    held: tuple[tuple[int, int], ...]
    """(block, `ref_cnt` after)."""
    free_before: int

    def place(self, block: int) -> int | None:
        """The place that a block got in the free queue; None when it is still held."""
        if block in self.front:
            return self.front.index(block)
        if block in self.back:
            return self.free_before + len(self.front) + self.back.index(block)
        return None

    @classmethod
    def of(cls, entry: Entry) -> GivenBack:
        """From a `free` entry."""
        _, group, blocks, front, back, held, free = entry
        return cls(group, tuple(blocks), tuple(front), tuple(back), tuple(held), free)


@dataclass(frozen=True, slots=True)
class CallTrace:
    """What one call was asked, what each stage found, and what it decided."""

    request: str
    comp: int
    new_comp: int
    ext_comp: int
    new: int
    lookahead: int
    hit_blocks: tuple[tuple[int, ...], ...]
    full_sequence_must_fit: bool
    watermark_blocks: int
    reserved_blocks: int
    free_before: int
    free_after: int = 0
    new_blocks: tuple[tuple[int, ...], ...] | None = None
    gate: FitTest | None = None
    """None when the gate is off."""
    check: FitTest | None = None
    """Where the gate refused: the check as if it had passed. `reached` tells."""
    released: tuple[GivenBack, ...] = ()
    touched: tuple[Touched, ...] = ()
    popped: tuple[Popped, ...] = ()
    registered: tuple[Registered, ...] = ()
    partial: tuple[PartialPrefix, ...] = ()

    @property
    def granted(self) -> bool:
        """Whether the call got its blocks."""
        return self.new_blocks is not None

    @property
    def refused_by(self) -> str | None:
        """The stage that refused, "gate" or "check"; None when granted."""
        if self.granted:
            return None
        return "gate" if self.gate is not None and not self.gate.passes else "check"

    @property
    def reached(self) -> tuple[str, ...]:
        """The stages that ran, in order; `return` always does."""
        last = {None: "return", "gate": "gate", "check": "check"}[self.refused_by]
        stages = STAGES[: STAGES.index(last) + 1]
        if not self.full_sequence_must_fit:
            stages = stages[1:]
        return stages if self.granted else (*stages, "return")

    @property
    def shortfall(self) -> int:
        """How many more free blocks would have been enough: the larger one of gate and check; 0 when granted."""
        if self.granted:
            return 0
        return max(-test.spare for test in (self.gate, self.check) if test is not None)

    def can_never_fit(self, usable_blocks: int) -> bool:
        """Whether not even an otherwise empty pool would do; the headroom falls away there (5.2)."""
        tests = [test for test in (self.gate, self.check) if test is not None]
        return not self.granted and any(
            sum(terms.need - terms.skipped for terms in test.terms) > usable_blocks for test in tests
        )

    @property
    def released_count(self) -> int:
        """Free blocks gained by the release (5.4)."""
        return sum(len(given.front) + len(given.back) for given in self.released)


def read_calls(log: Iterable[Entry]) -> list[CallTrace]:
    """Every call of a log, in call order, refused ones too."""
    return list(_calls(log))


def _calls(log: Iterable[Entry]) -> Iterator[CallTrace]:
    part: list[Entry] | None = None
    for entry in log:
        if entry[0] == "call":
            part = []
        if part is not None:
            part.append(entry)
            if entry[0] == "return":
                yield _call(part)
                part = None


def _call(part: list[Entry]) -> CallTrace:
    """One call from its entries, `call` to `return`."""
    _, request, comp, new_comp, ext_comp, new, lookahead, hit, gated, headroom, reserved, free_before = part[0]
    gate = check = None
    released: list[GivenBack] = []
    touched: list[Touched] = []
    popped: list[Popped] = []
    registered: list[Registered] = []
    partial: list[PartialPrefix] = []
    for kind, *values in part[1:-1]:
        if kind == "gate":
            tokens, counts, needed, would_check = values
            gate = FitTest(tokens, _terms(counts), needed, headroom, free_before, 0)
            if would_check is not None:
                tokens, needed, counts = would_check
                check = FitTest(tokens, _terms(counts), needed, headroom, free_before, reserved)
        elif kind == "free":
            released.append(GivenBack.of((kind, *values)))
        elif kind == "check":
            tokens, counts, needed = values
            free = free_before + sum(len(given.front) + len(given.back) for given in released)
            check = FitTest(tokens, _terms(counts), needed, headroom, free, reserved)
        elif kind == "touch":
            group, blocks, refs, places = values
            touched += [Touched(group, *one) for one in zip(blocks, refs, places, strict=True)]
        elif kind == "pop":
            group, blocks, evicted = values
            lost = {block: tuple(keys) for _, block, keys in evicted}
            popped += [Popped(group, block, place, lost.get(block, ())) for place, block in enumerate(blocks)]
        elif kind == "hash_partial":
            group, block, block_hash, parent, tokens = values
            partial.append(PartialPrefix(group, block, block_hash, parent, tokens))
        elif kind == "hash":
            group, first, end, blocks, hashes, parent, indexes, _ = values
            registered.append(Registered(group, first, end, tuple(blocks), tuple(hashes), parent, tuple(indexes)))
    _, new_blocks, free_after = part[-1]
    return CallTrace(
        request, comp, new_comp, ext_comp, new, lookahead, _ids(hit) or (), gated, headroom, reserved, free_before,
        free_after, _ids(new_blocks), gate, check, tuple(released), tuple(touched), tuple(popped), tuple(registered),
        tuple(partial),
    )  # fmt: skip


def _terms(counts: Iterable[tuple[int, ...]]) -> tuple[CountTerms, ...]:
    return tuple(CountTerms(*count) for count in counts)


def _ids(blocks: Iterable[Iterable[int]] | None) -> tuple[tuple[int, ...], ...] | None:
    return None if blocks is None else tuple(tuple(group) for group in blocks)
