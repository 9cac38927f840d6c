"""The model: a KV block pool, KV-cache manager and scheduler that decide as vLLM's do.

No web, no clock, no randomness.
"""
