"""Schemathesis: whatever its document allows or forbids, the API answers as the document says.

Every example acts on a new session, so that one doesn't depend on another; the same examples come in every run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from app.main import create_app
from app.settings import Settings
from tests.app.api.conftest import STEP, add, scenario

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
    allow_header_conformance,
]
"""All but `positive_data_acceptance`: what depends on several values, a schema can't say."""

SERVER: Final = create_app(Settings(data=Path(tempfile.mkdtemp())))


async def always_up(scope: Scope, receive: Receive, send: Send) -> None:
    """The app, which doesn't close when Schemathesis, which starts and stops it with each test, wants it to."""
    if scope["type"] != "lifespan":
        await SERVER(scope, receive, send)
        return
    for part in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{part}.complete"})


REFUSED: Final = ["400", "401", "403", "404", "405", "409", "413", "422"]
CONFIG: Final = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
SCHEMA: Final = schemathesis.openapi.from_asgi("/openapi.json", always_up, config=CONFIG)
CLIENT: Final = TestClient(always_up)


@SCHEMA.parametrize()
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_api_is_what_its_document_says(case: Case[Any]) -> None:
    headers = {}
    if "session_id" in case.path_parameters:
        made = CLIENT.post("/api/sessions", json=scenario(add("ada"), STEP, add("bob"))).json()
        case.path_parameters["session_id"] = made["id"]
        headers["Authorization"] = f"Bearer {made['secret']}"
    case.call_and_validate(headers=headers, checks=CHECKS)
