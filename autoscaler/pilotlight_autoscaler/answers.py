"""Answers to who asks why: from the decisions that are remembered, on the fleet as they saw it. Pure."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.world import World
from pilotlight_core.model.explaining import ExplainPlacement, PlacementTold
from pilotlight_placement.explain import explain, why_not
from pilotlight_placement.record import NoFit, Placement
from pilotlight_placement.telling import decision_told

Named = tuple[str, Placement | NoFit]


def answer(world: World, asked: ExplainPlacement, at: float) -> PlacementTold:
    """The decisions that the question is about, in sentences and as data."""
    decisions = _about(world, asked)
    if not decisions:
        return PlacementTold(found=False, lines=(_forgotten(world, asked),))
    lines: list[str] = []
    for container, outcome in decisions:
        lines += explain(outcome, container or asked.function or outcome.record.ask.function)
    if asked.function in world.levels:
        lines.append(f"{world.levels[asked.function]}.")
    if asked.node:
        container, outcome = decisions[-1]
        subject = container or outcome.record.ask.function
        lines = [f"Why {subject} is not on {asked.node}:", *why_not(world.fleet(at), outcome, asked.node)]
        decisions = decisions[-1:]
    told = [decision_told(outcome, container) for container, outcome in decisions]
    return PlacementTold(found=True, lines=tuple(lines), decisions=msgspec.json.encode(told))


def _about(world: World, asked: ExplainPlacement) -> list[Named]:
    if asked.container:
        outcome = world.decisions.of_container(asked.container)
        return [(asked.container, outcome)] if outcome else []
    if asked.function:
        return world.decisions.of_function(asked.function)
    latest = world.decisions.latest()
    return [latest] if latest else []


def _forgotten(world: World, asked: ExplainPlacement) -> str:
    if asked.container and world.state(asked.container) is not None:
        return f"{asked.container} runs, but why it was put there is not remembered: another controller decided it."
    if asked.container:
        return f"Nothing is remembered of a container {asked.container}."
    if asked.function:
        return f"Nothing is remembered of {asked.function}: none of its containers was placed by this controller."
    return "Nothing was decided yet."
