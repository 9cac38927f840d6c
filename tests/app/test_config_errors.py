"""What the engine rejects, and what is undefined: the reason in words beside the field, and what was typed stays."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from app.settings import Settings
from app.store import Store
from tests.app.reading import text_of
from tests.app.test_config_form import FIELDS, WINDOW, fields_of, values_of

CHUNKED = {"groups.1.kind": "chunked_local_attention", "groups.1.attention_chunk_size": "8"}


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"num_blocks": ""}, "num_blocks", "This is missing."),
        ({"num_blocks": "0"}, "num_blocks", "0 is not allowed."),
        ({"num_blocks": "many"}, "num_blocks", 'Got "many". Expected: a whole number from 1.'),
        ({"num_blocks": "1.0"}, "num_blocks", 'Got "1.0".'),
        ({"num_blocks": "9" * 5000}, "num_blocks", "Got"),
        ({"num_blocks": "9" * 30}, "num_blocks", "is too large."),
        ({"num_blocks": "200001"}, "num_blocks", "200001 blocks are more than this program takes."),
        ({"block_size": "0"}, "block_size", "0 is not allowed."),
        ({"max_model_len": "0"}, "max_model_len", "0 is not allowed."),
        ({"max_num_seqs": "0"}, "max_num_seqs", "0 is not allowed."),
        ({"max_num_batched_tokens": "0"}, "max_num_batched_tokens", "0 is not allowed."),
        ({"max_num_batched_tokens": "64"}, "max_num_batched_tokens", "is less than max_num_seqs, 128."),
        ({"enable_chunked_prefill": ""}, "max_num_batched_tokens", "can't hold max_model_len, 4096."),
        ({"long_prefill_token_threshold": "-1"}, "long_prefill_token_threshold", "-1 is not allowed."),
        ({"long_prefill_token_threshold": "4097"}, "long_prefill_token_threshold", "above max_model_len, 4096."),
        ({"policy": "lifo"}, "policy", '"lifo" is not allowed. Expected: one of fcfs, priority.'),
        ({"prefix_caching_hash_algo": "md5"}, "prefix_caching_hash_algo", '"md5" is not allowed.'),
        ({"watermark": "1"}, "watermark", "1.0 is not allowed. Expected: a number from 0 to below 1."),
        ({"watermark": "NaN"}, "watermark", 'Got "NaN".'),
        ({"num_speculative_tokens": "10001"}, "num_speculative_tokens", "10001 drafts are more than"),
        (
            {"num_speculative_tokens": "3", "long_prefill_token_threshold": "2"},
            "long_prefill_token_threshold",
            "With 3 drafts a step a threshold of 2 would cut a request",
        ),
        (
            {"prefix_cache_retention_interval": "16"},
            "prefix_cache_retention_interval",
            "16 has nothing to apply to: no group is sliding_window or mamba. Expected: an empty field or 0,",
        ),
        (
            {**WINDOW, "prefix_cache_retention_interval": "24"},
            "prefix_cache_retention_interval",
            "24 is not a multiple of 16",
        ),
        ({"hash_block_size": "8"}, "hash_block_size", "8 differs from the only group's block size."),
        ({"hash_block_size": "5"}, "hash_block_size", "5 does not divide 16"),
        (
            {**WINDOW, "groups.1.block_size": "4", "hash_block_size": "8"},
            "hash_block_size",
            "8 does not divide the block size 4.",
        ),
        ({"groups.0.kind": ""}, "groups.0.kind", "There is no group at all."),
        ({"groups.0.kind": "", "groups.0.block_size": "4"}, "groups.0.kind", "A group needs a kind."),
        ({"groups.0.kind": "cross"}, "groups.0.kind", '"cross" is not allowed.'),
        ({"groups.0.block_size": "-4"}, "groups.0.block_size", "-4 is not allowed."),
        ({"groups.2.kind": "sliding_window"}, "groups.2.sliding_window", 'The key "sliding_window" is missing.'),
        (
            {"groups.2.kind": "chunked_local_attention"},
            "groups.2.attention_chunk_size",
            'The key "attention_chunk_size" is missing.',
        ),
        ({**WINDOW, "groups.1.sliding_window": "0"}, "groups.1.sliding_window", "0 is not allowed."),
        (
            {"groups.0.num_speculative_blocks": "1"},
            "groups.0.num_speculative_blocks",
            '"num_speculative_blocks" means nothing for a group of kind full_attention.',
        ),
        ({**CHUNKED, "groups.1.eagle": "on"}, "groups.1.eagle", "can't be an EAGLE group."),
        ({**CHUNKED, "use_eagle": "on"}, "groups.1.eagle", "can't be an EAGLE group."),
        (
            {**CHUNKED, "groups.1.block_size": "8"},
            "groups.1.block_size",
            "can't stand where hits are multiples of 16 tokens.",
        ),
    ],
)
def test_each_rejection_stands_beside_its_field(
    client: TestClient, settings: Settings, change: dict[str, str], field: str, message: str
) -> None:
    sent = {name: text for name, text in (FIELDS | change).items() if text}
    answer = client.post("/story/one-call/config", data=sent)
    assert answer.status_code in (413, 422)
    fields = fields_of(answer)
    assert [name for name, tag in fields.items() if tag.get("aria-invalid") == "true"] == [field]
    assert message in text_of(answer)
    kept = values_of(answer)
    assert {name: kept.get(name) for name in sent} == sent
    assert Store(settings.data).count() == (0, 0)


def test_every_wrong_field_is_told_at_once(client: TestClient) -> None:
    answer = client.post(
        "/story/one-call/config", data=FIELDS | {"num_blocks": "x", "policy": "y", "groups.0.block_size": "z"}
    )
    wrong = [name for name, tag in fields_of(answer).items() if tag.get("aria-invalid") == "true"]
    assert wrong == ["num_blocks", "policy", "groups.0.block_size"]
