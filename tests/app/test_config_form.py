"""The config form: every option round-trips, every rejection stands beside its field, and a new session comes of it."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.rendering.config_form import SECTIONS
from app.services.config_text import read_config, texts_of
from app.settings import Settings
from app.store import Store, StoredSession
from engine.config import EngineConfig, GroupConfig
from engine.scenario import Limits
from tests.app.conftest import browser
from tests.app.reading import end_of, landed, new_session, tags_of, text_of

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.json.gz"))
BUILTIN = {"num_blocks": "101", "block_size": "16", "max_model_len": "4096", "max_num_batched_tokens": "2048"}
CHECKED = {"enable_prefix_caching": "on", "enable_chunked_prefill": "on", "scheduler_reserve_full_isl": "on"}
WINDOW = {"groups.1.kind": "sliding_window", "groups.1.sliding_window": "8"}
FIELDS = {**BUILTIN, **CHECKED, "groups.0.kind": "full_attention"}


def stored(settings: Settings, answer: Response) -> StoredSession:
    """The session that a POST made."""
    assert answer.status_code == 303, text_of(answer)
    name = answer.headers["location"].partition("?")[0].rpartition("/")[2]
    found = Store(settings.data).load(name, "main")
    assert found is not None
    return found


def config_of(settings: Settings, answer: Response) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(stored(settings, answer).config)
    return config


def fields_of(answer: Response) -> dict[str, dict[str, str | None]]:
    """The inputs and selects of the form by name."""
    return {str(tag["name"]): tag for name, tag in tags_of(answer) if name in ("input", "select") and "name" in tag}


def test_every_option_has_its_place_its_sentence_and_its_flag(client: TestClient) -> None:
    listed = [name for section in SECTIONS.values() for name in section]
    assert sorted([*listed, "groups"]) == sorted(EngineConfig.options())
    page = client.get("/story/one-call/config")
    words, fields = text_of(page), fields_of(page)
    for name, option in EngineConfig.options().items():
        assert name == "groups" or name in fields
        assert name == "groups" or option.doc in words
        assert (option.flag or "") in words
    for name, option in GroupConfig.options().items():
        assert {f"groups.{row}.{name}" for row in range(4)} <= fields.keys()
        assert option.doc in words


def test_the_form_holds_the_present_config(client: TestClient) -> None:
    values = {name: tag.get("value") for name, tag in fields_of(client.get("/story/one-call/config")).items()}
    assert {name: values[name] for name in BUILTIN} == BUILTIN
    assert (values["watermark"], values["long_prefill_token_threshold"]) == ("0.05", "100")
    page = new_session(client)
    assert 'value="101"' in client.get(f"{page}/config").text
    assert f'href="{page.rpartition("/")[2]}/config?branch=main&amp;at=16"' in client.get(page).text


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_what_the_form_holds_reads_back_as_the_config(path: Path) -> None:
    config = EngineConfig.from_json(json.loads(gzip.decompress(path.read_bytes()))["scenario"]["config"])
    assert read_config(texts_of(config), Limits()) == (config, {})


@pytest.mark.parametrize(
    ("change", "written"),
    [
        ({"num_blocks": "33"}, {"num_blocks": 33}),
        ({"block_size": "8"}, {"block_size": 8}),
        ({"max_model_len": "512"}, {"max_model_len": 512}),
        ({"max_num_batched_tokens": "256"}, {"max_num_batched_tokens": 256}),
        ({"max_num_seqs": "4"}, {"max_num_seqs": 4}),
        ({"enable_prefix_caching": ""}, {"enable_prefix_caching": False}),
        ({"enable_chunked_prefill": "", "max_model_len": "100"}, {"enable_chunked_prefill": False}),
        ({"long_prefill_token_threshold": "100"}, {"long_prefill_token_threshold": 100}),
        ({"policy": "priority"}, {"policy": "priority"}),
        ({"watermark": ".25"}, {"watermark": 0.25}),
        ({"scheduler_reserve_full_isl": ""}, {"scheduler_reserve_full_isl": False}),
        ({"prefix_caching_hash_algo": "xxhash"}, {"prefix_caching_hash_algo": "xxhash"}),
        ({"num_speculative_tokens": "3"}, {"num_speculative_tokens": 3}),
        ({"num_lookahead_tokens": "2"}, {"num_lookahead_tokens": 2}),
        ({"use_eagle": "on"}, {"use_eagle": True}),
        ({"hash_block_size": "16"}, {"hash_block_size": 16}),
        ({"needs_kv_cache_zeroing": "on"}, {"needs_kv_cache_zeroing": True}),
        (
            {"groups.1.kind": "mamba", "prefix_cache_retention_interval": "0"},
            {
                "prefix_cache_retention_interval": 0,
                "groups": [{"kind": "full_attention"}, {"kind": "mamba"}],
            },
        ),
        (
            {"groups.2.kind": "sliding_window", "groups.2.sliding_window": "6", "groups.2.block_size": "4"},
            {
                "groups": [
                    {"kind": "full_attention"},
                    {"kind": "sliding_window", "block_size": 4, "sliding_window": 6},
                ]
            },
        ),
        (
            {"groups.0.kind": "chunked_local_attention", "groups.0.attention_chunk_size": "8"},
            {"groups": [{"kind": "chunked_local_attention", "attention_chunk_size": 8}]},
        ),
        (
            {
                "groups.1.kind": "mamba",
                "groups.1.mamba_cache_mode": "all",
                "groups.1.num_speculative_blocks": "2",
                "groups.1.eagle": "on",
            },
            {
                "groups": [
                    {"kind": "full_attention"},
                    {"kind": "mamba", "mamba_cache_mode": "all", "num_speculative_blocks": 2, "eagle": True},
                ]
            },
        ),
    ],
)
def test_each_option_comes_through(
    client: TestClient, settings: Settings, change: dict[str, str], written: dict[str, Any]
) -> None:
    answer = client.post(
        "/story/one-call/config", data={name: text for name, text in (FIELDS | change).items() if text}
    )
    got = config_of(settings, answer)
    assert {name: got.get(name) for name in written} == written
    page = landed(answer).partition("?")[0]
    assert config_of(settings, client.post(f"{page}/config", data=values_of(client.get(f"{page}/config")))) == got


def values_of(page: Response) -> dict[str, str]:
    """What a browser sends when the form is sent as it is."""
    sent, select = {}, ""
    for name, tag in tags_of(page):
        if name == "input" and (tag.get("type") != "checkbox" or "checked" in tag):
            sent[str(tag["name"])] = tag.get("value") or ""
        elif name == "select":
            select = str(tag["name"])
        elif name == "option" and "selected" in tag:
            sent[select] = tag.get("value") or ""
    return sent


def test_a_new_session_is_empty_and_the_readers_own(client: TestClient, settings: Settings) -> None:
    answer = client.post("/story/one-call/config", data=FIELDS)
    found = stored(settings, answer)
    assert (found.title, found.actions) == ("Blank session", ())
    assert landed(answer) == f"/s/{found.id}?branch=main&at=0"
    cookie = answer.headers["set-cookie"]
    assert f"Path=/s/{found.id}" in cookie
    assert "HttpOnly" in cookie
    page = f"/s/{found.id}"
    added = client.post(f"{page}/add", data={"at": "0", "id": "A", "tokens": "40", "max_tokens": "2"})
    assert added.status_code == 303
    assert client.post(f"{page}/step", data={"at": "1"}).status_code == 303
    assert end_of(client, page) == 2
    with browser(settings) as stranger:
        assert stranger.post(f"{page}/step", data={"at": "2"}).status_code == 403


def test_the_same_actions_on_another_config(client: TestClient, settings: Settings) -> None:
    page = new_session(client)
    with browser(settings) as stranger:  # whoever looks may make a copy
        answer = stranger.post(f"{page}/config", data=FIELDS | {"num_blocks": "60", "keep": "on", "at": "9"})
        found = stored(settings, answer)
        assert landed(answer) == f"/s/{found.id}?branch=main&at=9"
        assert (found.title, len(found.actions)) == ("One call, traced", 16)
        assert "60 blocks of 16 tokens" in text_of(stranger.get(f"/s/{found.id}?at=9"))
    original = Store(settings.data).load(page.removeprefix("/s/"), "main")
    assert original is not None
    assert found.actions == original.actions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"max_model_len": "200"},
            "Action 3, add_request holder, can't run on this config: the prompt has 945 tokens, more than "
            "max_model_len, 200. Expected: at most 200 tokens, or a larger max_model_len.",
        ),
        ({**WINDOW}, "Action 17, add_request X, can't run on this config: external tokens can't be had with 2 groups."),
    ],
)
def test_actions_that_cannot_run_are_named_in_words(
    client: TestClient, settings: Settings, change: dict[str, str], message: str
) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"at": "16", "id": "X", "tokens": "20", "max_tokens": "2", "external_tokens": "4"})
    before = Store(settings.data).count()
    answer = client.post(f"{page}/config", data=FIELDS | change | {"keep": "on"})
    assert answer.status_code == 422
    assert [name for name, tag in fields_of(answer).items() if tag.get("aria-invalid") == "true"] == ["keep"]
    assert message in text_of(answer)
    assert values_of(answer)["keep"] == "on"
    assert Store(settings.data).count() == before


def test_over_http(client: TestClient, settings: Settings) -> None:
    asks = {"Accept": "application/json"}
    good = client.post(
        "/story/one-call/config", json={"config": {"num_blocks": 33}, "keep_actions": False}, headers=asks
    )
    assert (good.status_code, good.json()["at"]) == (201, 0)
    for body, status, code, where in (
        ({"config": {"num_blocks": 0}}, 422, "invalid_config", "config.num_blocks"),
        ({"config": {"num_blocks": True}}, 422, "wrong_type", "config.num_blocks"),
        ({"config": {"num_blocks": 33, "groups": []}}, 422, "invalid_config", "config.groups"),
        ({"config": {"num_blocks": 10**9}}, 413, "over_limit", "config.num_blocks"),
        ({}, 422, "missing_key", ""),
        (
            {"config": {"num_blocks": 33, "max_model_len": 64}, "keep_actions": True},
            422,
            "prompt_too_long",
            "actions[0].prompt",
        ),
    ):
        answer = client.post("/story/one-call/config", json=body, headers=asks)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["where"]) == (status, code, where)
    assert Store(settings.data).count() == (1, 0)


def test_a_pool_over_the_limit_of_the_server(settings: Settings) -> None:
    tight = replace(settings, limits=replace(settings.limits, blocks=50))
    with browser(tight) as client:
        answer = client.post("/story/one-call/config", data=FIELDS)
        assert answer.status_code == 413
        assert "101 blocks are more than this program takes. Expected: at most 50." in text_of(answer)


def test_the_form_of_a_branch_has_its_config_and_its_actions(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/vary", data={"at": "16", "knob": "num_blocks", "value": "77"})
    client.post(f"{page}/add", data={"branch": "b2", "at": "16", "id": "own", "tokens": "8", "max_tokens": "1"})
    shown = client.get(f"{page}/config?branch=b2&at=17")
    assert values_of(shown)["num_blocks"] == "77"
    assert f'href="../{page.removeprefix("/s/")}?branch=b2&amp;at=17"' in shown.text
    fields = {**values_of(shown), "keep": "on"}
    made = client.post(f"{page}/config?branch=b2&at=17", data=fields)
    assert made.headers["location"].endswith("?branch=main&at=17")
    new = landed(made).partition("?")[0]
    assert "own" in text_of(client.get(new))
    assert client.get(f"{page}/config?branch=b9").status_code == 409
