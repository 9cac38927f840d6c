"""The editor: what is wrong with a text is told with its place, and a right one becomes a session."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from app.routes.edit import EXAMPLE
from app.services.checking import MOST_PROBLEMS
from app.services.links import encode
from app.settings import Settings
from app.store import Store
from engine.scenario import parse_scenario
from tests.app.conftest import browser
from tests.app.reading import HTMX, area_of, end_of, figures_of, landed, new_session, tags_of, text_of
from tests.app.scenarios import PREEMPTION, stored

JSON = {"Accept": "application/json"}
HOSTILE = "</textarea></script><img src=x onerror=alert(1)>&\"'\u2028"


def scenario(*actions: object, **config: object) -> str:
    """One action a line, from line 3 on."""
    lines = ",\n".join(json.dumps(action) for action in actions)
    return f'{{"version": 1, "config": {json.dumps({"num_blocks": 20} | config)},\n"actions": [\n{lines}\n]}}'


def add(name: str = "a", prompt: object = None, **more: object) -> dict[str, object]:
    return {"do": "add_request", "id": name, "prompt": prompt or [[1, 5]], "max_tokens": 2, **more}


def checked(client: TestClient, text: str | bytes, name: str = "") -> dict[str, Any]:
    answer = client.post("/check", params={"name": name} if name else {}, content=text, headers=JSON)
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()
    return told


# ---- what is wrong


@pytest.mark.parametrize(
    ("text", "where", "line", "marked", "words"),
    [
        (scenario({"do": "stepp"}), "actions[0].do", 3, '"stepp"', 'There is no action "stepp".'),
        (scenario(add(prompt=[{"tokens": True}])), "actions[0].prompt[0].tokens", 3, "true", "Got true."),
        (scenario(add(prompt={"text": ""})), "actions[0].prompt.text", 3, '""', "The text is empty."),
        (scenario(add(prompt=[[1, 2], [3]])), "actions[0].prompt[1]", 3, "[3]", "[first, count]"),
        (scenario(add(max_token=3)), "actions[0].max_token", 3, '"max_token"', 'Expected: "max_tokens".'),
        (scenario({"do": "abort"}), "actions[0]", 3, '{"do": "abort"}', 'The key "id" is missing.'),
        (
            scenario(add(prompt={"tokens": 9000})),
            "actions[0].prompt",
            3,
            '{"tokens": 9000}',
            "max_model_len, 8192",
        ),
        (scenario(add(output=[[1, 1]])), "actions[0].output", 3, "[[1, 1]]", "can run out"),
        (scenario(add("x" * 201)), "actions[0].id", 3, '"' + "x" * 201 + '"', "201 characters is too long."),
        (scenario(num_blocks=0), "config.num_blocks", 1, "0", "0 is not allowed."),
        (scenario(num_blocks=200_001), "config.num_blocks", 1, "200001", "at most 200000"),
        (scenario(blok=1), "config.blok", 1, '"blok"', 'Unknown key "blok".'),
        (
            scenario(groups=[{"kind": "mamba", "sliding_window": 3}]),
            "config.groups[0].sliding_window",
            1,
            None,
            "",
        ),
        (scenario(max_num_seqs=4000), "config.max_num_batched_tokens", 1, None, "a step of 2048 tokens is less"),
        ('{"version": 2}', "version", 1, "2", "Version 2 is not known."),
        ('{"version": 1, "actions": []}', "", None, None, 'The key "config" is missing.'),
        ('{"version": 1, "version": 1}', "version", 1, '"version"', "is there twice."),
        ('{"version": NaN}', "version", 1, "NaN", "NaN is not JSON."),
        ('{"version": ' + "9" * 30 + "}", "version", 1, "9" * 30, "30 digits is too large"),
        ('{"title": "\\ud800"}', "title", 1, '"\\ud800"', "half of a surrogate pair"),
        ("[" * 3000, "", 1, "[", "nested too deeply"),
        ("[1]", "", None, None, "Got a list of 1."),
        ('{"version": 1,\n}', "line 2, column 1", 2, "}", "no comma before a closing bracket"),
        ("{'version': 1}", "line 1, column 2", 1, "'", 'texts in "straight double quotes"'),
        ('{"version": 1 // one\n}', "line 1, column 15", 1, "/", "no comment: JSON has none"),
        ('{"a": True}', "line 1, column 7", 1, "T", "Expected: true."),
        ('{"a": 1 "b": 2}', "line 1, column 9", 1, '"', "a comma after a value"),
        ('{"a": "x\ty"}', "line 1, column 9", 1, "\t", "no line break and no tab inside a text"),
        ('{"a": [1', "line 1, column 9", 1, "", "a quote or a bracket is not closed"),
        ("", "file", None, None, "There is nothing here."),
        (" \n", "file", None, None, "There is nothing here."),
        ("http://x/p/1abc", "", None, None, "This is a link, not a scenario."),
        ("<!doctype html>", "", None, None, "This is a page, not a scenario."),
        ('{"story": "", "scenario": {}}', "", None, None, 'it stands behind the key "scenario"'),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    client: TestClient, text: str, where: str, line: int | None, marked: str | None, words: str
) -> None:
    told = checked(client, text)
    (problem,) = told["problems"]
    assert told["summary"] == ""
    assert problem["where"] == where
    assert problem["line"] == line
    page = text_of(client.post("/check", files={"text": (None, text)}, headers=HTMX))
    assert words.lower() in page.lower()
    assert "One thing is wrong." in page
    if line is not None:
        behind = text.split("\n")[line - 1][problem["column"] - 1 :]
        assert marked is None or behind[: problem["length"]] == marked
        assert f"line {line}, column {problem['column']}" in page


@pytest.mark.parametrize(
    ("actions", "where", "words"),
    [
        ([add("a"), add("a")], "actions[1].id", "Request 'a' is still alive."),
        ([add("b", {"continue": "a"})], "actions[0].prompt", "No request 'a' was ever added."),
    ],
)
def test_what_shows_only_while_running_has_its_place_too(
    client: TestClient, actions: list[object], where: str, words: str
) -> None:
    text = scenario(*actions)
    (problem,) = checked(client, text)["problems"]
    assert problem["where"] == where
    assert problem["line"] == len(actions) + 2
    for headers in ({}, JSON):
        refused = client.post("/edit", files={"text": (None, text)}, headers=headers)
        assert refused.status_code == 422
    assert words in text_of(client.post("/edit", files={"text": (None, text)}))
    assert refused.json()["error"]["where"] == where


def test_everything_that_is_wrong_is_told_at_once(client: TestClient) -> None:
    text = scenario(add(prompt=[{"tokens": "x"}]), {"do": "no"}, {"do": "step"}, add(more=1), num_blocks="n", odd=2)
    text = text.replace('"version"', '"titel": "", "version"', 1)
    told = [(problem["line"], problem["where"]) for problem in checked(client, text)["problems"]]
    assert told == [
        (1, "titel"),
        (1, "config.num_blocks"),
        (1, "config.odd"),
        (3, "actions[0].prompt[0].tokens"),
        (4, "actions[1].do"),
        (6, "actions[3].more"),
    ]


def test_of_very_many_mistakes_the_first_are_told(client: TestClient) -> None:
    text = scenario(*[{"do": f"x{n}"} for n in range(100)])
    assert len(checked(client, text)["problems"]) == MOST_PROBLEMS
    assert f"{MOST_PROBLEMS} or more things are wrong." in text_of(
        client.post("/check", files={"text": (None, text)}, headers=HTMX)
    )


def test_a_chain_of_prompts_that_doubles_is_refused_and_not_built(client: TestClient) -> None:
    actions: list[object] = [add("r0", {"tokens": 1000})]
    for n in range(40):
        part = {"continue": f"r{n}"}
        actions.append(add(f"r{n + 1}", [part, part]))
    text = scenario(*actions, max_model_len=2**53)
    (problem,) = checked(client, text)["problems"]
    assert (problem["code"], problem["where"]) == ("over_limit", "actions[10].prompt")
    refused = client.post("/edit", files={"text": (None, text)}, headers=JSON)
    assert (refused.status_code, refused.json()["error"]["where"]) == (413, "actions[10].prompt")


# ---- what is right


def test_the_summary_of_the_example(client: TestClient) -> None:
    assert checked(client, EXAMPLE) == {
        "summary": "8 actions, 21 blocks; replays to: 1 running, 0 waiting, 8 of 20 blocks held.",
        "problems": [],
        "note": "",
    }
    assert text_of(client.get("/edit")).count("8 of 20 blocks held") == 0  # looking checks nothing


def test_a_check_replays_no_longer_than_it_may(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.routes.edit.CHECK_SECONDS", 0)
    words = checked(client, scenario(add(), {"do": "step"}))["summary"]
    assert words == (
        "2 actions, 20 blocks. In the time that a check may take, 0 of them replay to: "
        "0 running, 0 waiting, 0 of 19 blocks held."
    )


def test_checking_stores_nothing(client: TestClient, settings: Settings) -> None:
    client.get("/edit")
    client.post("/check", files={"text": (None, EXAMPLE)})
    client.post("/tidy", files={"text": (None, EXAMPLE)})
    store = Store(settings.data)
    assert store.count()[0] == 0
    store.close()


def opened(answer: Response) -> str:
    assert answer.status_code == 303, text_of(answer)
    return landed(answer)


def test_opening_makes_a_session_at_its_start(client: TestClient) -> None:
    answer = client.post("/edit", files={"text": (None, EXAMPLE.replace("\n", "\r\n"))})
    assert answer.headers["location"].endswith("?branch=main&at=0")
    page = opened(answer)
    assert "A second turn hits the first" in text_of(client.get(page))
    session = page.partition("?")[0]
    assert end_of(client, session) == 8
    assert "turn 2 found 80 of its 117 tokens" in text_of(client.get(session))
    assert client.post(f"{session}/step", data={"at": "8"}).status_code == 303


def test_programs_open_too(client: TestClient) -> None:
    answer = client.post("/edit", content=EXAMPLE, headers={**JSON, "Content-Type": "application/json"})
    assert answer.status_code == 201
    assert (answer.json()["at"], answer.json()["end"]) == (0, 8)


def test_a_session_comes_back_as_it_was_written(client: TestClient, settings: Settings) -> None:
    page = stored(settings, PREEMPTION, watermark=0.1)
    shown = client.get(f"{page}/edit?branch=main&at=3")
    text = area_of(shown)
    assert json.loads(text) == {
        "version": 1,
        "title": "A test",
        "config": {"num_blocks": 9, "block_size": 4, "max_model_len": 400, "max_num_seqs": 8, "watermark": 0.1},
        "actions": PREEMPTION,
    }
    assert [json.loads(line.rstrip(",")) for line in text.split("\n")[5:-2]] == PREEMPTION
    assert '<a href="scenario.json?branch=main" download>' in shown.text
    fields = {"text": (None, text.replace('"id": "b"', '"id": "second"')), "at": (None, "3")}
    answer = client.post(f"{page}/edit?branch=main", files=fields)
    new = landed(answer)
    assert new.endswith("?branch=main&at=3")
    assert figures_of(client.get(new))["requests"] == ["a", "second"]
    assert figures_of(client.get(page))["requests"] == ["a", "b"]


def test_the_chosen_branch_is_shown(client: TestClient) -> None:
    page = new_session(client)
    client.post(f"{page}/add", data={"at": "1", "id": "late", "tokens": "5", "max_tokens": "1"})
    assert len(json.loads(area_of(client.get(f"{page}/edit")))["actions"]) == 16
    branch = json.loads(area_of(client.get(f"{page}/edit?branch=b2")))
    assert [action.get("id") for action in branch["actions"]] == ["warm", "late"]
    assert client.get(f"{page}/edit?branch=b9").status_code == 409
    assert client.get("/s/nowhere/edit").status_code == 404


def test_stories_and_links_are_edited_as_they_are_written(client: TestClient) -> None:
    story = client.get("/story/next-turn/edit?at=2")
    written = json.loads(area_of(story))
    code = encode(parse_scenario(written), 3)
    assert area_of(client.get(f"/p/{code}/edit")) == area_of(story)
    back = [str(tag["href"]) for name, tag in tags_of(client.get(f"/p/{code}/edit")) if name == "a"]
    assert "./?branch=main&at=3" in back
    assert json.loads(area_of(client.get("/new/edit")))["actions"] == []
    for path, at in (("/story/next-turn", 2), (f"/p/{code}", 3)):
        answer = client.post(f"{path}/edit", files={"text": (None, area_of(story)), "at": (None, str(at))})
        new = opened(answer)
        assert new.startswith("/s/")
        assert new.endswith(f"?branch=main&at={at}")
        assert json.loads(area_of(client.get(f"{new.partition('?')[0]}/edit"))) == written
    assert client.get("/embed/story/next-turn/edit").status_code == 404


def test_what_was_typed_is_kept_and_opened_at_its_mistake(client: TestClient) -> None:
    typed = '\n{"version": 1, "config": {"num_blocks": 5}, "actions": [\n{"do": "stop"}]}'
    answer = client.post("/edit", files={"text": (None, typed), "at": (None, "7")})
    assert answer.status_code == 422
    assert area_of(answer) == typed
    (place,) = [tag for name, tag in tags_of(answer) if name == "a" and tag.get("class") == "place"]
    assert (place["data-line"], place["data-column"], place["data-length"]) == ("3", "8", "6")
    area = next(tag for name, tag in tags_of(answer) if name == "textarea")
    assert area["aria-invalid"] == "true"
    assert ("input", {"type": "hidden", "name": "at", "value": "7"}) in tags_of(answer)


def test_opening_needs_this_origin(client: TestClient) -> None:
    headers = {"Origin": "http://evil.example"}
    assert client.post("/edit", files={"text": (None, EXAMPLE)}, headers=headers).status_code == 403


def test_a_plain_check_answers_with_the_page(client: TestClient) -> None:
    answer = client.post("/check", files={"text": (None, EXAMPLE)})
    assert "Fine. 8 actions, 21 blocks" in text_of(answer)
    assert area_of(answer) == EXAMPLE
    page = new_session(client)
    answer = client.post(f"{page}/check", files={"text": (None, "{")})
    assert answer.status_code == 200
    assert "One thing is wrong." in text_of(answer)
    assert "Back to the session" in text_of(answer)


def test_tidy_lays_out_one_action_a_line(client: TestClient) -> None:
    written = json.loads(EXAMPLE)
    answer = client.post("/tidy", content=json.dumps(written), headers=HTMX)
    assert (answer.status_code, answer.text) == (200, EXAMPLE)
    assert area_of(client.post("/tidy", data={"text": json.dumps(written, indent=8)})) == EXAMPLE
    text = '{"text": "日本", "n": 9223372036854775807, "config": {}, "actions": []}'
    assert json.loads(client.post("/tidy", content=text, headers=HTMX).text) == json.loads(text)
    refused = client.post("/tidy", content="{", headers=HTMX)
    assert refused.status_code == 400
    assert "line 1, column 2" in text_of(refused)


# ---- files

RECORDS = b'{"action":0,"do":"step","state":{}}\n{"action":1,"do":"step","state":{}}\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", '"f.json" is empty. Expected: a scenario'),
        (b"\xef\xbb\xbf", "There is nothing in it."),
        (gzip.compress(EXAMPLE.encode()), '"f.json" is compressed (gzip). Expected: the JSON file that is inside.'),
        (b"PK\x03\x04rest", '"f.json" is compressed (zip).'),
        (EXAMPLE.encode("utf-16"), '"f.json" is text in UTF-16. Expected: the same saved as UTF-8.'),
        (b'{"version": 1,\n"title": "\xe4"}', '"f.json" is not text in UTF-8: byte 25, in line 2, can\'t be read.'),
        (b"\x89PNG\r\n\x1a\n", '"f.json" is not text in UTF-8: byte 0, in line 1, can\'t be read.'),
        (RECORDS, "These are records: what a scenario did, not the scenario itself."),
        (RECORDS[:36], "These are records"),
        (b"\x00\x00\x00", "Not JSON"),
    ],
)
def test_a_file_that_is_none_is_told_so_and_what_was_typed_stays(client: TestClient, data: bytes, words: str) -> None:
    (problem,) = checked(client, data, "f.json")["problems"]
    assert problem["code"] in ("malformed_file", "malformed_json", "malformed_not_a_scenario", "not_a_scenario")
    answer = client.post("/edit", files={"text": (None, "typed"), "file": ("f.json", data)})
    assert answer.status_code in (400, 422)
    assert words in text_of(answer)
    if "f.json" in words:
        assert area_of(answer) == "typed"


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (EXAMPLE.replace("\n", "\r\n").encode(), ""),
        (EXAMPLE.replace("\n", "\r").encode(), ""),
        (b"\xef\xbb\xbf" + EXAMPLE.encode(), "A byte order mark at its start was left out."),
    ],
)
def test_a_file_goes_before_the_text(client: TestClient, data: bytes, note: str) -> None:
    assert checked(client, data, "f.json")["note"] == note
    page = opened(client.post("/edit", files={"text": (None, "typed"), "file": ("f.json", data)}))
    assert end_of(client, page.partition("?")[0]) == 8


def test_a_file_with_a_mistake_comes_into_the_text(client: TestClient) -> None:
    data = b'{"version": 1,\r\n"config": {}}'
    answer = client.post("/edit", files={"text": (None, "typed"), "file": ("f.json", data)})
    assert area_of(answer) == data.decode().replace("\r\n", "\n")
    assert "line 1, column 1" not in text_of(answer)


def test_no_file_chosen_is_no_file(client: TestClient) -> None:
    answer = client.post("/edit", files={"text": (None, EXAMPLE), "file": ("", b"")})
    assert answer.status_code == 303


def test_a_file_of_10_mb_is_refused_before_it_is_read(client: TestClient) -> None:
    for headers in ({"Accept": "text/html"}, JSON):
        answer = client.post("/edit", files={"file": ("f.json", b"x" * 10_000_000)}, headers=headers)
        assert answer.status_code == 413
        assert "larger than Poolscope takes" in answer.text
        assert "at most 2000000 bytes" in answer.text


def test_a_long_scenario_within_the_limit_is_opened(client: TestClient) -> None:
    text = scenario(*[{"do": "step"}] * 15_000)
    assert checked(client, text)["problems"] == []
    assert end_of(client, opened(client.post("/edit", files={"text": (None, text)})).partition("?")[0]) == 15_000


# ---- hostile


def test_hostile_text_is_escaped_everywhere(client: TestClient) -> None:
    good = scenario(add(HOSTILE, {"text": HOSTILE})).replace(
        '"version"', f'"title": {json.dumps(HOSTILE)}, "version"', 1
    )
    texts = [
        HOSTILE,
        good,
        f"{{{json.dumps(HOSTILE)}: 1}}",
        scenario({"do": HOSTILE}),
        good.replace("max_tokens", HOSTILE),
    ]
    for text in texts:
        for path in ("/check", "/tidy", "/edit"):
            for headers in ({}, HTMX):
                answer = client.post(path, files={"text": (None, text), "at": (None, HOSTILE)}, headers=headers)
                if answer.headers.get("content-type", "").startswith("text/html"):
                    assert "<img src=x" not in answer.text
                    assert ("img", {"src": "x", "onerror": "alert(1)"}) not in tags_of(answer)
    answer = client.post("/edit", files={"file": (HOSTILE, b"\xff")})
    assert "<img src=x" not in answer.text
    page = opened(client.post("/edit", files={"text": (None, good)})).partition("?")[0]
    for path in (page, f"{page}/edit"):
        assert "<img src=x" not in client.get(path).text
    assert json.loads(area_of(client.get(f"{page}/edit")))["title"] == HOSTILE


def test_another_server_keeps_what_was_opened(client: TestClient, settings: Settings) -> None:
    page = opened(client.post("/edit", files={"text": (None, EXAMPLE)})).partition("?")[0]
    with browser(settings) as other:
        assert json.loads(area_of(other.get(f"{page}/edit"))) == json.loads(EXAMPLE)
