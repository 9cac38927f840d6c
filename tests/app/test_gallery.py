"""The gallery: every story is replayed, its point asserted, and each number in a note compared with the engine's."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from app.gallery import FOLDER, LESSON, TOPICS, Story, load_stories
from app.settings import SERVER_LIMITS
from engine.actions import AddRequest, Step
from engine.call_trace import CallTrace
from engine.config import EngineConfig
from engine.invariants import check
from engine.scenario import parse_scenario
from engine.simulation import Outcome
from engine.step_trace import StepTrace
from engine.tokens import Own, Shared, count_of
from tests.engine.helpers import Run, preempted, removed, scheduled, simulation_of, trace

STORIES = {story.slug: story for story in load_stories()}
SPELLED = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|thousand|dozen)\b", re.I
)
HYPE = re.compile(r"\b(amazing|powerful|simply|magic|blazing|of course|obviously|easy|easily)\b", re.I)


class Told:
    """A story, replayed: the engine after K actions, and what the action before K did."""

    def __init__(self, story: Story) -> None:
        simulation = simulation_of(story.scenario)
        self.story = story
        self.runs = [Run.of(simulation.fork())]
        self.outcomes: list[Outcome | None] = [None]
        for action in story.scenario.actions:
            self.outcomes.append(simulation.apply(action))
            check(simulation)
            self.runs.append(Run.of(simulation.fork()))

    def run(self, at: int) -> Run:
        """The engine after `at` actions."""
        return self.runs[at]

    def outcome(self, at: int) -> Outcome:
        """Of the action that led to `at`."""
        outcome = self.outcomes[at]
        assert outcome is not None
        return outcome

    def trace(self, at: int) -> StepTrace:
        return trace(self.outcome(at))

    def tokens(self, at: int) -> dict[str, int]:
        """Scheduled in the step that led to `at`."""
        return scheduled(self.outcome(at))

    def call(self, at: int, request: str) -> CallTrace:
        """The last call for a request in the step that led to `at`."""
        return [call for call in self.outcome(at).calls if call.request == request][-1]

    def hit(self, at: int, request: str) -> tuple[int, list[int]]:
        """Tokens and blocks of the hit with which a request was admitted."""
        call = self.call(at, request)
        assert call.new_blocks is not None
        return call.new_comp, list(call.hit_blocks[0]) if call.hit_blocks else []

    def prompt(self, at: int, request: str) -> int:
        """Tokens in a prompt."""
        return count_of(self.run(at).sim.scripts[request].prompt)

    def hashed(self, at: int) -> list[int]:
        """Every block that carries a hash, by id."""
        run = self.run(at)
        return [block for block in range(1, run.pool.num_blocks) if run.hashed(block)]

    def usable(self) -> int:
        return self.story.scenario.config.num_blocks - 1

    def unchanged(self, at: int) -> bool:
        """Whether the action that led to `at` was a step that changed nothing."""
        return self.run(at).state == self.run(at - 1).state and not (self.tokens(at) or self.outcome(at).events)

    def never_changes(self, steps: int = 20) -> bool:
        """Whether further steps at the end leave everything as it is."""
        run = self.runs[-1].fork()
        before = run.state
        return all(not scheduled(run.step()) and run.state == before for _ in range(steps))

    @property
    def said(self) -> list[list[float]]:
        """The numbers in the notes, stop by stop."""
        return [numbers(stop.note) for stop in self.story.stops]


@cache
def told(slug: str) -> Told:
    return Told(STORIES[slug])


def numbers(text: str) -> list[float]:
    """The numbers in a sentence, in order."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) ", text)


# ---- prefix cache


def test_cached_prompt_computes_a_block_again() -> None:
    tale = told("cached-prompt")
    hits = {name: tale.hit(at, name)[0] for name, at in (("ada", 4), ("bo", 6), ("cy", 8))}
    prompts = {name: tale.prompt(8, name) for name in hits}
    assert prompts == {"ada": 16, "bo": 32, "cy": 33}
    assert hits == {"ada": 0, "bo": 16, "cy": 32}
    assert [tale.tokens(at)[name] for at, name in ((4, "ada"), (6, "bo"), (8, "cy"))] == [16, 16, 1]
    assert tale.hashed(2) == [1, 2, 3]
    assert tale.run(6).listed(tale.run(6).hashes("bo")[1]) == [2, 6]
    limit = tale.trace(4).lookups[0].limit
    assert limit is not None
    assert limit // 16 == 0
    assert tale.said == [
        tale.hashed(2),
        [prompts["ada"], limit, hits["ada"]],
        [prompts["bo"], hits["bo"], tale.tokens(6)["bo"], tale.run(6).table("bo")[-1]],
        [prompts["cy"], hits["cy"], tale.tokens(8)["cy"]],
    ]


def test_same_step_sharing_needs_no_computed_block() -> None:
    tale = told("same-step-sharing")
    assert tale.hashed(2) == []
    assert tale.tokens(3) == {"ada": 74, "bo": 12}
    assert tale.hit(3, "bo") == (64, [1, 2, 3, 4])
    assert tale.hit(5, "cy") == (64, [1, 2, 3, 4])
    assert tale.run(3).pool.ref_cnt[1] == 2
    tokens, blocks = tale.hit(5, "cy")
    assert tale.said == [
        [tale.prompt(2, "ada"), tale.prompt(2, "bo")],
        [*tale.tokens(3).values(), tale.hit(3, "bo")[0]],
        [1, tale.run(3).pool.ref_cnt[1]],
        [tokens, *blocks],
    ]


def test_four_owners_hold_one_block() -> None:
    tale = told("four-owners")
    names = ["ada", "bo", "cy", "dee"]
    tables = [tale.run(5).table(name) for name in names]
    assert tables == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 4, 7], [1, 2, 3, 4, 8]]
    assert [list(tale.run(at).pool.ref_cnt[1:6]) for at in (5, 6)] == [[4, 4, 4, 4, 1], [3, 3, 3, 3, 0]]
    assert tale.run(5).history.holders[1] == tuple(names)
    assert tale.run(6).running == names[1:]
    assert set(tale.run(6).queue) - set(tale.run(5).queue) == {5}
    assert tale.run(6).queue[0] == 5
    entries, held = sum(map(len, tables)), len(set().union(*tables))
    assert (entries, held) == (20, 8)
    assert held == tale.usable() - tale.run(5).free
    assert tale.said == [
        [tale.prompt(4, name) for name in names],
        [1, tale.run(5).pool.ref_cnt[1]],
        [entries, held],
        [1, tale.run(6).pool.ref_cnt[1]],
        tale.run(6).queue[:1],
    ]


def test_duplicates_are_hit_oldest_first_even_when_free() -> None:
    tale = told("duplicates")
    same = tale.run(3).hashes("bo")[1]
    assert (tale.run(3).table("ada"), tale.run(3).table("bo")) == ([1, 2], [1, 3])
    assert [tale.run(at).listed(same) for at in (3, 4, 6)] == [[2, 3]] * 3
    assert tale.run(4).queue == [4, 6, 7, 8, 2]
    assert tale.run(6).table("bo") == [1, 3, 5]
    assert tale.hit(6, "cy") == (32, [1, 2])
    limit = tale.trace(3).lookups[1].limit
    assert limit == 31
    computed = tale.call(3, "bo").popped[0].block
    assert tale.said == [
        [limit, tale.prompt(3, "bo"), *tale.hit(3, "bo")[1], computed, tale.run(3).listed(same)[0]],
        [tale.run(4).queue[-1], tale.run(4).table("bo")[1]],
        [*tale.hit(6, "cy")[1], tale.run(6).table("bo")[1]],
    ]


def test_cache_salt_parts_equal_prompts() -> None:
    tale = told("cache-salt")
    salts = [action.cache_salt for action in tale.story.scenario.actions if isinstance(action, AddRequest)]
    assert salts == ["red", "blue", "red"]
    assert [tale.hit(4, "bo"), tale.hit(6, "cy")] == [(0, []), (48, [1, 2, 3])]
    ada, bo, cy = (tale.run(6).hashes(name) for name in ("ada", "bo", "cy"))
    assert ada == cy
    assert not set(ada) & set(bo)
    start = min(tale.prompt(6, name) - own for name, own in (("ada", 4), ("bo", 5), ("cy", 6)))
    assert start == 48
    assert tale.said == [
        [tale.tokens(2)["ada"]],
        [start, tale.hit(4, "bo")[0]],
        [tale.hit(6, "cy")[0], *tale.hit(6, "cy")[1]],
    ]


def test_next_turn_hits_prompt_and_answer() -> None:
    tale = told("next-turn")
    assert tale.hashed(2) == [1, 2]
    assert [tale.run(at).hashed(3) for at in (5, 6)] == [False, True]
    assert tale.run(7).queue[-3:] == [3, 2, 1]
    said_by_chat = count_of(tale.run(7).sim.scripts["chat"].so_far())
    assert tale.hit(9, "reply") == (48, [1, 2, 3])
    assert tale.tokens(9) == {"reply": 16}
    assert tale.prompt(9, "reply") - said_by_chat == 14
    assert tale.said == [
        [tale.prompt(2, "chat"), len(tale.run(2).table("chat")), len(tale.hashed(2))],
        [tale.run(6).table("chat")[2]],
        [said_by_chat, *tale.run(7).queue[-3:]],
        [tale.prompt(9, "reply"), tale.hit(9, "reply")[0], tale.tokens(9)["reply"]],
    ]


def test_newest_token_leaves_its_block_without_a_hash() -> None:
    tale = told("newest-token")
    said_by_ada = count_of(tale.run(9).sim.scripts["ada"].so_far())
    computed = tale.trace(9).sampled[0].computed
    assert (said_by_ada, computed) == (48, 47)
    assert said_by_ada % 16 == 0
    assert tale.hashed(9) == [1, 2]
    assert tale.run(9).queue == [3, 4, 5, 6, 7, 8, 2, 1]
    assert tale.hit(11, "ada") == (32, [1, 2])
    assert tale.said == [
        [tale.prompt(2, "ada"), len(tale.run(2).table("ada")), len(tale.hashed(2))],
        [said_by_ada, computed, tale.run(9).queue[0]],
        [tale.hit(11, "ada")[0], said_by_ada],
    ]


def test_reset_is_refused_while_a_request_runs() -> None:
    tale = told("reset-refused")
    assert [tale.outcome(at).reset for at in (3, 5)] == [False, True]
    assert tale.run(3).state == tale.run(2).state
    assert tale.hashed(4) == tale.hashed(3) == [1, 2, 3]
    assert tale.hashed(5) == []
    assert tale.run(5).queue == tale.run(4).queue
    assert tale.hit(7, "bo") == (0, [])
    assert tale.prompt(7, "bo") - 6 == 48
    assert tale.said == [
        [len(tale.run(3).table("ada")), len(tale.hashed(3))],
        [len(tale.hashed(4)) - len(tale.hashed(5))],
        [48, tale.hit(7, "bo")[0]],
    ]


# ---- eviction


def test_usage_is_zero_while_the_cache_is_full() -> None:
    tale = told("usage-zero")
    assert [tale.run(at).pool.get_usage() for at in (2, 3)] == [1.0, 0.0]
    assert tale.run(3).queue == [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert len(tale.hashed(3)) == tale.run(3).free == 10
    assert tale.hit(5, "bo") == (128, [1, 2, 3, 4, 5, 6, 7, 8])
    lost = [popped.block for popped in tale.call(5, "bo").popped if popped.lost]
    assert lost == [10, 9]
    assert len(removed(tale.outcome(5))) == 2
    assert tale.said == [
        [len(tale.run(2).table("ada")), tale.usable(), 100 * tale.run(2).pool.get_usage()],
        [100 * tale.run(3).pool.get_usage(), len(tale.hashed(3)), tale.run(3).free],
        [tale.hit(5, "bo")[0], len(tale.hit(5, "bo")[1])],
        [len(tale.call(5, "bo").popped), *lost],
    ]


def test_free_queue_has_unhashed_blocks_in_front() -> None:
    tale = told("free-queue-order")
    assert tale.run(2).queue == [1, 2, 3, 4, 5, 6, 7, 8]
    queue = tale.run(3).queue
    assert queue == [5, 3, 6, 7, 8, 2, 1, 4]
    assert tale.hashed(3) == [1, 2, 4]
    taken = [popped.block for popped in tale.call(5, "cy").popped]
    assert taken == [5, 3]
    assert removed(tale.outcome(5)) == []
    assert tale.said == [[tale.run(2).free], queue[:2] + queue[-3:], taken + queue[2:5]]


def test_tail_first_leaves_the_beginning_of_a_chain() -> None:
    tale = told("tail-first")
    assert tale.run(2).queue == [5, 4, 3, 2, 1]
    popped = tale.call(4, "bo").popped
    assert [(one.block, len(one.lost)) for one in popped] == [(5, 0), (4, 1), (3, 1)]
    assert tale.hit(6, "ada") == (32, [1, 2])
    tokens, blocks = tale.hit(6, "ada")
    assert tale.said == [
        tale.run(2).queue,
        [one.block for one in popped] + [one.block for one in popped if one.lost],
        [tale.prompt(6, "ada"), tokens, *blocks],
    ]


# ---- admission


def test_block_usage_is_not_token_occupancy() -> None:
    tale = told("block-usage")

    def computed(at: int) -> int:
        return sum(tale.run(at).comp(name) for name in ("ada", "bo", "cy"))

    slots = tale.usable() * 16
    assert (tale.run(4).pool.get_usage(), computed(4), slots) == (0.6, 51, 160)
    assert [tale.run(4).table(name) for name in ("ada", "bo", "cy")] == [[1, 2], [3, 4], [5, 6]]
    call = tale.call(6, "dee")
    assert call.gate is not None
    assert (call.gate.needed, call.gate.free, call.refused_by) == (5, 4, "gate")
    assert slots - computed(6) == 106
    assert tale.run(6).waiting == ["dee"]
    assert tale.said == [
        [100 * tale.run(4).pool.get_usage(), computed(4), slots],
        [2, tale.run(4).comp("ada") - 16, 16],
        [tale.prompt(6, "dee"), slots - computed(6), call.gate.needed, call.gate.free],
    ]


def test_watermark_spares_the_lonely_and_the_running() -> None:
    tale = told("watermark")
    config = tale.story.scenario.config
    assert (config.watermark, config.watermark_blocks) == (0.25, 2)
    ada, refused, back = tale.call(2, "ada"), tale.call(7, "cy"), tale.call(10, "cy")
    assert ada.gate is not None
    assert refused.gate is not None
    assert back.gate is not None
    assert (ada.gate.needed, ada.gate.headroom, ada.gate.free, ada.refused_by) == (8, 0, 8, None)
    assert (refused.gate.needed, refused.gate.headroom, refused.gate.free, refused.refused_by) == (2, 2, 3, "gate")
    grown = tale.call(8, "bo")
    assert (grown.watermark_blocks, grown.popped[0].block, grown.free_after) == (0, 3, 2)
    assert (back.gate.headroom, back.refused_by) == (0, None)
    assert tale.run(9).running == []
    assert tale.said == [
        [ada.gate.headroom, ada.gate.needed],
        [refused.gate.needed, refused.gate.headroom, refused.gate.free],
        [grown.popped[0].block, grown.free_after],
        [back.gate.headroom],
    ]


def test_head_of_line_blocks_a_request_that_would_fit() -> None:
    tale = told("head-of-line")
    bo = tale.call(5, "bo")
    assert bo.gate is not None
    assert (bo.gate.needed, bo.gate.free, bo.refused_by) == (5, 4, "gate")
    for at in (5, 6, 7):
        assert [lookup.request for lookup in tale.trace(at).lookups] == ["bo"]
        assert [call.request for call in tale.outcome(at).calls] == ["ada", "bo"]
        assert [(halt.reason, halt.request) for halt in tale.trace(at).halts] == [("no_blocks", "bo")]
    assert tale.run(7).running == []
    assert tale.tokens(8) == {"bo": 80, "cy": 10}
    gate = tale.call(8, "cy").gate
    assert gate is not None
    assert gate.needed == 1 <= bo.gate.free
    assert tale.said == [[bo.gate.needed, bo.gate.free], [gate.needed], []]


def test_prompt_too_large_waits_for_ever() -> None:
    tale = told("prompt-too-large")
    gate = tale.call(3, "novel").gate
    assert gate is not None
    assert (gate.needed, gate.free, tale.usable()) == (9, 8, 8)
    assert [call.request for at in (3, 4) for call in tale.outcome(at).calls] == ["novel", "novel"]
    assert tale.unchanged(3)
    assert tale.unchanged(4)
    assert tale.run(4).waiting == ["novel", "ada"]
    assert tale.tokens(6) == {"ada": 10}
    taken = tale.call(6, "ada").popped
    assert len(taken) == 1
    assert tale.said == [[gate.needed, gate.free], [len(taken)], [len(taken)]]


def test_long_prefill_threshold_is_off_for_one_alone() -> None:
    tale = told("long-prefill-threshold")
    assert [tale.trace(at).threshold for at in (2, 4)] == [0, 32]
    assert tale.tokens(2) == {"ada": 100}
    chunks = [tale.tokens(at)["bo"] for at in (4, 5, 6, 7)]
    assert chunks == [32, 32, 32, 4]
    assert [chunk.cut_by for chunk in tale.trace(4).chunks] == [None, "threshold"]
    assert tale.said == [[tale.tokens(2)["ada"]], [chunks[0], tale.prompt(4, "bo")], [len(chunks), *chunks]]


# ---- preemption


def test_preemption_and_the_hit_on_coming_back() -> None:
    tale = told("preemption")
    held = sum(len(tale.run(4).table(name)) for name in ("ada", "bo", "cy"))
    assert (held, tale.run(4).free) == (7, 0)
    assert preempted(tale.outcome(5)) == ["cy"]
    assert tale.trace(5).preemptions[0].by == "ada"
    assert tale.call(5, "ada").popped[0].block == tale.run(4).table("cy")[-1] == 7
    assert not tale.run(4).hashed(7)
    refused = tale.call(6, "cy")
    assert refused.gate is not None
    assert (refused.new_comp, refused.gate.needed, refused.gate.free, refused.refused_by) == (32, 3, 2, "gate")
    assert tale.hit(7, "cy") == (32, [5, 6])
    assert tale.tokens(7)["cy"] == 9
    stats = tale.outcome(7).prefix_cache
    assert (stats.preempted_requests, stats.preempted_queries, stats.preempted_hits) == (1, 41, 32)
    assert (stats.requests, stats.queries, stats.hits) == (0, 0, 0)
    assert tale.said == [
        [held],
        [tale.call(5, "ada").popped[0].block],
        [refused.new_comp, tale.run(6).request("cy").num_tokens, refused.gate.needed, refused.gate.free],
        [*tale.hit(7, "cy")[1], tale.tokens(7)["cy"]],
    ]


def test_priority_victim_is_not_the_last_one() -> None:
    tale = told("priority-victim")
    assert tale.run(5).running == ["batch", "chat", "bot"]
    victim = tale.trace(6).preemptions[0]
    assert (victim.victim, victim.by, victim.undone) == ("batch", "chat", 1)
    assert tale.tokens(6) == {"chat": 1, "bot": 1}
    assert tale.run(6).table("chat") == [4, 5, 3]
    assert tale.said == [
        [tale.run(5).request(name).priority for name in tale.run(5).running],
        [victim.undone],
        [tale.call(6, "chat").popped[0].block],
    ]
    scenario = tale.story.scenario
    fcfs = Told(replace(tale.story, scenario=replace(scenario, config=replace(scenario.config, policy="fcfs"))))
    assert fcfs.run(5).running == tale.run(5).running
    assert [preemption.victim for preemption in fcfs.trace(6).preemptions] == ["bot"]


def test_gate_off_ends_in_a_livelock() -> None:
    tale = told("gate-off")
    first = tale.call(2, "ada")
    assert first.gate is None
    assert first.check is not None
    assert (first.new, first.check.needed) == (32, 2)
    victim = tale.trace(4).preemptions[0]
    assert (victim.victim, victim.by) == ("ada", "ada")
    assert [halt.reason for halt in tale.trace(4).halts] == ["self_preempted", "preempted"]
    refused = tale.call(5, "ada")
    assert refused.check is not None
    terms = refused.check.terms[0]
    assert (refused.new_comp, terms.idle_hits, terms.fresh) == (64, 4, 1)
    assert (refused.check.needed, refused.check.free, refused.refused_by) == (5, 4, "check")
    assert tale.unchanged(5)
    assert tale.unchanged(6)
    assert tale.never_changes()
    assert tale.said == [
        [tale.prompt(2, "ada"), terms.need, tale.usable(), first.check.needed, first.new],
        [],
        [refused.new_comp, terms.idle_hits, terms.fresh, refused.check.needed, refused.check.free],
        [],
    ]


# ---- drafts


def test_drafts_are_never_cached() -> None:
    tale = told("drafts-not-cached")
    assert tale.prompt(2, "ada") == tale.tokens(2)["ada"] == 14
    proposed = len(tale.run(2).request("ada").spec_token_ids)
    sampled = tale.trace(3).sampled[0]
    assert (sampled.drafts, sampled.accepted, sampled.computed) == (3, 3, 18)
    assert [tale.run(at).hashed(1) for at in (3, 4)] == [False, True]
    assert tale.run(3).table("ada") == [1, 2]
    assert tale.said == [
        [tale.tokens(2)["ada"], proposed],
        [tale.tokens(3)["ada"], sampled.drafts, sampled.computed, tale.run(3).table("ada")[0]],
        tale.hashed(4),
    ]


def test_rejected_drafts_keep_their_blocks() -> None:
    tale = told("rejected-drafts")
    proposed = len(tale.run(2).request("ada").spec_token_ids)
    sampled = tale.trace(3).sampled[0]
    assert (sampled.drafts, sampled.accepted, sampled.computed) == (3, 0, 31)
    assert tale.run(3).request("ada").num_tokens == 32  # for which 2 blocks would be enough
    assert tale.run(3).table("ada") == [1, 2, 3]
    taken = tale.call(3, "ada").popped[0].block
    assert tale.call(4, "ada").popped == ()
    assert tale.run(4).table("ada")[-1] == taken == 3
    assert tale.said == [
        [tale.prompt(2, "ada"), len(tale.run(2).table("ada")), proposed],
        [tale.tokens(3)["ada"], taken, sampled.drafts, tale.run(3).comp("ada"), len(tale.run(3).table("ada"))],
        [taken],
    ]


def test_eagle_drops_the_last_block_it_finds() -> None:
    tale = told("eagle-drop")
    ada, bo = tale.trace(4).lookups[0].searches[0], tale.trace(6).lookups[0].searches[0]
    assert (ada.found, ada.dropped, ada.num_tokens) == (3, True, 32)
    assert (bo.found, bo.dropped, bo.num_tokens) == (1, True, 0)
    assert [tale.hit(4, "ada"), tale.hit(6, "bo")] == [(32, [1, 2]), (0, [])]
    same = tale.run(4).listed(tale.run(4).hashes("ada")[2])
    assert same == [3, 4]
    assert tale.said == [
        [*tale.hashed(2), 16 * len(tale.hashed(2))],
        [ada.found, tale.hit(4, "ada")[0]],
        same[::-1],
        [tale.prompt(6, "bo") - 3, bo.found, tale.hit(6, "bo")[0]],
    ]
    scenario = tale.story.scenario
    without = Told(replace(tale.story, scenario=replace(scenario, config=replace(scenario.config, use_eagle=False))))
    assert [without.hit(4, "ada")[0], without.hit(6, "bo")[0]] == [48, 16]


# ---- windows and Mamba


def test_window_hit_has_holes() -> None:
    tale = told("window-holes")
    gone = [block for given in tale.call(4, "ada").released for block in given.blocks]
    table = tale.run(4).table("ada")
    assert (gone, table) == ([2, 1], [0, 0, 3, 4, 5, 6])
    assert set(gone) <= set(tale.run(4).queue)
    again = tale.call(5, "ada").popped[0]
    assert (again.block, len(again.lost)) == (2, 1)
    tokens, hit = tale.hit(7, "bo")
    assert (tokens, hit) == (112, [0, 0, 0, 0, 0, 6, 2])
    second = tale.run(7).hashes("bo")[1]
    assert tale.run(6).listed(second) == []
    assert tale.run(7).table("bo")[0] == 0
    config = tale.story.scenario.config
    assert config.groups[0].sliding_window == 32
    assert tale.said == [
        [*gone, table.count(0)],
        [again.block, again.block],
        [tokens, *(block for block in hit if block), hit.count(0)],
    ]


def test_partial_hit_copies_a_block() -> None:
    tale = told("partial-hit")
    config = tale.story.scenario.config
    assert (config.hash_size, config.partial_hits) == (4, True)
    moved = tale.trace(4).copies[0]
    assert (moved.source, moved.copy, moved.moved) == (4, 5, True)
    run = tale.run(4)
    assert list(run.manager.get_blocks("ada")[1]) == [0, 4]
    assert run.pool.block_hash_num_tokens[5] == 24
    assert (run.hashed(4), run.hashed(5)) == (False, True)
    call = tale.call(6, "bo")
    assert (call.new_comp, call.hit_blocks) == (24, ((1, 3), (0, 5)))
    copies = [(copy.source, copy.copy) for copy in tale.trace(6).copies]
    assert copies == [(3, 6), (5, 7)]
    assert [tale.run(6).history.holders[block] for block in (3, 6)] == [("ada",), ("bo",)]
    assert tale.said == [
        [moved.source, moved.source, moved.copy, run.pool.block_hash_num_tokens[5]],
        [call.new_comp, tale.prompt(6, "bo"), *copies[0], *copies[1]],
        [tale.run(6).table("ada")[1], tale.run(6).table("bo")[1]],
    ]


# ---- every story


every_story = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


def test_the_gallery_lists_every_file_once_and_in_order() -> None:
    slugs = [slug for listed in TOPICS.values() for slug in listed]
    assert list(STORIES) == slugs
    assert sorted([*slugs, LESSON]) == sorted(path.stem for path in FOLDER.glob("*.json"))
    assert len(slugs) >= 18
    assert len({story.title for story in STORIES.values()}) == len(slugs)
    assert load_stories() == tuple(STORIES.values())


def test_every_story_has_its_own_test_in_the_same_order() -> None:
    assert re.findall(r"= told\(\"([a-z-]+)\"\)\n", Path(__file__).read_text("utf-8")) == list(STORIES)


@every_story
def test_a_scenario_comes_back_from_json_and_stays_under_the_limits(story: Story) -> None:
    scenario = story.scenario
    assert parse_scenario(scenario.to_json()) == scenario
    bare = replace(
        scenario, source={}, actions=tuple(replace(action, source={}) for action in scenario.actions)
    ).to_json()
    assert parse_scenario(bare) == scenario
    SERVER_LIMITS.check(scenario)
    assert 5 <= len(scenario.actions) <= 25
    assert 5 <= scenario.config.num_blocks <= 41
    assert scenario.config.block_size == EngineConfig(2).block_size
    assert isinstance(scenario.actions[-1], Step)


@every_story
def test_a_stop_exists_and_selects_what_exists_there(story: Story) -> None:
    tale = told(story.slug)
    seen = [(stop.at, stop.select) for stop in story.stops]
    assert len(set(seen)) == len(seen)
    for stop in story.stops:
        kind, _, name = stop.select.partition(":")
        if kind == "block":
            assert 1 <= int(name) <= tale.usable()
        elif kind == "request":
            assert name in tale.run(stop.at).scheduler.requests


@every_story
def test_the_words_are_plain_sentences(story: Story) -> None:
    assert len(story.title) <= 32
    assert 2 <= len(sentences(story.story)) <= 3
    assert len(sentences(story.look_at)) == 1
    assert len(story.story) <= 240
    for text in (story.story, story.look_at, *(stop.note for stop in story.stops)):
        assert text == " ".join(text.split())
        assert text.endswith(".")
        assert text.isascii()
        assert not re.search(r"[!?;()<>&]| - |\.\.", text)
        assert not SPELLED.search(text), "numbers stand in digits, so that they are checked"
        assert not HYPE.search(text)
    for stop in story.stops:
        assert len(sentences(stop.note)) == 1
        assert len(stop.note) <= 130


@every_story
def test_a_story_uses_no_number_that_its_notes_and_config_do_not_have(story: Story) -> None:
    config = story.scenario.config
    known = {number for stop in story.stops for number in numbers(stop.note)}
    known |= {config.num_blocks, config.num_blocks - 1, config.block_size, config.watermark, config.watermark_blocks}
    known |= {config.hash_size, config.long_prefill_token_threshold}
    known |= {group.sliding_window or 0 for group in config.groups}
    prompts = [action.prompt for action in story.scenario.actions if isinstance(action, AddRequest)]
    known |= {part.tokens for prompt in prompts for part in prompt if isinstance(part, (Own, Shared))}
    assert set(numbers(" ".join((story.story, story.look_at)))) <= known


@every_story
def test_the_words_name_only_requests_of_the_scenario(story: Story) -> None:
    """A name in one story that belongs to another one is a slip of the pen."""
    everybody = {name for other in STORIES for name in told(other).runs[-1].sim.scripts}
    own = set(told(story.slug).runs[-1].sim.scripts)
    texts = " ".join((story.story, story.look_at, *(stop.note for stop in story.stops)))
    named = set(re.findall(r"[a-z_]+", texts)) & everybody
    assert named <= own
    assert named
