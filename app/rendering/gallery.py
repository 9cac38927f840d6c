"""The gallery's pictures and words, read from the engine. They never change while the program runs: made once."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from app.contexts import CallPart, CallPicture, CallStop, GalleryContext, MiniCell, StoryCard, TopicLink
from app.gallery import TOPICS, Stop, Story, load_lesson, load_stories
from app.rendering.miniature import cell, laid_out, miniature
from app.rendering.moment import Moment
from app.rendering.tour import stop_query
from app.services.blank import blank_scenario
from app.services.session import Branch
from engine.call_trace import CallTrace, FitTest


def gallery(topic: str) -> GalleryContext:
    """The whole gallery, or the stories of one topic by its key; an unknown key stands for all."""
    every = _gallery()
    chosen = next((link.key for link in every.topics if link.key == topic), "")
    topics = tuple(replace(link, chosen=link.key == chosen) for link in every.topics)
    cards = tuple(replace(card, shown=chosen in ("", card.key)) for card in every.cards)
    return replace(every, topics=topics, cards=cards)


def topic_key(name: str) -> str:
    """A topic in an address: "Prefix cache" is "prefix-cache"."""
    return re.sub(r"[^a-z]+", "-", name.lower())


@cache
def _gallery() -> GalleryContext:
    lesson, stories = load_lesson(), load_stories()
    topics = [TopicLink("All", "", len(stories), chosen=True)]
    topics += [TopicLink(name, topic_key(name), len(slugs), chosen=False) for name, slugs in TOPICS.items()]
    usable = blank_scenario().config.num_blocks - 1
    empty = laid_out([MiniCell(None, "empty")] * usable, f"{usable} empty blocks", 560, 140)
    return GalleryContext(
        _card(lesson), _picture(lesson), empty, tuple(topics), tuple(_card(story) for story in stories)
    )


def _card(story: Story) -> StoryCard:
    config = story.scenario.config
    size = f"{config.num_blocks} blocks of {config.block_size} tokens"
    picture = miniature(_moment(story, story.telling))
    href = f"story/{story.slug}{stop_query(story.telling)}"
    return StoryCard(
        story.slug, story.topic, topic_key(story.topic), story.title, story.story, href, size, picture, shown=True
    )


def _moment(story: Story, stop: Stop) -> Moment:
    scenario = story.scenario
    branch = Branch(scenario.config, scenario.actions)
    branch.advance(branch.head, stop.at, 60)
    return Moment(branch.head, branch.columns, branch.actions, scenario.title, "")


# ---- the lesson's call


def _picture(story: Story) -> CallPicture:
    """The call for the request that the telling stop selects."""
    stop = story.telling
    moment, name = _moment(story, stop), stop.select.partition(":")[2]
    assert moment.applied is not None
    call = next(call for call in moment.applied.trace.calls if call.request == name)
    size = story.scenario.config.block_size
    known = moment.scheduler.requests[name].num_tokens
    computed = call.comp + call.new_comp + call.ext_comp + call.new
    table = [cell(moment, block) for block in moment.manager.get_blocks(name)[0]]
    table[-1] = replace(table[-1], changed=True)
    later = [MiniCell(None, "later")] * (-(-known // size) - len(table))
    parts, ticks, start = [], [], 0
    lengths = {"comp": call.comp, "new_comp": call.new_comp, "ext_comp": call.ext_comp, "new": call.new}
    for kind, tokens in {**lengths, "lookahead": call.lookahead, "later": known - computed}.items():
        if tokens:
            parts.append(CallPart(kind, tokens, start))
        else:
            ticks.append((kind, start))
        start += tokens
    return CallPicture(
        name,
        moment.number(name) % 8 + 1,
        tuple(parts),
        tuple(ticks),
        known,
        size,
        (*table, *later),
        len(call.touched),
        computed % size or size,
        _path(call),
    )


def _path(call: CallTrace) -> tuple[CallStop, ...]:
    assert call.gate is not None
    assert call.check is not None
    return (
        CallStop("Gate", _test(call.gate), is_test=True),
        CallStop("Release", str(call.released_count), is_test=False),
        CallStop("Count", str(call.check.needed), is_test=False),
        CallStop("Check", _test(call.check), is_test=True),
        CallStop("Touch", str(len(call.touched)), is_test=False),
        CallStop("Pop", str(len(call.popped)), is_test=False),
        CallStop("Hash", str(sum(len(one.blocks) for one in call.registered)), is_test=False),
    )


def _test(test: FitTest) -> str:
    return f"{test.needed} + {test.headroom} ≤ {test.free}"
