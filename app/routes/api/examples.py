"""Examples of `/openapi.json`: what is sent, and what the engine answers to just that."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from app.rendering.call_json import call_json
from app.rendering.moment import Moment
from app.services.session import Branch, Session
from engine.probe import probe
from engine.record import Record, apply_recorded, current_state
from engine.scenario import parse_action, parse_scenario
from engine.simulation import Simulation

SCENARIO: Final[dict[str, Any]] = {
    "version": 1,
    "title": "Two requests, one system prompt",
    "config": {"num_blocks": 12, "max_num_batched_tokens": 256},
    "actions": [
        {
            "do": "add_request",
            "id": "ada",
            "prompt": [{"shared": "system", "tokens": 32}, {"tokens": 8}],
            "max_tokens": 4,
        },
        {"do": "step"},
    ],
}
ACTIONS: Final[dict[str, Any]] = {
    "branch": "main",
    "at": 2,
    "actions": [
        {
            "do": "add_request",
            "id": "bob",
            "prompt": [{"shared": "system", "tokens": 32}, {"tokens": 20}],
            "max_tokens": 4,
        },
        {"do": "step"},
    ],
}
PROBE: Final[dict[str, Any]] = {"request": "bob", "new": 1, "lookahead": 16}
ID: Final = "k3m9x2abcdef"
SECRET: Final = "the-secret-that-was-answered"
SECONDS: Final = 10.0
HOST: Final = "http://localhost:8000"


@cache
def _run() -> tuple[list[Record], list[dict[str, object]]]:
    """The records of both lists of actions, and the state before each and after all."""
    scenario = parse_scenario(SCENARIO)
    simulation = Simulation(scenario.config)
    actions = [*scenario.actions, *(parse_action(action) for action in ACTIONS["actions"])]
    records, states = list[Record](), [current_state(simulation)]
    for action in actions:
        records.append(apply_recorded(simulation, action))
        states.append(current_state(simulation))
    return records, states


def created() -> dict[str, Any]:
    """The answer to making a session."""
    api = f"{HOST}/api/sessions/{ID}"
    page = f"{HOST}/s/{ID}?branch=main&at=2"
    links = {"page": page, "session": api, "records": f"{api}/records", "permalink": f"{api}/permalink"}
    return {"id": ID, "secret": SECRET, "branch": "main", "at": 2, "links": links}


def moment() -> dict[str, Any]:
    """The session as it was made."""
    return {"branch": "main", "at": 2, "actions": SCENARIO["actions"], "state": _run()[1][2]}


def acted() -> dict[str, Any]:
    """The answer to the actions."""
    return {"branch": "main", "at": 4, "records": _run()[0][2:]}


def replayed() -> list[Record]:
    """The records of the scenario."""
    return _run()[0][:2]


def probed() -> dict[str, Any]:
    """The answer to the probe, behind the actions."""
    scenario = parse_scenario({**SCENARIO, "actions": [*SCENARIO["actions"], *ACTIONS["actions"]]})
    branch = Branch(scenario.config, scenario.actions)
    branch.advance(branch.head, branch.end, SECONDS)
    moment = Moment.of(Session(ID, scenario.title, b"", branch), branch.head)
    call = probe(branch.head.simulation, PROBE["request"], new=PROBE["new"], lookahead=PROBE["lookahead"])
    return call_json(moment, call)


def error(code: str, message: str, where: str, expected: str) -> dict[str, Any]:
    """An error."""
    return {"error": {"code": code, "message": message, "where": where, "expected": expected}}
