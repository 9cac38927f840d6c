"""Scenarios that are served in the place of the built-in one."""

import json
from pathlib import Path
from typing import Any

from engine.scenario import Scenario, read_scenario

SCENARIOS = Path(__file__).resolve().parents[2] / "app" / "scenarios"
STEP = {"do": "step"}
HOSTILE = ["<b>x</b><img src=x onerror=alert(1)>", "запрос", "数据块", "🦊🦊", "a&b;'\"", "</script>"]


def story(name: str) -> Scenario:
    """One of the gallery's."""
    return scenario(json.loads((SCENARIOS / f"{name}.json").read_text())["scenario"])


def crowd(ids: list[str], num_blocks: int, tokens: int = 60, steps: int = 4, **config: Any) -> Scenario:  # noqa: ANN401
    """Requests that share a prefix of 64 tokens, added one after the other, then stepped."""
    prompt = [{"shared": "system", "tokens": 64}, {"tokens": tokens}]
    adds = [{"do": "add_request", "id": name, "prompt": prompt, "max_tokens": 8} for name in ids]
    options = {"num_blocks": num_blocks, "max_num_seqs": 256, "max_model_len": 2_000_000} | config
    title = f"{len(ids)} requests, {num_blocks} blocks"
    return scenario({"version": 1, "title": title, "config": options, "actions": [*adds, *[STEP] * steps]})


def scenario(data: dict[str, Any]) -> Scenario:
    """From the format that people write."""
    return read_scenario(json.dumps(data).encode())
