"""What moves memory besides the calls, in sentences: external tokens and loads, copies, blocks to zero."""

from __future__ import annotations

from collections.abc import Iterator

from app.contexts import Piece, Sentence
from app.rendering.groups import group_name
from app.rendering.moment import Moment
from app.rendering.words import count, runs, sentence
from app.services.cursor import Applied
from engine.step_trace import Copy, ExternalTokens, Load


def load_sentences(moment: Moment, applied: Applied) -> Iterator[Sentence]:
    """What the connector was asked, and how each load stands."""
    for external in applied.trace.external:
        if words := _external(moment, external):
            yield Sentence("load", sentence(moment, words, external.request))
    for load in applied.trace.loads:
        yield Sentence("load", sentence(moment, _load(moment, load), load.request))


def _external(moment: Moment, external: ExternalTokens) -> str:
    """Nothing to say about a request of which the connector knows nothing."""
    connector = moment.cursor.simulation.connector
    plan = connector.plans.get(external.request) if connector else None
    if plan is None:
        return ""
    behind = f" behind the {external.local} found here" if external.local else ""
    if not external.tokens:
        return f"The connector has nothing for {{}}{behind}."
    tokens = count(external.tokens, "external token")
    if external.is_async:
        return f"The connector has {tokens} for {{}}{behind}, to be loaded in {count(max(plan.steps, 1), 'step')}."
    return f"The connector supplies {tokens} for {{}}{behind} at once."


def _load(moment: Moment, load: Load) -> str:
    connector = moment.cursor.simulation.connector
    assert connector is not None
    steps = max(connector.plans[load.request].steps, 1)
    left = connector.loading.get(load.request, 0)
    match load.stage:
        case "begun":
            return "{} takes its blocks and waits while they are loaded; it needs no place among the running."
        case "going on":
            return f"{{}} is loading: step {steps - left} of {steps}."
        case "received":
            gone = load.request not in moment.scheduler.requests
            return "The load of {} is through; " + ("its blocks are free now." if gone else "the next step may use it.")
        case _:
            return "{} uses what was loaded: its full blocks get their hashes."


def copy_sentences(moment: Moment, applied: Applied) -> Iterator[Sentence]:
    """Blocks that are copied before they are written to, and why."""
    for copy in applied.trace.copies:
        text = _moved(moment, copy) if copy.moved else _part_hit(moment, applied, copy)
        yield Sentence("copy", sentence(moment, text, copy.request))


def _moved(moment: Moment, copy: Copy) -> str:
    name = group_name(moment.cursor.simulation.config, copy.group)
    return (
        f"{{}} writes on in block {copy.source}, whose {name} state is cached: it is copied to {copy.copy}, "
        "and its hash moves there."
    )


def _part_hit(moment: Moment, applied: Applied, copy: Copy) -> str:
    config = moment.cursor.simulation.config
    size = config.groups[copy.group].block_size
    call = next(call for call in applied.trace.calls if call.granted and call.request == copy.request)
    hit = (call.comp + call.new_comp) % size
    name = group_name(config, copy.group)
    return (
        f"{{}} hit only {hit} of the {size} tokens of block {copy.source}, {name}: it writes on in a copy, {copy.copy}."
    )


def zero_sentences(applied: Applied) -> Iterator[Sentence]:
    """The blocks that a worker must zero before it uses them (7.13)."""
    blocks = applied.outcome.output.new_block_ids_to_zero if applied.outcome.output else None
    if blocks:
        yield Sentence("zero", (Piece(f"To be zeroed before use: {runs(blocks)}."),))
