"""Every question at every moment of golden scenarios, several groups and loads too, has an answer or a clear no."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.rendering.moment import Moment
from app.rendering.probe import Asked, candidates, probe_context
from app.rendering.requests import requests
from app.rendering.transport import view
from app.rendering.why import usage_why
from app.rendering.why_card import told_at, why_context
from app.rendering.words import plain
from app.services.session import Branch, Session
from engine.probe import Arguments
from engine.snapshot import digest
from tests.app.test_figures import GOLDEN, scenario_of


def moments(session: Session) -> list[Moment]:
    """A moment of its own for each action."""
    branch, kept = session.branch, []
    for at in range(branch.end + 1):
        branch.advance(branch.head, at, 60)
        kept.append(Moment.of(session, branch.head.fork()))
    return kept


@pytest.mark.parametrize("path", GOLDEN[::6], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_question_has_an_answer(path: Path) -> None:
    scenario = scenario_of(path)
    session = Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))
    kept = moments(session)
    for moment in kept:
        panel = requests(moment)
        offers = [why for row in (*panel.waiting, *panel.running) for why in row.whys]
        names = [row.id for row in (*panel.waiting, *panel.running) for _ in row.whys]
        assert usage_why(moment) is None or not moment.counts.live
        for why, name in zip(offers, names, strict=True):
            about = why.query.partition("about=")[2].partition("&")[0]
            there = kept[told_at(moment, about, name)]
            card = why_context(view(moment), there, about, name, whole_page=False)
            assert plain(card.answer).endswith(".")
            assert all(fact.label and plain(fact.words) for fact in card.facts)
        card = why_context(view(moment), moment, "usage", "", whole_page=False)
        assert plain(card.answer).endswith(".")


@pytest.mark.parametrize("path", GOLDEN[::6], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_everybody_can_be_probed_at_every_moment(path: Path) -> None:
    scenario = scenario_of(path)
    session = Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))
    for moment in moments(session):
        before = digest(moment.scheduler)
        for request in candidates(moment):
            for arguments in (Arguments(), Arguments(lookahead=5, reserved_blocks=1), Arguments(new=1, new_comp=0)):
                asked = Asked(request.request_id, {}, arguments)
                told = probe_context(moment, asked, whole_page=False)
                assert (told.call is None) == bool(asked.errors)
                assert set(asked.errors) <= {"new", "ext_comp"}, asked.errors
        assert digest(moment.scheduler) == before
