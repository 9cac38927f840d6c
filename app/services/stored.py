"""Between what lies in the file and what is in memory: ids and secrets, branches, actions."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from typing import Final

from app.services.session import Node, Session
from app.store import StoredBranch, StoredSession
from engine.actions import Action
from engine.config import EngineConfig
from engine.scenario import loads, parse_action

ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"


def owns(session: Session, secret: str | None) -> bool:
    """Whether this is the secret of the session's owner."""
    given = hashlib.sha256((secret or "").encode()).digest()
    return hmac.compare_digest(given, session.secret_sha256)


def new_identity() -> tuple[str, str, bytes]:
    """An id for a session, the secret of its owner, and its hash."""
    secret = secrets.token_urlsafe(32)
    return "".join(secrets.choice(ALPHABET) for _ in range(12)), secret, hashlib.sha256(secret.encode()).digest()


def nodes_of(stored: StoredSession) -> dict[str, Node]:
    """The branches of a session; a branch without a config of its own has its parent's."""
    nodes: dict[str, Node] = {}
    own = EngineConfig.from_json(loads(stored.config))
    for row in stored.branches:
        if row.config is not None:
            config = EngineConfig.from_json(loads(row.config))
        else:
            config = nodes[row.parent].config if row.parent else own
        place = (row.parent, row.left_at, row.num_own)
        nodes[row.id] = Node(row.id, row.name, config, *place, row.connector, row.config is not None, row.deleted)
    return nodes


def branch_row(node: Node) -> StoredBranch:
    """A branch as it lies in the file."""
    config = json.dumps(node.config.to_json()) if node.has_own_config else None
    return StoredBranch(node.id, node.name, node.parent, node.left_at, config, node.has_connector)


def texts_of(actions: Sequence[Action]) -> list[str]:
    """Actions as they lie in the file."""
    return [json.dumps(action.to_json()) for action in actions]


def parse_actions(texts: Sequence[str], first: int) -> list[Action]:
    """The actions number `first`, `first` + 1, .. as they lie in the file."""
    return [parse_action(loads(text), f"actions[{k}]") for k, text in enumerate(texts, first)]
