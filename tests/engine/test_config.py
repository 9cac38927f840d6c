"""The config: defaults, derived sizes, and every rule of 0.3 that refuses one."""

from typing import Any

import pytest

from engine.config import EngineConfig, GroupConfig
from engine.errors import ConfigError, InputError, ScenarioError

FULL = {"kind": "full_attention"}
WINDOW = {"kind": "sliding_window", "sliding_window": 8}
CHUNKED = {"kind": "chunked_local_attention", "attention_chunk_size": 32}
MAMBA = {"kind": "mamba"}


def config(**options: object) -> EngineConfig:
    return EngineConfig.from_json({"num_blocks": 33, **options})


def refusal(**options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        config(**options)
    assert caught.value.expected
    assert "\n" not in str(caught.value)
    return caught.value


def test_defaults_are_those_of_the_behaviour_document() -> None:
    plain = config()
    assert plain == EngineConfig(num_blocks=33)
    assert (plain.block_size, plain.max_model_len, plain.max_num_batched_tokens, plain.max_num_seqs) == (
        16,
        8192,
        2048,
        128,
    )
    assert plain.enable_prefix_caching
    assert plain.enable_chunked_prefill
    assert plain.scheduler_reserve_full_isl
    assert (plain.policy, plain.prefix_caching_hash_algo, plain.watermark) == ("fcfs", "sha256_cbor", 0.0)
    assert plain.groups == (GroupConfig("full_attention", 16),)
    assert (plain.hash_block_size, plain.prefix_cache_retention_interval) == (None, None)


def test_a_group_takes_the_block_size_of_the_config_unless_it_names_its_own() -> None:
    groups = config(block_size=4, groups=[FULL, {**WINDOW, "block_size": 8}]).groups
    assert [group.block_size for group in groups] == [4, 8]
    assert groups[1].sliding_window == 8


def test_sizes_of_several_groups() -> None:
    mixed = config(block_size=8, groups=[FULL, {**WINDOW, "block_size": 12}])
    assert (mixed.scheduler_block_size, mixed.hash_size, mixed.alignment) == (24, 4, 24)
    assert config(block_size=8, groups=mixed_groups(), enable_prefix_caching=False).hash_size == 24
    assert config(block_size=8, groups=mixed_groups(), hash_block_size=2).hash_size == 2


def mixed_groups() -> list[dict[str, Any]]:
    return [FULL, {**WINDOW, "block_size": 12}]


def test_partial_hits_need_caching_a_coarse_mamba_group_and_no_other_coarse_kind() -> None:
    fine = {"block_size": 16, "hash_block_size": 4}
    assert config(**fine, groups=[FULL, MAMBA]).partial_hits
    assert config(**fine, groups=[FULL, MAMBA]).alignment == 4
    assert not config(**fine, groups=[FULL, MAMBA], enable_prefix_caching=False).partial_hits
    assert not config(**fine, groups=[FULL, {**MAMBA, "mamba_cache_mode": "all"}]).partial_hits
    assert not config(**fine, groups=[FULL, MAMBA, WINDOW]).partial_hits
    assert config(**fine, groups=[FULL, MAMBA, {**WINDOW, "block_size": 4}]).partial_hits
    assert not config(groups=[FULL, MAMBA]).partial_hits


def test_eagle_groups_are_the_marked_ones_their_equals_or_all() -> None:
    assert config(groups=[FULL, WINDOW]).eagle_groups == (False, False)
    assert config(groups=[FULL, WINDOW], use_eagle=True).eagle_groups == (True, True)
    marked = [{**FULL, "eagle": True}, FULL, WINDOW]
    assert config(groups=marked).eagle_groups == (True, True, False)
    assert config(groups=marked, use_eagle=True).eagle_groups == (True, True, False)


def test_watermark_is_rounded_down_to_blocks() -> None:
    assert EngineConfig.from_json({"num_blocks": 101, "watermark": 0.05}).watermark_blocks == 5
    assert config(watermark=0).watermark_blocks == 0


@pytest.mark.parametrize(
    ("options", "where", "words"),
    [
        ({"num_blocks": 0}, "num_blocks", "0 is not allowed"),
        ({"block_size": 0}, "block_size", "0 is not allowed"),
        ({"groups": [{**FULL, "block_size": 0}]}, "groups[0].block_size", "0 is not allowed"),
        ({"hash_block_size": 0}, "hash_block_size", "0 is not allowed"),
        ({"max_model_len": 0}, "max_model_len", "0 is not allowed"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens", "0 is not allowed"),
        ({"max_num_seqs": -1}, "max_num_seqs", "-1 is not allowed"),
        ({"long_prefill_token_threshold": -1}, "long_prefill_token_threshold", "-1 is not allowed"),
        ({"long_prefill_token_threshold": 8193}, "long_prefill_token_threshold", "above max_model_len"),
        ({"watermark": 1}, "watermark", "1 is not allowed"),
        ({"watermark": -0.1}, "watermark", "-0.1 is not allowed"),
        ({"policy": "lifo"}, "policy", '"lifo" is not allowed'),
        ({"prefix_caching_hash_algo": "md5"}, "prefix_caching_hash_algo", '"md5" is not allowed'),
        ({"groups": [{"kind": "linear"}]}, "groups[0].kind", '"linear" is not allowed'),
        ({"groups": []}, "groups", "no group at all"),
        ({"max_num_batched_tokens": 64}, "max_num_batched_tokens", "less than max_num_seqs"),
        ({"enable_chunked_prefill": False}, "max_num_batched_tokens", "without chunked prefill"),
        ({"prefix_cache_retention_interval": 16}, "prefix_cache_retention_interval", "no group is"),
        (
            {"prefix_cache_retention_interval": 16, "enable_prefix_caching": False},
            "prefix_cache_retention_interval",
            "no group is",
        ),
        ({"prefix_cache_retention_interval": -16, "groups": [WINDOW]}, "prefix_cache_retention_interval", "-16"),
        (
            {"prefix_cache_retention_interval": 24, "groups": [WINDOW], "enable_prefix_caching": False},
            "prefix_cache_retention_interval",
            "not a multiple of 16",
        ),
        ({"hash_block_size": 3}, "hash_block_size", "3 does not divide 16"),
        ({"hash_block_size": 3, "enable_prefix_caching": False}, "hash_block_size", "3 does not divide 16"),
        ({"hash_block_size": 8}, "hash_block_size", "differs from the only group's block size"),
        (
            {"hash_block_size": 3, "groups": [FULL, {**WINDOW, "block_size": 12}]},
            "hash_block_size",
            "does not divide the block size 16",
        ),
    ],
)
def test_the_engine_rejects_at_start(options: dict[str, Any], where: str, words: str) -> None:
    error = refusal(**options)
    assert isinstance(error, ConfigError)
    assert (error.code, error.where) == ("invalid_config", f"config.{where}")
    assert words in error.message


@pytest.mark.parametrize(
    ("options", "where", "words"),
    [
        ({"num_speculative_tokens": 3, "long_prefill_token_threshold": 1}, "long_prefill_token_threshold", "drafts"),
        ({"num_speculative_tokens": 3, "long_prefill_token_threshold": 3}, "long_prefill_token_threshold", "drafts"),
        ({"groups": [FULL, CHUNKED], "use_eagle": True}, "groups[1]", "EAGLE"),
        ({"groups": [{**CHUNKED, "eagle": True}]}, "groups[0]", "EAGLE"),
        ({"groups": [FULL, CHUNKED, {**CHUNKED, "eagle": True}]}, "groups[1]", "EAGLE"),
        ({"groups": [FULL, {**CHUNKED, "block_size": 8}]}, "groups[1].block_size", "multiples of 16"),
    ],
)
def test_what_is_undefined_is_refused(options: dict[str, Any], where: str, words: str) -> None:
    error = refusal(**options)
    assert isinstance(error, ConfigError)
    assert (error.code, error.where) == ("undefined_config", f"config.{where}")
    assert words in error.message


@pytest.mark.parametrize(
    "options",
    [
        {"num_blocks": 1},
        {"prefix_cache_retention_interval": 0},
        {"prefix_cache_retention_interval": 32, "groups": [FULL, WINDOW]},
        {"long_prefill_token_threshold": 4, "num_speculative_tokens": 3},
        {"long_prefill_token_threshold": 8192},
        {"hash_block_size": 16},
        {"hash_block_size": 4, "enable_prefix_caching": False},
        {"groups": [FULL, CHUNKED, {**WINDOW, "eagle": True}], "use_eagle": True},
        {"groups": [FULL, {**CHUNKED, "block_size": 8}], "enable_prefix_caching": False, "use_eagle": True},
        {"groups": [FULL, MAMBA, {**CHUNKED, "block_size": 8}], "hash_block_size": 8},  # partial hits: A = H
        {"groups": [{**MAMBA, "mamba_cache_mode": "none", "num_speculative_blocks": 2}]},
        {"enable_chunked_prefill": False, "max_model_len": 2048},
        {"max_num_batched_tokens": 128},
    ],
)
def test_what_borders_on_a_rule_passes(options: dict[str, Any]) -> None:
    read = config(**options)
    assert EngineConfig.from_json(read.to_json()) == read


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        ({"block_size": True}, "wrong_type", "config.block_size"),
        ({"block_size": 16.0}, "wrong_type", "config.block_size"),
        ({"block_size": None}, "wrong_type", "config.block_size"),
        ({"block_size": 2**63}, "number_too_large", "config.block_size"),
        ({"block_size": 10**5000}, "number_too_large", "config.block_size"),
        ({"watermark": float("nan")}, "wrong_type", "config.watermark"),
        ({"watermark": True}, "wrong_type", "config.watermark"),
        ({"use_eagle": 1}, "wrong_type", "config.use_eagle"),
        ({"policy": 1}, "wrong_type", "config.policy"),
        ({"groups": FULL}, "wrong_type", "config.groups"),
        ({"groups": [1]}, "wrong_type", "config.groups[0]"),
        ({"groups": [{}]}, "missing_key", "config.groups[0]"),
        ({"groups": [{"kind": "sliding_window"}]}, "missing_key", "config.groups[0]"),
        ({"groups": [{"kind": "chunked_local_attention"}]}, "missing_key", "config.groups[0]"),
        ({"groups": [{**FULL, "sliding_window": 8}]}, "unknown_key", "config.groups[0].sliding_window"),
        ({"blok_size": 16}, "unknown_key", "config.blok_size"),
    ],
)
def test_malformed_configs_name_the_place(options: dict[str, Any], code: str, where: str) -> None:
    error = refusal(**options)
    assert isinstance(error, ScenarioError)
    assert (error.code, error.where) == (code, where)


def test_num_blocks_is_required() -> None:
    with pytest.raises(ScenarioError, match='config: the key "num_blocks" is missing'):
        EngineConfig.from_json({})


def test_a_misspelt_key_is_told_what_was_meant() -> None:
    assert refusal(blok_size=16).expected == '"block_size"'


def test_a_config_made_in_code_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="watermark"):
        EngineConfig(num_blocks=4, watermark=1.5).check()
    with pytest.raises(ScenarioError, match="sliding_window"):
        EngineConfig(num_blocks=4, groups=(GroupConfig("sliding_window", 4),)).check()


def test_to_json_gives_only_what_differs_from_the_defaults() -> None:
    written = {
        "num_blocks": 9,
        "block_size": 4,
        "watermark": 0.1,
        "groups": [FULL, {**WINDOW, "block_size": 8, "eagle": True}],
        "hash_block_size": 2,
    }
    padded = {**written, "policy": "fcfs", "groups": [{**FULL, "block_size": 4}, written["groups"][1]]}  # type: ignore[index]
    assert EngineConfig.from_json(padded).to_json() == written
    assert EngineConfig.from_json({"num_blocks": 9, "groups": [FULL]}).to_json() == {"num_blocks": 9}


def test_every_option_has_a_sentence() -> None:
    for option in [*EngineConfig.options().values(), *GroupConfig.options().values()]:
        assert option.doc.endswith(".")
        assert option.expected
        assert option.flag is None or option.flag.startswith("--")
