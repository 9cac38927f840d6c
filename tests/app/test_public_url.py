"""What links start with: the address that was set, else the request's own; loopback addresses are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.services.public_url import is_loopback, public_url
from app.settings import Settings, SettingsError, read_settings


@pytest.mark.parametrize(
    ("is_set", "asked_at", "link", "loopback"),
    [
        (None, "http://localhost:8000/", "http://localhost:8000/p/1", True),
        (None, "http://pool.example/", "http://pool.example/p/1", False),
        (None, "https://pool.example:444/below/", "https://pool.example:444/below/p/1", False),
        (None, "http://[::1]:8000/", "http://[::1]:8000/p/1", True),
        (None, 'http://"><script>/', "http://127.0.0.1:8000/p/1", True),
        (None, "http://me@pool.example/", "http://127.0.0.1:8000/p/1", True),
        ("https://pool.example/kv", "http://localhost:8000/", "https://pool.example/kv/p/1", False),
        ("http://127.0.0.1:9", "http://pool.example/", "http://127.0.0.1:9/p/1", True),
    ],
)
def test_a_link_starts_with_what_was_set_or_asked(is_set: str | None, asked_at: str, link: str, loopback: bool) -> None:
    address = public_url(Settings(data=Path(), public_url=is_set), asked_at)
    assert (address.link("p/1"), address.is_loopback) == (link, loopback)


@pytest.mark.parametrize("host", ["localhost", "localhost.", "a.localhost", "127.0.0.1", "127.8.0.1", "::1", "0.0.0.0"])
def test_these_hosts_mean_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["pool.example", "192.168.1.7", "10.0.0.1", "localhost.example", ""])
def test_these_hosts_do_not(host: str) -> None:
    assert not is_loopback(host)


def test_the_command_line_goes_before_the_environment() -> None:
    env = {"POOLSCOPE_PUBLIC_URL": "https://one.example/"}
    assert read_settings(env).public_url == "https://one.example"
    assert read_settings(env, public_url="https://two.example/").public_url == "https://two.example"
    with pytest.raises(SettingsError, match=r"^--public-url: .* one like https://poolscope\.example$"):
        read_settings(env, public_url="two.example")
