"""The README's scenario is the one that the editor starts from, and replays to what is printed there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.cli import main
from app.routes.edit import EXAMPLE
from app.tokenizer import tokenize
from engine.scenario import parse_prompt, read_scenario
from engine.tokens import Text

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Scenarios\n")[2].partition("\n## ")[0]
NONE_HASH = "0a1b" * 16


def block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)\n```$", SECTION, re.DOTALL | re.M)
    return str(found)


def test_its_scenario_is_the_editors_example() -> None:
    assert block("json") == EXAMPLE
    assert read_scenario(EXAMPLE).title == "A second turn hits the first"


def test_it_replays_to_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(block("json"))
    assert main(["replay", str(file)]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.rstrip().split("\n")]
    assert lines == re.search(r"^```\n(action.*?)\n```$", SECTION, re.DOTALL | re.M)[1].split("\n")  # type: ignore[index]
    words = " ".join(SECTION.split())
    assert "hits 64 tokens of the shared prefix, and the second turn 80 of the first" in words
    end = lines[0].index("hits") + len("hits")
    hits = [int(line[:end].split()[-1]) for line in lines[1:]]
    assert [count for count in hits if count] == [64, 80]


def test_another_first_hash_gives_other_hashes_and_the_same_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(block("json"))
    records = []
    for more in ([], ["--none-hash", NONE_HASH]):
        assert main(["replay", str(file), "--records", "-", *more]) == 0
        records.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    assert records[0] != records[1]
    tables = [[record["state"]["requests"] for record in one] for one in records]
    assert tables[0] == tables[1]


def test_every_part_in_its_table_is_one() -> None:
    parts = re.findall(r"^\| `([\[{].*?)` \|", SECTION, re.M)
    assert len(parts) == 5
    for part in parts:
        (read,) = parse_prompt(json.loads(part))
        if isinstance(read, Text):
            assert len(tokenize(read.text)) == 6
