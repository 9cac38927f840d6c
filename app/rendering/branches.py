"""The list of a session's branches, in the order of a tree: each below the one that it left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.contexts import BranchesContext, BranchRow
from app.rendering.moment import Moment
from app.rendering.transport import config_summary, view
from app.rendering.variants import variants
from app.services.session import Node

MOST_ROWS: Final = 200


def branch_list(moment: Moment, owner: bool, error: str = "", *, whole_page: bool) -> BranchesContext:
    """All branches; of very many those around the chosen one."""
    rows = [_row(moment, node, depth) for node, depth in _tree(moment.branches)]
    place = next((at for at, row in enumerate(rows) if row.chosen), 0)
    first = max(min(place - MOST_ROWS // 2, len(rows) - MOST_ROWS), 0)
    shown = rows[first : first + MOST_ROWS]
    chosen = moment.branches[moment.branch]
    more = len(rows) - len(shown)
    knobs = variants(chosen.config)
    return BranchesContext(
        view(moment), tuple(shown), more, chosen.name, knobs, owner, bool(moment.session_id), whole_page, error
    )


def _tree(nodes: dict[str, Node]) -> Iterator[tuple[Node, int]]:
    """The living branches, children behind their parent; those of a deleted one hang at the next living one above."""
    children: dict[str | None, list[Node]] = {}
    for node in nodes.values():
        if not node.deleted:
            children.setdefault(_living_parent(nodes, node), []).append(node)
    stack = [(node, 0) for node in reversed(children.get(None, ()))]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in reversed(children.get(node.id, ())))


def _living_parent(nodes: dict[str, Node], node: Node) -> str | None:
    parent = node.parent
    while parent is not None and nodes[parent].deleted:
        parent = nodes[parent].parent
    return parent


def _row(moment: Moment, node: Node, depth: int) -> BranchRow:
    chosen = node.id == moment.branch
    parent = moment.branches[node.parent].name if node.parent else ""
    if not parent:
        origin = "the first"
    elif node.has_own_config:
        origin = f"{parent} on another config"
    else:
        origin = f"leaves {parent} after {node.left_at}"
    at = min(moment.at, node.end)
    compare = None if chosen else f"?a={moment.branch}&b={node.id}&at={at}"
    summary = config_summary(node.config) if node.has_own_config else ""
    query = f"?branch={node.id}&at={at}"
    return BranchRow(node.id, node.name, query, node.end, origin, summary, min(depth, 8), chosen, compare)
