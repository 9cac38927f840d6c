"""Checking the text of a scenario: everything that is wrong with it, each with its place in the text.

The readers of a scenario stop at the first mistake. Here the config's options and the actions are read one by one, so
that each of them can tell its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.services.acting import check_ids
from app.services.errors import BadValueError, ServiceError
from app.services.json_help import what_it_is, what_would_be_right
from app.services.json_place import Mark, Places, find_place
from app.tokenizer import tokenize
from engine.config import EngineConfig, GroupConfig
from engine.config_options import Option
from engine.errors import InputError, ScenarioError
from engine.scenario import Limits, Scenario, check_action, loads, parse_action, parse_scenario
from engine.strict_json import join, record

MOST_PROBLEMS: Final = 20
"""So many are told at once."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where in the text; `mark` is None where it is about all of it."""

    error: InputError | ServiceError
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A text that was checked: its scenario, or what is wrong with it, in the order of the text."""

    scenario: Scenario | None
    problems: tuple[Problem, ...] = ()


def check_text(text: str, limits: Limits) -> Checked:
    """Read a scenario from text, with everything that can be known before it runs."""
    try:
        obj = loads(text)
        if told := what_it_is(text):
            return Checked(None, (Problem(ScenarioError("not_a_scenario", told[0], "", told[1])),))
        try:
            scenario = parse_scenario(obj, tokenize)
            limits.check(scenario, tokenize)
            check_ids(scenario.actions)
            return Checked(scenario)
        except BadValueError as error:
            return Checked(None, (problem_in(text, error),))
        except InputError as first:
            return Checked(None, tuple(_placed(text, _all_of(obj, limits, first))))
    except InputError as error:
        return Checked(None, (_not_json(text, error),))


def problem_in(text: str, error: InputError | ServiceError) -> Problem:
    """What turned out later, with its place."""
    return Problem(error, find_place(text, error.where, error.code))


def _not_json(text: str, error: InputError) -> Problem:
    if told := what_it_is(text):
        return Problem(ScenarioError("malformed_not_a_scenario", told[0], "", told[1]))
    problem = problem_in(text, error)
    if problem.mark is None or not error.where.startswith("line "):
        return problem
    expected = what_would_be_right(text, problem.mark.start)
    return Problem(ScenarioError(error.code, error.message, error.where, expected), problem.mark)


def _placed(text: str, errors: list[InputError]) -> list[Problem]:
    places = Places(text)
    problems = [Problem(error, places.find(error.where, error.code)) for error in errors]
    return sorted(problems, key=lambda problem: problem.mark.start if problem.mark else -1)


def _all_of(obj: object, limits: Limits, first: InputError) -> list[InputError]:
    """What is wrong with each part; `first` is what the reader stopped at."""
    found = [first]
    told = {(first.where, first.message)}
    for error in _part_by_part(obj, limits):
        if (error.where, error.message) not in told:
            told.add((error.where, error.message))
            found.append(error)
        if len(found) == MOST_PROBLEMS:
            break
    return found


def _part_by_part(obj: object, limits: Limits) -> Iterator[InputError]:
    if not isinstance(obj, dict):
        return
    known = ("version", "title", "config", "actions")
    for key in obj:
        yield from _tried(record, {key: None}, "", known)
    errors = list(_config_errors(obj.get("config"), limits))
    yield from errors
    config = EngineConfig.from_json(obj["config"]) if "config" in obj and not errors else None
    actions = obj.get("actions")
    for index, written in enumerate(actions if isinstance(actions, list) else ()):
        yield from _tried(_read_action, written, config, limits, f"actions[{index}]")


def _config_errors(obj: object, limits: Limits) -> Iterator[InputError]:
    """What is wrong with each option by itself; the rules between them only where all are right."""
    if not isinstance(obj, dict):
        return
    known, wrong = EngineConfig.options(), False
    for key, value in obj.items():
        where = join("config", key)
        for error in _option_errors(known, key, value, where):
            wrong = True
            yield error
    if not wrong:
        yield from _tried(lambda: limits.check_config(EngineConfig.from_json(obj)))


def _option_errors(known: Mapping[str, Option], key: str, value: object, where: str) -> Iterator[InputError]:
    if key == "groups" and isinstance(value, list):
        for index, group in enumerate(value):
            yield from _tried(GroupConfig.from_json, group, 16, f"{where}[{index}]")
    elif key in known:
        yield from _tried(known[key].read, value, where)
    else:
        yield from _tried(record, {key: value}, "config", known)


def _read_action(written: object, config: EngineConfig | None, limits: Limits, where: str) -> None:
    action = parse_action(written, where)
    limits.check_action(action, where, tokenize)
    if config is not None:
        check_action(action, config, where, tokenize)


def _tried(work: Callable[..., object], *arguments: object) -> Iterator[InputError]:
    """What the work raises."""
    try:
        work(*arguments)
    except InputError as error:
        yield error
