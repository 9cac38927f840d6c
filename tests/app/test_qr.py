"""QR codes: the path draws the modules."""

import re

import pytest

from app.services.qr import MAX_BYTES, QUIET, qr_code, qr_matrix

URL = "https://poolscope.example/p/"


@pytest.mark.parametrize("length", [0, 20, 300, MAX_BYTES - len(URL)])
def test_the_path_draws_the_modules(length: int) -> None:
    rows, code = qr_matrix(URL + "x" * length), qr_code(URL + "x" * length)
    assert rows is not None
    assert code.path is not None
    assert code.reason == ""
    assert code.size == len(rows) + 2 * QUIET
    drawn = [[False] * len(rows) for _ in rows]
    rectangle = r"M(\d+) (\d+)h(\d+)v1h-(\d+)z"
    assert re.fullmatch(f"({rectangle})+", code.path)
    for x, y, width, back in (map(int, found) for found in re.findall(rectangle, code.path)):
        assert width == back
        drawn[y - QUIET][x - QUIET : x - QUIET + width] = [True] * width
    assert drawn == rows


def test_the_corners_are_those_of_a_qr_code() -> None:
    rows = qr_matrix(URL)
    assert rows is not None
    finder = [True, True, True, True, True, True, True, False]
    assert rows[0][:8] == rows[-1][:8] == rows[0][::-1][:8] == finder
    assert (len(rows) - 17) % 4 == 0


def test_a_link_too_long_for_phones_says_why() -> None:
    url = URL + "é" * MAX_BYTES
    assert qr_matrix(url) is None
    code = qr_code(url)
    assert (code.path, code.size) == (None, 0)
    assert code.reason == f"The link has {len(url.encode())} bytes; a code that phones can read holds {MAX_BYTES}."


def test_hostile_text_stays_out_of_the_path() -> None:
    path = qr_code('https://x/"><script>alert(1)</script>\x00é').path
    assert path is not None
    assert re.fullmatch(r"[Mhvz0-9 -]+", path)
