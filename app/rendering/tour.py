"""A story beside the workspace: its stops, and which of them this moment is."""

from __future__ import annotations

from app.contexts import Tour, TourStop, View
from app.gallery import Stop, Story


def tour(story: Story, view: View, select: str) -> Tour:
    """The story at a moment; `select` tells apart stops at the same moment."""
    stops, at = story.stops, view.at
    here = [place for place, stop in enumerate(stops) if stop.at == at]
    current = next((place for place in here if stops[place].select == select), here[0] if here else None)
    if current is not None:
        back, ahead = stops[:current], stops[current + 1 :]
    else:
        back = tuple(stop for stop in stops if stop.at < at)
        ahead = stops[len(back) :]
    told = (
        TourStop(stop.at, stop.select, stop_query(stop), stop.note, place == current)
        for place, stop in enumerate(stops)
    )
    return Tour(
        story.story,
        story.look_at,
        tuple(told),
        f"{len(stops)} stops" if current is None else f"{current + 1} of {len(stops)}",
        stop_query(back[-1]) if back else None,
        stop_query(ahead[0]) if ahead else None,
    )


def stop_query(stop: Stop) -> str:
    """The query of a stop's moment and selection."""
    return f"?branch=main&at={stop.at}" + (f"&sel={stop.select}" if stop.select else "")


def _stop(stop: Stop, *, current: bool) -> TourStop:
    return TourStop(stop.at, stop.select, stop_query(stop), stop.note, current)
