"""`/openapi.json` says what there is: every address, every error, and examples that run as they stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx2 import Response
from jsonschema_rs import Draft202012Validator
from starlette.testclient import TestClient

from app.routes.api import probe, records, sessions
from app.routes.api.document import document
from app.routes.api.examples import ID, SECRET
from engine.schema import scenario_schema
from tests.app.api.conftest import Json

DOCUMENT: Any = document()
OPERATIONS: list[tuple[str, str, Json]] = [
    (method, path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method != "parameters"
]
NAMES = [operation["operationId"] for _, _, operation in OPERATIONS]


def operation(name: str) -> tuple[str, str, Json]:
    """Method, path and the rest of an operation."""
    return OPERATIONS[NAMES.index(name)]


def problems(schema: Json, value: object) -> list[str]:
    """What is wrong with a value."""
    validator = Draft202012Validator({**schema, "components": DOCUMENT["components"]})
    return [error.message for error in validator.iter_errors(value)]


def test_it_is_what_is_served(client: TestClient) -> None:
    answer = client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == json.loads(json.dumps(DOCUMENT))


def test_every_address_is_in_it() -> None:
    told = {(method.upper(), path) for method, path, _ in OPERATIONS}
    routes = [route for module in (sessions, records, probe) for route in module.router.routes]
    assert told == {(method, route.path) for route in routes for method in route.methods}
    assert len(told) == 8


@pytest.mark.parametrize("name", NAMES)
def test_every_error_has_the_one_shape(name: str) -> None:
    responses = operation(name)[2]["responses"]
    errors = {status: told for status, told in responses.items() if int(status) >= 400}
    assert {"422", "503"} <= set(errors)
    for told in errors.values():
        shared = DOCUMENT["components"]["responses"][told["$ref"].rpartition("/")[2]]
        content = shared["content"]["application/json"]
        assert content["schema"] == {"$ref": "#/components/schemas/Error"}
        assert problems(content["schema"], content["example"]) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_example_obeys_its_schema(name: str) -> None:
    _, _, told = operation(name)
    answers = [answer for status, answer in told["responses"].items() if int(status) < 400]
    for body in [told.get("requestBody", {}), *answers]:
        content = body.get("content", {}).get("application/json", {})
        if "example" in content:
            assert problems(content["schema"], content["example"]) == []


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    for kind in ("schemas", "responses"):
        used = {part.partition('"')[0] for part in text.split(f"#/components/{kind}/")[1:]}
        assert used <= set(DOCUMENT["components"][kind])
        assert set(DOCUMENT["components"][kind]) - used <= {"Record"}
    assert "#/$defs/" not in text


def test_the_scenario_is_the_published_one() -> None:
    published: Any = scenario_schema()
    ours = DOCUMENT["components"]["schemas"]["Scenario"]
    assert ours["required"] == published["required"]
    assert list(ours["properties"]["config"]["properties"]) == list(published["properties"]["config"]["properties"])


def test_the_examples_run_one_after_the_other(client: TestClient) -> None:
    """Each request as it is printed, on the session that the first one makes; the answers are those printed."""
    made = json.loads(_run(client, "createSession").text)
    known = {ID: made["id"], SECRET: made["secret"]}
    assert _printed("createSession", known) == made
    for name in ("getSession", "act", "probe"):
        assert _run(client, name, known).json() == _printed(name, known)
    lines = _run(client, "replay").text
    assert lines == operation("replay")[2]["responses"]["200"]["content"]["application/jsonl"]["example"]
    assert _run(client, "getRecords", known).text.startswith(lines)
    assert problems({"$ref": "#/components/schemas/Permalink"}, _run(client, "getPermalink", known).json()) == []
    assert _run(client, "deleteSession", known).status_code == 204


def _run(client: TestClient, name: str, known: dict[str, str] | None = None) -> Response:
    method, path, told = operation(name)
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    headers = {"Authorization": f"Bearer {known[SECRET]}"} if known and told["security"] else {}
    address = path.replace("{session_id}", known[ID] if known else "")
    answer = client.request(method.upper(), address, json=body, headers=headers)
    assert str(answer.status_code) in told["responses"], answer.text
    assert answer.is_success
    return answer


def _printed(name: str, known: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
    """The answer of an example, with what is different in each session put right."""
    _, _, told = operation(name)
    (content,) = (answer["content"] for status, answer in told["responses"].items() if status in ("200", "201"))
    text = json.dumps(content["application/json"]["example"])
    for printed, real in {**known, "http://localhost:8000": "http://testserver"}.items():
        text = text.replace(printed, real)
    return json.loads(text)
