"""The command line: `poolscope replay`, `expand`, `schema` and `serve`.

Bad input gives one line on standard error and exit code 2; what was printed before it stays.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NoReturn, TextIO

from app.cli_table import table_head, table_row
from app.services.limits import check_continued
from app.settings import SettingsError, read_settings
from app.store import StoreError
from app.tokenizer import tokenize
from engine.actions import Action, AddRequest
from engine.errors import InputError, printable
from engine.record import apply_recorded, dumps
from engine.record_schema import record_schema
from engine.scenario import Continue, Limits, Scenario, read_scenario, resolve
from engine.schema import scenario_schema
from engine.simulation import Simulation

BAD_INPUT: Final = 2
BROKEN_PIPE: Final = 141
INTERRUPTED: Final = 130
LIMITS: Final = Limits()
HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){1,64}\Z")


class UsageError(Exception):
    """What was asked for can't be done; the message is one line."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Leave with exit code 2."""
        raise UsageError(f"{' '.join(message.split())} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code."""
    if sys.stdout is None:  # closed by the shell
        print("poolscope: cannot write: standard output is closed", file=sys.stderr)
        return BAD_INPUT
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # an id may hold what the terminal can't show
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except (InputError, StoreError, UsageError) as error:
        with _quiet_pipe():
            sys.stdout.flush()
        print(f"poolscope: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        # Whoever read us has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        print(f"poolscope: cannot write: {_reason(error)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> Parser:
    parser = Parser(
        prog="poolscope", description="Shows how vLLM's V1 engine hands out KV-cache memory.", allow_abbrev=False
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    replay = commands.add_parser("replay", help="run a scenario: a table, or its records", allow_abbrev=False)
    replay.add_argument("file", metavar="FILE", help="a scenario; - is standard input")
    replay.add_argument(
        "--records", metavar="FILE", help="write the record of each action, one a line; - is standard output"
    )
    replay.add_argument(
        "--none-hash", metavar="HEX", help="the parent of every first block, to compare with a recorded run"
    )
    replay.set_defaults(command=_replay)
    expand = commands.add_parser(
        "expand", help="print a scenario with every prompt as spans of token ids", allow_abbrev=False
    )
    expand.add_argument("file", metavar="FILE", help="a scenario; - is standard input")
    expand.set_defaults(command=_expand)
    schema = commands.add_parser("schema", help="print the JSON Schema of a scenario", allow_abbrev=False)
    schema.add_argument("--record", action="store_true", help="of a record instead: of what one action did")
    schema.set_defaults(command=_schema)
    serve = commands.add_parser("serve", help="start the web app", allow_abbrev=False)
    serve.add_argument("--host", metavar="H", help="the address to listen on (127.0.0.1)")
    serve.add_argument("--port", metavar="P", help="the port to listen on (8000); 0 takes any free one")
    serve.add_argument("--public-url", metavar="URL", help="the address under which others reach it, for links")
    serve.set_defaults(command=_serve)
    return parser


def _replay(options: argparse.Namespace) -> int:
    none_hash = _none_hash(options.none_hash)
    scenario = _read(options.file)
    simulation = Simulation(
        scenario.config, none_hash=none_hash, has_connector=scenario.has_connector, tokenize=tokenize
    )
    if options.records is None:
        print(table_head())
        for action in _checked(scenario, simulation):
            print(table_row(simulation.apply(action), simulation))
        return 0
    if options.records != "-" and options.file != "-" and _same_file(options.records, options.file):
        raise UsageError(f"--records {printable(options.records)} would overwrite the scenario")
    with _writing(options.records) as out:
        for action in _checked(scenario, simulation):
            print(dumps(apply_recorded(simulation, action)), file=out)
    return 0


def _checked(scenario: Scenario, simulation: Simulation) -> Iterator[Action]:
    """The actions, each checked once more when its turn comes."""
    for k, action in enumerate(scenario.actions):
        check_continued(action, simulation, LIMITS, f"actions[{k}]")
        yield action


def _expand(options: argparse.Namespace) -> int:
    scenario = _read(options.file)
    written = dict(scenario.to_json())
    written["actions"] = list(_expanded(scenario))
    print(_layout(written))
    return 0


def _expanded(scenario: Scenario) -> Iterator[dict[str, object]]:
    """The actions with their prompts in spans; it takes a run only where a prompt continues another request."""
    parts = (part for action in scenario.actions if isinstance(action, AddRequest) for part in action.prompt)
    simulation = None
    if any(isinstance(part, Continue) for part in parts):
        simulation = Simulation(scenario.config, has_connector=scenario.has_connector, traced=False, tokenize=tokenize)
    uses: dict[str, int] = {}
    for k, action in enumerate(scenario.actions):
        if simulation is not None:
            check_continued(action, simulation, LIMITS, f"actions[{k}]")
            simulation.apply(action)
        if isinstance(action, AddRequest):
            uses[action.id] = uses.get(action.id, 0) + 1
            if simulation is not None:
                action = action.with_prompt(simulation.scripts[action.id].prompt)
            else:
                place = f"actions[{k}].prompt"
                spans = resolve(action.prompt, action.id, uses[action.id], lambda _: (), tokenize, place)
                action = action.with_prompt(spans)
        yield action.to_json()


def _layout(written: dict[str, object]) -> str:
    """A scenario with one action a line."""
    actions = written.pop("actions")
    assert isinstance(actions, list)
    head = "".join(f"  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in written.items())
    lines = ",\n".join(f"    {json.dumps(action)}" for action in actions)
    return "{\n" + head + '  "actions": [' + (f"\n{lines}\n  " if lines else "") + "]\n}"


def _schema(options: argparse.Namespace) -> int:
    print(json.dumps(record_schema() if options.record else scenario_schema(), indent=2))
    return 0


def _serve(options: argparse.Namespace) -> int:
    from app.serve import serve

    try:
        serve(read_settings(os.environ, host=options.host, port=options.port, public_url=options.public_url))
    except OSError as error:
        raise UsageError(str(error)) from None
    return 0


def _none_hash(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not HEX.match(text):
        raise SettingsError(
            "bad_hex", f'"{printable(text)}" is no hash', "--none-hash", "1 to 64 bytes as pairs of hex digits"
        )
    return bytes.fromhex(text)


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):
        return False


def _read(name: str) -> Scenario:
    if name == "-" and sys.stdin is None:
        raise UsageError("cannot read -: standard input is closed")
    try:
        source = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {printable(name)}: {_reason(error)}") from None
    scenario = read_scenario(source, tokenize)
    LIMITS.check(scenario, tokenize)
    return scenario


@contextmanager
def _writing(name: str) -> Iterator[TextIO]:
    with ExitStack() as stack:
        if name == "-":
            yield sys.stdout
            return
        try:
            out = stack.enter_context(Path(name).open("w", encoding="ascii", newline="\n"))
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot write {printable(name)}: {_reason(error)}") from None
        yield out


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@contextmanager
def _quiet_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    raise SystemExit(main())
