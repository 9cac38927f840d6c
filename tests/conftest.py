"""Fixtures for every test."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

# Every run draws the same examples; HYPOTHESIS_PROFILE=search looks for new ones, longer.
settings.register_profile("ci", derandomize=True, deadline=None, database=None, max_examples=200)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SHELL, WHOLE = "/usr/bin/chromium-headless-shell", "/usr/bin/chromium"
CHROMIUM = os.environ.get("POOLSCOPE_CHROMIUM") or (SHELL if Path(SHELL).exists() else WHOLE)
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")  # not session: while Playwright runs, this thread has a running event loop
def browser() -> Iterator[Browser]:
    """A headless Chromium that talks to no host of its own accord."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()
