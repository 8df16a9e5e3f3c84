"""Answers to `ExplainPlacement`: from recorded decisions, on the fleet as it was then. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.model.api.placement_api import DecisionInfo, DecisionStatus
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, PlacementReply
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_core.model.units import duration_text
from pilotlight_placement.explain.api_views import decision_info
from pilotlight_placement.explain.decision_journal import PlacementDecision
from pilotlight_placement.explain.explanation import reasons, why_not
from pilotlight_placement.search.decision_record import Placement

WAITS_S = 2.0
"""After this without a refusal the version no longer waits, unless it is remembered as one without a place."""
MOST_TOLD = 8
"""Latest containers of a function that are described; the others are counted."""
NOW = (DecisionStatus.STARTING, DecisionStatus.RUNNING, DecisionStatus.LEAVING, DecisionStatus.WAITING)
VERBS = {
    DecisionStatus.STARTING: "starts on",
    DecisionStatus.RUNNING: "runs on",
    DecisionStatus.LEAVING: "is leaving",
    DecisionStatus.GONE: "is gone; it was on",
}
STARTS = (ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING)


def answer(
    world: World, asked: ExplainPlacement, at: float, now: float, ref_of: Callable[[str], str] = str
) -> PlacementReply:
    """The decisions about the subject of the question, in sentences and as data.

    `at` is an instant of the world's clock, `now` the same in unix seconds; `ref_of` returns the ref of a version's id.
    """
    decisions = _about(world, asked, at)
    if asked.node:
        decisions = decisions[-1:]
        lines = [line for each in decisions for line in _why_not(world, each, asked.node, at)]
    elif asked.function:
        lines = [*_now(world, asked.function, decisions, at, now, ref_of), *_before(world, decisions, at)]
    else:
        lines = [line for each in decisions for line in _decision_lines(world, each, at)]
    if not lines:
        return PlacementReply(found=False, lines=(_nothing_known(world, asked),))
    data = [_data(world, each, at, now) for each in decisions]
    return PlacementReply(found=True, lines=tuple(lines), decisions=msgspec.json.encode(data))


def decision_status(world: World, decided: PlacementDecision, at: float) -> DecisionStatus:
    """What became of a decision."""
    name = decided.container
    if not isinstance(decided.outcome, Placement):
        waits = at - decided.at <= WAITS_S or any(
            demand.version in world.refusals for demand in world.demands_of(decided.function, at)
        )
        return DecisionStatus.WAITING if waits else DecisionStatus.OVER
    state = world.state(name)
    if state is None:
        coming = name in world.pending or any(bind.container == name for _, bind in world.executions.starts())
        return DecisionStatus.STARTING if coming else DecisionStatus.GONE
    if state is ContainerState.GONE:
        return DecisionStatus.GONE
    if state in (ContainerState.DRAINING, ContainerState.PARKED) or name in world.draining:
        return DecisionStatus.LEAVING
    return DecisionStatus.STARTING if state in STARTS else DecisionStatus.RUNNING


def _about(world: World, asked: ExplainPlacement, at: float) -> list[PlacementDecision]:
    if asked.container:
        found = world.decisions.of_container(asked.container)
        return [found] if found else []
    if not asked.function:
        latest = world.decisions.latest()
        return [latest] if latest else []
    there = [each.id for _, each in _containers(world, asked.function, at)]
    there += [name for name, each in world.pending.items() if each.bind.function == asked.function]
    remembered = [found for name in there if (found := world.decisions.of_container(name)) is not None]
    remembered = sorted(remembered, key=lambda each: each.at)[-MOST_TOLD:]
    every = {id(each): each for each in (*remembered, *world.decisions.of_function(asked.function))}
    return sorted(every.values(), key=lambda each: each.at)


def _containers(world: World, function: str, at: float) -> Iterator[tuple[str, ContainerReport]]:
    for node, each in world.containers(at):
        if each.state is not ContainerState.GONE and f"{each.tenant}:{each.app}.{each.function}" == function:
            yield node, each


def _now(
    world: World,
    function: str,
    decisions: list[PlacementDecision],
    at: float,
    wall: float,
    ref_of: Callable[[str], str],
) -> Iterator[str]:
    there = [each for each in decisions if decision_status(world, each, at) in NOW]
    described = {each.container for each in there}
    others = [(node, each) for node, each in _containers(world, function, at) if each.id not in described]
    level, loads = world.levels.get(function), world.demands_of(function, at)
    if not (decisions or others or level or loads):
        return
    yield "Now:"
    yield from [f"  {level}."] if level else []
    yield from [f"  {ref_of(demand.version)}: {_load_text(demand)}." for demand in loads]
    hopes = ((demand.version, world.hopes.text(demand.version, wall)) for demand in loads)
    yield from [f"  {ref_of(version)}: {hope}." for version, hope in hopes if hope]
    yield from ["  It has no container, and none waits for a place."] if not (there or others) else []
    for each in there:
        yield from _indented(_decision_lines(world, each, at))
    unknown = [(node, each) for node, each in others if world.decisions.of_container(each.id) is None]
    for node, container in unknown[:MOST_TOLD]:
        where = f"{container.id} is on {node}, on {container.slice}: {ref_of(container.version)}"
        yield f"  {where}. Why is not remembered: another controller decided it."
    if more := len(others) - len(unknown[:MOST_TOLD]):
        yield f"  … and {more} more of its containers."


def _load_text(demand: Demand) -> str:
    """What waits and runs, as the version's home told it last."""
    waiting = [f"{load.queued} {name}" for name, load in demand.classes.items() if load.queued]
    parts = []
    if demand.queued:
        by_class = f" ({', '.join(waiting)})" if len(waiting) > 1 else ""
        since = duration_text(demand.oldest_ms / 1000.0)
        parts.append(f"{_calls(demand.queued, 'waits', 'wait')}{by_class}, the first for {since}")
    if demand.running:
        since = f", the first for {duration_text(demand.oldest_run_ms / 1000.0)}" if demand.oldest_run_ms else ""
        parts.append(f"{_calls(demand.running, 'runs', 'run')}{since}")
    if demand.backlog:
        parts.append(f"jobs of the function that wait behind them: at least {demand.backlog}")
    if demand.held_jobs:
        parts.append(f"jobs that limits of their tenant hold back: at least {demand.held_jobs}")
    return "; ".join(parts)


def _calls(count: int, one: str, several: str) -> str:
    return f"{count} call {one}" if count == 1 else f"{count} calls {several}"


def _before(world: World, decisions: list[PlacementDecision], at: float) -> Iterator[str]:
    over = [each for each in decisions if decision_status(world, each, at) not in NOW]
    yield from ["Before:"] if over else []
    for each in over:
        yield from _indented(_decision_lines(world, each, at))


def _indented(lines: list[str]) -> Iterator[str]:
    """The lines of one decision among several: its reasons are indented."""
    yield f"  {lines[0]}"
    yield from [f"    {line}" for line in lines[1:]]


def _decision_lines(world: World, decided: PlacementDecision, at: float) -> list[str]:
    return [as_sentence(_head(decided, decision_status(world, decided, at), at)), *reasons(decided.outcome)]


def _head(decided: PlacementDecision, state: DecisionStatus, at: float) -> str:
    whose, outcome = _version(decided), decided.outcome
    if isinstance(outcome, Placement):
        placed = f"{whose}, placed {duration_text(at - decided.at)} ago"
        return f"{decided.container or 'a container'} {VERBS[state]} {outcome.slice}: {placed}"
    if state is DecisionStatus.WAITING:
        return f"{whose} has no place, for {duration_text(at - decided.since)} now: {outcome.reason}"
    since, until = duration_text(at - decided.since), duration_text(at - decided.at)
    return f"{whose} had no place {until} ago{f', first {since} ago' * (since != until)}: {outcome.reason}"


def _version(decided: PlacementDecision) -> str:
    ask = decided.outcome.record.ask
    return f"{decided.version or ask.function}{f' (a trial on {ask.slice})' if ask.slice else ''}"


def _why_not(world: World, decided: PlacementDecision, node: str, at: float) -> list[str]:
    subject = decided.container or decided.version or decided.function
    verb = {DecisionStatus.GONE: "was", DecisionStatus.OVER: "was"}.get(decision_status(world, decided, at), "is")
    whose = f"{decided.version}, " if decided.container and decided.version else ""
    when = f"{whose}decided {duration_text(at - decided.at)} ago"
    chosen = isinstance(decided.outcome, Placement) and decided.outcome.node == node
    head = f"{subject} {verb} on {node} ({when}):" if chosen else f"Why {subject} {verb} not on {node} ({when}):"
    return [head, *why_not(world.fleet(at), decided.outcome, node)]


def _data(world: World, decided: PlacementDecision, at: float, now: float) -> DecisionInfo:
    return msgspec.structs.replace(
        decision_info(decided.outcome, decided.container),
        version=decided.version,
        state=decision_status(world, decided, at),
        decided_at=_moment(now - (at - decided.at)),
        since=_moment(now - (at - decided.since)),
    )


def _moment(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _nothing_known(world: World, asked: ExplainPlacement) -> str:
    if asked.container and world.state(asked.container) is not None:
        return f"{asked.container} runs, but why it was put there is not remembered: another controller decided it."
    if asked.container:
        return f"Nothing is remembered of a container {asked.container}."
    if asked.function:
        return f"Nothing is remembered of {asked.function}: none of its containers was placed by this controller."
    return "Nothing was decided yet."
