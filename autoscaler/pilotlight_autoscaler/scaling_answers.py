"""Why a function has the containers that it has: sentences and data from recorded wishes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pilotlight_autoscaler.observations.wish_log import WishChange
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.prediction.function_memory import QUICK_S, FunctionMemory
from pilotlight_autoscaler.policy.prediction.shadow_pool import NOTHING
from pilotlight_core.model.api.scaling_api import MethodCost, ScalingChange, ScalingExplanation
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_core.model.units import duration_text

MOST_TOLD = 5
"""Latest changes that are told in sentences; the data has all."""


def explain_scaling(world: World, function: str, at: float, now: float) -> ScalingExplanation:
    """The explanation of `tenant:app.function`, of the instant `at`; both in unix seconds, and `at` 0 is now."""
    changes = world.wishes.of_function(function, at or None)
    memory = world.scaling.get(function)
    lines = [*(_then(changes[-1], at) if at else _now(changes[-1], now))] if changes else [_nothing(at, now)]
    if memory is not None and not at:
        lines += _foretold(memory)
    return ScalingExplanation(
        lines=(*lines, *_before(changes, now)),
        more_needs=changes[-1].more_needs if changes else "",
        load_s=round(memory.load_s, 3) if memory is not None else 0.0,
        predicted=memory.ahead() if memory is not None else 0,
        methods=tuple(_method_costs(memory)) if memory is not None else (),
        changes=tuple(_change(each) for each in changes),
    )


def _nothing(at: float, now: float) -> str:
    if at:
        return f"Nothing is remembered of its scaling {duration_text(now - at)} ago."
    return "It has no container and needs none; nothing else is remembered since this controller leads."


def _now(last: WishChange, now: float) -> Iterator[str]:
    wish = last.wish
    since = duration_text(now - last.at)
    yield as_sentence(f"It wants {_containers(wish.count)} ({wish.rule}), for {since}: {wish.because}")
    if wish.count > last.there:
        yield f"  There, or on their way: {last.there}. To start: {wish.count - last.there}."
    elif wish.count < last.there:
        yield f"  There: {last.there}. What is idle for the function's window goes, by and by."
    yield as_sentence(f"  One more takes {last.more_needs}")


def _then(last: WishChange, at: float) -> Iterator[str]:
    wish, since = last.wish, duration_text(at - last.at)
    yield as_sentence(f"It wanted {_containers(wish.count)} ({wish.rule}), for {since} by then: {wish.because}")
    yield f"  There, or on their way, were {last.there}."
    yield as_sentence(f"  One more would have taken {last.more_needs}")


def _foretold(memory: FunctionMemory) -> Iterator[str]:
    start, worth = duration_text(memory.load_s), f"{memory.worth:.3g} idle minutes"
    if not memory.is_asked:
        yield f"  A start of it takes {start}. What its past foretells does not count: forecast is off."
        return
    if memory.load_s < QUICK_S:
        least = duration_text(QUICK_S)
        yield f"  A start of it takes {start}: for less than {least} nothing is kept ready by its past."
        return
    yield f"  A start of it takes {start}, so one that is spared is worth {worth} of a container."
    if memory.method == NOTHING:
        yield "  Nothing is kept ready for it by its past: no way to foretell its calls would have cost less lately."
    else:
        by = f"by {memory.method}, which would have cost least lately"
        yield f"  Its past foretells {memory.ahead()} for the coming minute, {by}."


def _before(changes: Sequence[WishChange], now: float) -> Iterator[str]:
    earlier = changes[:-1]
    yield from ["Before:"] if earlier else []
    for change in reversed(earlier[-MOST_TOLD:]):
        wish, ago = change.wish, duration_text(now - change.at)
        wanted = f"it wanted {wish.count} ({wish.rule}) and had {change.there}"
        yield as_sentence(f"  {ago} ago {wanted}: {wish.because}")


def _containers(count: int) -> str:
    return "1 container" if count == 1 else f"{count} containers"


def _method_costs(memory: FunctionMemory) -> Iterator[MethodCost]:
    for name, cost in memory.costs.items():
        idle, cold = round(cost.idle_minutes, 1), round(cost.cold, 1)
        yield MethodCost(method=name, idle_minutes=idle, cold_starts=cold, chosen=name == memory.method)


def _change(change: WishChange) -> ScalingChange:
    moment = datetime.fromtimestamp(change.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    wish = change.wish
    return ScalingChange(
        at=moment, wanted=wish.count, there=change.there, rule=wish.rule, because=wish.because, ahead=wish.ahead
    )
