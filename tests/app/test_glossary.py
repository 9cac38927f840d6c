"""Every word of a call is in the glossary; a page tells each sentence once, and a frame only names the words."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.contexts import Call
from app.gallery import every_story
from app.rendering.calls import call_context
from app.rendering.glossary import GLOSSARY, MEANINGS, meanings
from app.rendering.moment import Moment
from app.services.session import Branch, Session
from engine.scenario import Scenario
from engine.trace import STAGES
from tests.app.reading import HTMX, LESSON, new_session, tags_of, text_of
from tests.app.test_figures import GOLDEN, scenario_of

LAYOUT = {"comp", "new_comp", "ext_comp", "new", "lookahead", "later"}
TERMS = {"held", "hit", "skipped", "never below 0", "states needed", "must wait", "to take", "in all", "watermark"}
TERMS |= {"free", "reserved"}


def calls_of(scenario: Scenario) -> list[Call]:
    """Every call of a scenario, told whole."""
    session = Session("x", scenario.title, b"", Branch(scenario.config, scenario.actions))
    branch, told = session.branch, []
    for at in range(branch.end + 1):
        branch.advance(branch.head, at, 60)
        moment = Moment.of(session, branch.head)
        if moment.applied:
            trace = moment.applied.trace
            told += [call_context(moment, trace, index) for index in range(len(trace.calls))]
    return told


def check(call: Call) -> None:
    assert tuple(one.key for one in call.meanings) == tuple(part.kind for part in call.layout)
    for stage in call.stages:
        told = [one.key for one in stage.meanings]
        assert told[0] == stage.name
        assert len(set(told)) == len(told)
        for formula in stage.formulas:
            for term in formula.terms:
                assert term.word in told
                name = term.name.partition(", ")[0]
                if name in TERMS:  # others have numbers or the names of groups in them
                    assert MEANINGS[term.word].name.partition(",")[0] == name


def test_every_word_of_every_story_is_in_it() -> None:
    for story in every_story().values():
        for call in calls_of(story.scenario):
            check(call)


@pytest.mark.parametrize("path", GOLDEN[::8], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_word_of_a_golden_scenario_is_in_it(path: Path) -> None:
    for call in calls_of(scenario_of(path)):
        check(call)


def test_it_has_what_a_newcomer_asks_for() -> None:
    assert set(STAGES) | LAYOUT <= set(MEANINGS)
    names = {one.name for one in MEANINGS.values()}
    asked = {"null block", "ref_cnt", "hashed", "duplicate", "hit", "idle hits", "reserved", "watermark", "shortfall"}
    asked |= {"running pass", "waiting pass", "kv_cache_usage_perc", "token occupancy", "preempted", "block hash"}
    assert asked <= names
    assert len(MEANINGS) == sum(len(group.meanings) for group in GLOSSARY)
    for one in MEANINGS.values():
        assert re.fullmatch(r"[a-z_-]+", one.key)
        assert one.sentence.endswith(".")
        assert one.sentence[0].isupper() or one.sentence.startswith("num_")
        assert len(one.sentence) <= 200
    with pytest.raises(KeyError):
        meanings("comp", "nothing of the kind")


def test_its_page_tells_all_of_it(client: TestClient) -> None:
    page = client.get("/words")
    text = text_of(page)
    anchors = {attributes.get("id") for _, attributes in tags_of(page)}
    for one in MEANINGS.values():
        assert one.sentence in text
        assert f"word-{one.key}" in anchors
    assert client.head("/words").status_code == 200
    assert ("a", {"href": "words"}) in tags_of(client.get("/"))


def test_every_sheet_has_it_and_leads_to_it(client: TestClient) -> None:
    session = new_session(client)
    compared = client.get(f"{session}/compare?a=main&b=main")
    recorded = client.get(f"{LESSON}/export.html")
    for page in (client.get(LESSON), client.get(f"/embed{LESSON}"), compared, recorded):
        sheet = unescape(page.text.partition('<dialog id="keys"')[2].partition("</dialog>")[0])
        for one in MEANINGS.values():
            assert one.sentence in sheet
        assert "move over its blocks" in sheet
    for path, words in ((LESSON, "../words"), (session, "../words"), (f"/embed{LESSON}", "../../words")):
        links = [attributes for _, attributes in tags_of(client.get(path)) if attributes.get("data-sheet") == "words"]
        assert [link["href"] for link in links] == [words]
    assert 'href="../words"' not in recorded.text


def test_a_page_tells_them_in_the_call_and_a_frame_names_them(client: TestClient) -> None:
    gate = MEANINGS["gate"].sentence
    page, frame = client.get(f"{LESSON}?at=6"), client.get(f"{LESSON}/frame?at=6&from=5", headers=HTMX)
    assert text_of(page).count(gate) == 2 + 1  # two calls, and the sheet
    named = [attributes["data-meanings"] for _, attributes in tags_of(frame) if "data-meanings" in attributes]
    assert "gate whole watermark free idle-hits new-blocks" in named
    assert "comp new_comp ext_comp new lookahead" in named
    assert gate not in frame.text
    for path in ("call", "probe"):
        query = f"{LESSON}/{path}?at=6&call=1&request=R"
        assert gate in client.get(query).text
        assert gate not in client.get(query, headers=HTMX).text
