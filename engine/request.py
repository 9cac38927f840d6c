"""One request: its tokens, its progress and its block hashes (behaviour 3)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from engine.block_hash import BlockHash, BlockHasher


class RequestStatus(Enum):
    """Where a request is in its life (3.3)."""

    WAITING = "WAITING"
    WAITING_FOR_REMOTE_KVS = "WAITING_FOR_REMOTE_KVS"
    RUNNING = "RUNNING"
    PREEMPTED = "PREEMPTED"
    FINISHED_STOPPED = "FINISHED_STOPPED"
    FINISHED_LENGTH_CAPPED = "FINISHED_LENGTH_CAPPED"
    FINISHED_ABORTED = "FINISHED_ABORTED"


class Request:
    """Prompt and output ids, counters and hashes of one request (3.1).

    `num_computed_tokens` counts tokens whose KV is, or during a step will be, in the blocks.
    """

    __slots__ = (
        "_hasher",
        "_next_hash_at",
        "_tokens",
        "arrival_time",
        "block_hashes",
        "cache_salt",
        "hash_size",
        "is_prefill_chunk",
        "lora",
        "max_tokens",
        "num_computed_tokens",
        "num_preemptions",
        "num_prompt_tokens",
        "num_tokens",
        "priority",
        "request_id",
        "shared_prefix_boundary",
        "skip_reading_prefix_cache",
        "spec_token_ids",
        "status",
        "stop_token_ids",
    )

    def __init__(
        self,
        request_id: str,
        prompt_token_ids: Sequence[int],
        max_tokens: int,
        hasher: BlockHasher,
        *,
        arrival_time: float = 0.0,
        priority: int = 0,
        stop_token_ids: Sequence[int] = (),
        cache_salt: str | None = None,
        lora: str | None = None,
        skip_reading_prefix_cache: bool = False,
    ) -> None:
        self.request_id = request_id
        # Ids are only ever put behind each other, so forks share one list: a request's own are the first `num_tokens`.
        self._tokens = list(prompt_token_ids)
        self.num_prompt_tokens = self.num_tokens = len(self._tokens)
        self.max_tokens = max_tokens
        self.arrival_time = arrival_time
        self.priority = priority
        self.stop_token_ids = frozenset(stop_token_ids)
        self.cache_salt = cache_salt
        self.lora = lora
        self.skip_reading_prefix_cache = skip_reading_prefix_cache
        self.status = RequestStatus.WAITING
        self.num_computed_tokens = 0
        self.num_preemptions = 0
        self.spec_token_ids: list[int] = []
        self.is_prefill_chunk = False
        self.shared_prefix_boundary = 0
        self.block_hashes: list[BlockHash] = []
        self.hash_size = hasher.hash_size
        self._hasher = hasher
        self._extend_hashes()

    def fork(self) -> Request:
        """An independent copy; the tokens so far are shared until one of both says something else."""
        twin = object.__new__(Request)
        for name in Request.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.block_hashes, twin.spec_token_ids = self.block_hashes[:], self.spec_token_ids[:]
        return twin

    @property
    def all_token_ids(self) -> list[int]:
        """Prompt and output so far, as a list of its own."""
        return self._tokens[: self.num_tokens]

    def token_ids(self, start: int, stop: int) -> list[int]:
        """`all_token_ids[start:stop]` for `stop` <= `num_tokens`, without the others."""
        return self._tokens[start:stop]

    @property
    def num_output_tokens(self) -> int:
        """Tokens sampled so far."""
        return self.num_tokens - self.num_prompt_tokens

    @property
    def num_tokens_with_spec(self) -> int:
        """Known tokens plus drafts to verify."""
        return self.num_tokens + len(self.spec_token_ids)

    def append_output_token(self, token_id: int) -> None:
        """One more sampled token; a run that it fills is hashed at once (3.2)."""
        tokens, place = self._tokens, self.num_tokens
        if len(tokens) == place:
            tokens.append(token_id)
        if tokens[place] != token_id:  # a fork went another way
            self._tokens = [*tokens[:place], token_id]
        self.num_tokens = place + 1
        if self.num_tokens >= self._next_hash_at:
            self._extend_hashes()

    def _extend_hashes(self) -> None:
        self._hasher.extend(self.block_hashes, self._tokens, self.lora, self.cache_salt, self.num_tokens)
        self._next_hash_at = (len(self.block_hashes) + 1) * self.hash_size
