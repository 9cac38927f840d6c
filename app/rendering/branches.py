"""The list of a session's branches, in the order of a tree: each below the one that it left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from app.contexts import BranchesContext, BranchRow, BranchSign
from app.rendering.moment import Moment
from app.rendering.transport import config_summary, view
from app.rendering.variants import variants
from app.rendering.words import isolated
from app.services.comparing import signs
from app.services.session import Node

MOST_ROWS: Final = 200
MOST_DEPTH: Final = 5
ROOM: Final = 18
"""Signs that have room beside each other on a branch's line."""


def branch_list(moment: Moment, owner: bool, error: str = "", *, whole_page: bool) -> BranchesContext:
    """All branches; of very many those around the chosen one."""
    nodes = list(_tree(moment.branches))
    place = next((at for at, (node, _) in enumerate(nodes) if node.id == moment.branch), 0)
    first = max(min(place - MOST_ROWS // 2, len(nodes) - MOST_ROWS), 0)
    listed = nodes[first : first + MOST_ROWS]
    rows = {node.id: at for at, (node, _) in enumerate(listed)}
    longest = max((node.end for node, _ in listed), default=0) or 1
    shown = tuple(_row(moment, node, depth, rows, longest) for node, depth in listed)
    chosen = moment.branches[moment.branch]
    return BranchesContext(
        view=view(moment),
        rows=shown,
        longest=longest,
        more=len(nodes) - len(listed),
        name=chosen.name,
        variants=variants(chosen.config),
        owner=owner,
        stored=bool(moment.session_id),
        whole_page=whole_page,
        error=error,
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


def _row(moment: Moment, node: Node, depth: int, rows: dict[str, int], longest: int) -> BranchRow:
    """`rows`: branch -> its place in the list."""
    chosen = node.id == moment.branch
    above = _living_parent(moment.branches, node)
    parent = _named(moment.branches[node.parent]) if node.parent else ""
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
    left_at = 0 if node.has_own_config else node.left_at
    return BranchRow(
        id=node.id,
        name=node.name,
        query=query,
        end=node.end,
        origin=origin,
        summary=summary,
        depth=min(depth, MOST_DEPTH),
        chosen=chosen,
        compare=compare,
        left_at=left_at,
        up=rows[node.id] - rows[above] if above in rows else 0,
        signs=tuple(_signs(node, left_at, longest)),
    )


def _named(node: Node) -> str:
    """A branch's name; another one may have that of a deleted one by now."""
    return f"{isolated(node.name)} (deleted)" if node.deleted else isolated(node.name)


def _signs(node: Node, left_at: int, longest: int) -> Iterator[BranchSign]:
    """What was notable behind where it left its parent; what would lie over the sign before it is left out."""
    last = -longest
    for sign in signs(node.branch.columns) if node.branch is not None else ():
        apart = (sign.first - last) * ROOM >= longest
        if sign.first > left_at and (apart or sign.what == "preempted"):
            last = sign.first
            yield BranchSign(sign.what, sign.first, sign.last)
