"""Small scenarios in which something notable happens, stored as sessions that anybody may look at."""

from __future__ import annotations

import json
from typing import Any

from app.settings import Settings
from app.store import Store, StoredSession

STEP = {"do": "step"}


def add(name: str, *prompt: object, max_tokens: int = 2, **options: object) -> dict[str, Any]:
    """A request; a number in its prompt is so many tokens of its own."""
    parts = [{"tokens": part} if isinstance(part, int) else part for part in prompt]
    return {"do": "add_request", "id": name, "prompt": parts, "max_tokens": max_tokens, **options}


def shared(tokens: int) -> dict[str, object]:
    """A prefix that all requests of a scenario share."""
    return {"shared": "s", "tokens": tokens}


def stored(settings: Settings, actions: list[dict[str, Any]], **config: object) -> str:
    """The path of a new session. Blocks of 4 tokens, and no gate, unless the config says otherwise."""
    options = {"num_blocks": 9, "block_size": 4, "max_num_seqs": 8, "max_model_len": 400} | config
    store = Store(settings.data)
    texts = tuple(json.dumps(action) for action in actions)
    store.create(StoredSession("x", b"nobody", "A test", json.dumps(options), texts), "main")
    store.close()
    return "/s/x"


PREEMPTION = [add("a", 12, max_tokens=9), add("b", 14, max_tokens=9), STEP, STEP, STEP, STEP]
"""In a pool of 7 usable blocks b is preempted for a."""
EVICTION = [
    add("a", shared(8), 1, max_tokens=1),
    STEP,
    add("b", 24, max_tokens=1),
    STEP,
    add("c", shared(8), 5, max_tokens=1),
    STEP,
]
"""In a pool of 6 usable blocks b evicts what c would have hit."""
