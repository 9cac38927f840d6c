"""The README's examples of the API run as they stand, in a shell, with curl, against a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.app.api.conftest import Json
from tests.browser.conftest import serving

README = Path(__file__).resolve().parents[3] / "README.md"
HOST = "http://localhost:8000"


def script() -> str:
    """The shell commands of the section about the API."""
    section = re.search(r"^## API\n(.*?)^## ", README.read_text("utf-8"), re.M | re.S)
    assert section is not None
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", section[1], re.M | re.S)
    assert isinstance(commands, str)
    return commands


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_examples_run(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as site:
        commands = script().replace(HOST, site)
        environment = {**os.environ, "no_proxy": "*", "NO_PROXY": "*"}
        run = subprocess.run(
            ["bash", "-euc", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
    assert (run.returncode, run.stderr) == (0, "")
    first, second, acted, seen, third, fourth, probed, link = documents(run.stdout)
    assert [record["do"] for record in (first, second)] == ["add_request", "step"]
    assert (acted["branch"], acted["at"], acted["records"]) == ("main", 4, [third, fourth])
    assert (seen["at"], seen["state"], len(seen["actions"])) == (2, second["state"], 4)
    assert probed["verdict"] == "Granted. ada takes 1 new block."
    assert link["url"] == f"{site}/p/{link['code']}/"


def documents(text: str) -> list[Json]:
    """The JSON objects that stand one behind the other."""
    found, decoder, place = list[Json](), json.JSONDecoder(), 0
    while place < len(text):
        value, place = decoder.raw_decode(text, place)
        found.append(value)
        place += len(text[place:]) - len(text[place:].lstrip())
    return found
