"""The command line: exact records, readable tables, one line and exit code 2 for bad input."""

from __future__ import annotations

import gzip
import io
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from app.cli import main
from engine.scenario import read_scenario

BUILTIN = Path(__file__).parent.parent / "fixtures" / "one-call.json"

GOLDEN = Path(__file__).parent.parent / "golden"
ROOT = Path(__file__).parent.parent.parent


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The one line that a command is refused with."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("poolscope: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("poolscope: ").rstrip()


@pytest.mark.parametrize("name", ["one-call", "core-0003", "keys-0002", "ngram-0005", "connector-0001", "hybrid-0004"])
def test_records_are_those_of_the_real_scheduler(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    golden = json.loads(gzip.decompress((GOLDEN / f"{name}.json.gz").read_bytes()))
    file, target = tmp_path / "scenario.json", tmp_path / "records"
    file.write_text(json.dumps(golden["scenario"]))
    lines = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in golden["records"])
    none_hash = golden["none_hash"]
    assert run(capsys, "replay", file, "--records", "-", "--none-hash", none_hash) == (0, lines, "")
    assert run(capsys, "replay", file, "--records", target, "--none-hash", none_hash) == (0, "", "")
    assert target.read_text() == lines


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BUILTIN.read_bytes())))
    code, out, err = run(capsys, "replay", "-")
    assert (code, err, len(out.splitlines())) == (0, "", 16)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "replay", BUILTIN)
    head, *rows = out.splitlines()
    assert head.split() == ["action", "what", "scheduled", "free", "usage", "hits", "preempted", "finished", "refused"]
    assert rows[5].split() == ["5", "step", "holder", "1,", "R", "100", "27", "0.730", "128", "-", "-", "-"]
    assert rows[1].split()[-2:] == ["warm", "-"]
    assert rows[14].endswith("second (needs 21 more)")


def test_what_shows_while_running_keeps_the_records_before_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "twice.json"
    add = {"do": "add_request", "id": "a", "prompt": {"tokens": 5}, "max_tokens": 1}
    file.write_text(json.dumps({"version": 1, "config": {"num_blocks": 9}, "actions": [add, add]}))
    code, out, err = run(capsys, "replay", file, "--records", "-")
    assert (code, len(out.splitlines()), json.loads(out)["action"]) == (2, 1, 0)
    assert err.startswith("poolscope: actions[1].id: ")
    assert err.count("\n") == 1


def test_expand_gives_spans_and_the_same_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first, second = tmp_path / "friendly.json", tmp_path / "spans.json"
    shared = {"shared": "system", "tokens": 20}
    actions = [
        {"do": "add_request", "id": "a", "prompt": [shared, {"tokens": 7}], "max_tokens": 2},
        *[{"do": "step"}] * 3,
        {"do": "add_request", "id": "a", "prompt": [{"continue": "a"}, {"tokens": 3}], "max_tokens": 2},
        {"do": "add_request", "id": "b", "prompt": shared, "max_tokens": 2},
        *[{"do": "step"}] * 2,
    ]
    first.write_text(
        json.dumps({"version": 1, "title": "t", "config": {"num_blocks": 9, "block_size": 4}, "actions": actions})
    )
    _, expanded, _ = run(capsys, "expand", first)
    second.write_text(expanded)
    for action in read_scenario(expanded).actions:
        prompt = action.to_json().get("prompt", [])
        assert isinstance(prompt, list)
        assert all(isinstance(part, list) for part in prompt)
    assert run(capsys, "replay", first, "--records", "-") == run(capsys, "replay", second, "--records", "-")


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "schema")
    assert json.loads(out)["title"] == "Poolscope scenario"
    _, out, _ = run(capsys, "schema", "--record")
    assert json.loads(out)["title"] == "Poolscope record"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the text is empty"),
        ("{", "line 1, column 2"),
        ('{"version": 2, "config": {"num_blocks": 9}, "actions": []}', "version 2 is not known"),
        ('{"version": 1, "config": {"num_blocks": true}, "actions": []}', "config.num_blocks"),
        ('{"version": 1, "config": {"num_blocks": 1.0}, "actions": []}', "config.num_blocks"),
        ('{"version": 1, "config": {"num_blocks": NaN}, "actions": []}', "config.num_blocks"),
        ('{"version": 1, "version": 1, "config": {"num_blocks": 9}, "actions": []}', "version"),
        ('{"version": 1, "config": {"num_blocks": 3000000}, "actions": []}', "at most 2000000"),
        ('{"version": 1, "config": {"num_blocks": ' + "9" * 5000 + '}, "actions": []}', "too large"),
        ('{"version": 1, "config": {"num_blocks": 9, "watermark": 1}, "actions": []}', "config.watermark"),
        ('{"version": 1, "config": {"num_blocks": 9}, "actions": [{"do": "abort", "id": "\\ud800"}]}', "surrogate"),
    ],
)
def test_bad_scenarios(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    for command in ("replay", "expand"):
        assert message in refused(capsys, command, file)


def test_bad_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "No such file" in refused(capsys, "replay", tmp_path / "nothing")
    assert "directory" in refused(capsys, "replay", tmp_path)
    assert "No such file" in refused(capsys, "replay", BUILTIN, "--records", tmp_path / "no" / "thing")
    assert "null" in refused(capsys, "replay", "a\0b")
    for text in ("zz", "abc", "", "12 34", "a" * 130):
        assert "pairs of hex digits" in refused(capsys, "replay", BUILTIN, "--none-hash", text)
    assert "invalid choice" in refused(capsys, "reply")
    assert "required" in refused(capsys)
    for port in ("x", "-1", "65536"):
        assert "a whole number from 0 to 65535" in refused(capsys, "serve", f"--port={port}")


def test_settings_from_the_environment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLSCOPE_PUBLIC_URL", "nonsense")
    assert "POOLSCOPE_PUBLIC_URL" in refused(capsys, "serve")


def test_a_port_in_use(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLSCOPE_DATA", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert (
            refused(capsys, "serve", "--port", str(port))
            == f"cannot listen on 127.0.0.1:{port}: Address already in use"
        )


def test_a_data_directory_that_is_none(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POOLSCOPE_DATA", os.devnull)
    assert "cannot keep sessions in /dev/null" in refused(capsys, "serve", "--port", "0")


def test_a_broken_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "app.cli", "replay", str(BUILTIN), "--records", "-"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_serve_says_where_it_is_and_stops_on_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0"]
    environment = {**os.environ, "POOLSCOPE_DATA": str(tmp_path), "no_proxy": "*"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        stop = threading.Timer(30, process.kill)
        stop.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Poolscope is at http://127.0.0.1:")
        with urllib.request.urlopen(line.split()[-1] + "healthz", timeout=10) as answer:
            assert json.loads(answer.read()) == {"status": "ok"}
        process.terminate()
        process.wait(10)
        stop.cancel()
    assert process.returncode in (0, -15)


def test_records_never_overwrite_the_scenario(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_bytes(BUILTIN.read_bytes())
    assert "would overwrite the scenario" in refused(capsys, "replay", file, "--records", file)
    assert file.read_bytes() == BUILTIN.read_bytes()


def in_a_shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{sys.executable} -m app.cli {command}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_id_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    add = {"do": "add_request", "id": "🦙", "prompt": [0, 4], "max_tokens": 1}
    file.write_text(json.dumps({"version": 1, "config": {"num_blocks": 9}, "actions": [add]}))
    done = in_a_shell(f"replay {file}", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "add_request \\U0001f999" in done.stdout


@pytest.mark.parametrize(
    ("command", "message"), [("schema >&-", "output is closed"), ("replay - <&-", "input is closed")]
)
def test_closed_streams_give_one_line(command: str, message: str) -> None:
    done = in_a_shell(command)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
