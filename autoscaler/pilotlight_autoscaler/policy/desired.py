"""The scaling policy: how many containers a function should have, why, and when to look again. Pure.

    calls         what runs and waits now, at once (`scaling_policy`)
    pace          engines that are beyond the pace of `slo=`: more of them (`engines/token_pressure`)
    backlog       jobs that wait behind them: as many as end them within `BACKLOG_S`, or ten starts if that is longer
    planned       jobs that become due while a container starts: as if they waited now
    taken-over    a version that was just deployed has as many as calls of the function needed before, for its window
    rollout       a side of a rollout: for its next share, or the old version for all of the traffic
    buffer        `buffer_containers` beyond what calls need, while there are any
    warm-window   what a warm window that is open keeps, beyond `min_containers`
    floor         `min_containers`, or what people say instead (`core.model.scaling`)
    forecast      what the function's own past foretells (`prediction`): a floor that the others may exceed
    budget        a budget of its owner is used up: none but `calls` asks for any

Each but `buffer` is a least number, so the largest counts; `ceiling` (`max_containers`) bounds them. None that is there
goes without which the others would be used to more than 80 % of the service level (`consolidation`), or while the home
of calls is silent, and for a while after the number rose (`cooldown`). CPU use is never looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pilotlight_autoscaler.policy.consolidation import least_kept
from pilotlight_autoscaler.policy.engines.token_pressure import explain_pace
from pilotlight_autoscaler.policy.function_view import PLANNED_MARGIN_S, FunctionView, needed_by_calls
from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, FunctionMemory
from pilotlight_autoscaler.policy.scaling_policy import VersionView, wanted_by_demand, wanted_by_level
from pilotlight_autoscaler.policy.warmth import tier_of
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth, Wish
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.rollouts.capacity import ArmCapacity
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.scaling.scale_bounds import AS_DEPLOYED

BACKLOG_S = 60.0
STARTS_OF_BACKLOG = 10.0
"""A container for jobs is worth its start if it works for ten times as long."""
COOLDOWN_S = 60.0
"""Or the function's own window, if that is shorter."""
NEVER = math.inf
FOR_CALLS = (ScalingRule.BACKLOG, ScalingRule.PLANNED, ScalingRule.TAKEN_OVER)
"""Containers that these ask for have calls soon."""


GUESSED = (ScalingRule.FORECAST, ScalingRule.ROLLOUT)
"""Containers that these ask for are the platform's, until a call uses them."""


class _Floor(NamedTuple):
    """A least number of containers of the current version."""

    least: int
    rule: ScalingRule
    because: str
    bounded: ScalingRule | None = None
    """Of a ceiling: the rule that asks for more."""


NOBODY = _Floor(0, ScalingRule.NOBODY_CALLS, "nobody calls it")


def desired(view: FunctionView, memory: FunctionMemory, at: float) -> Wish:
    """The wish of an instant, in unix seconds. Says the same for the same arguments, whenever it is asked."""
    current = view.versions.get(view.current)
    others = ((name, each) for name, each in view.versions.items() if each is not current)
    counts = {name: _best(_floors(each, memory), each).least for name, each in others}
    if current is None or current.is_shut_down:
        return _without_current(counts if current is None else {**counts, view.current: 0})
    floors = [*_floors(current, memory), *_foreseen(view, memory, at)]
    best = _best(floors, current)
    unforeseen = max((floor.least for floor in floors if floor.rule is not ScalingRule.FORECAST), default=0)
    ahead = max(0, best.least - unforeseen)
    best = _consolidated(current, best)
    counts[view.current] = best.least
    asked_by = best.bounded or best.rule
    hold = _hold(view, memory, at)
    if hold is not None and hold.least > sum(counts.values()):
        best = hold
    count = max(sum(counts.values()), hold.least if hold is not None else 0)
    return Wish(
        count=count,
        tier=Warmth.READY if count else tier_of(current.spec, memory.load_s, is_funded=not current.unfunded),
        rule=best.rule,
        asked_by=asked_by,
        because=best.because,
        look_again_at=_next_change_at(view, current, memory, at),
        by_version=counts,
        declared=min(unforeseen, current.ceiling),
        ahead=ahead,
        holds=hold is not None,
    )


def _best(floors: Iterable[_Floor], view: VersionView) -> _Floor:
    """The largest of these, the first of equal ones, as far as the version's ceiling allows."""
    nobody = _Floor(0, ScalingRule.UNFUNDED, view.unfunded) if view.unfunded else NOBODY
    best = max(floors, key=lambda floor: floor.least, default=nobody)
    most = view.ceiling
    if best.least > most:
        whose = _whose(view, "max_containers")
        because = f"max_containers={most}{whose} allows no more ({best.because})"
        return _Floor(most, ScalingRule.CEILING, because, best.rule)
    return best


def more_needs(view: FunctionView, wish: Wish) -> str:
    """What it would take to have one container more, in words."""
    current = view.versions.get(view.current)
    if current is None:
        return "a deployed version: this one is not"
    if current.is_shut_down:
        return "an app that serves: its versions are shut down"
    if wish.rule is ScalingRule.UNFUNDED:
        return "money: a higher budget, or its next period"
    if wish.rule is ScalingRule.CEILING or wish.by_version.get(view.current, 0) >= current.ceiling:
        return f"a higher max_containers: it is {current.ceiling}"
    slots = current.spec.slots_of_all
    calls = "a call" if slots == 1 else f"more calls than the {slots} that a container takes at once"
    return f"{calls} that finds no free container, or a higher min_containers"


def purpose_of(view: VersionView, wish: Wish, started: int) -> Purpose:
    """Why a further container of a version is wanted, after `started` ones beyond `view`.

    The first ones are for calls, then come those of the floor that is there at any time, then what a warm window adds,
    and those of a forecast last.
    """
    number = view.size + started
    if number < needed_by_calls(view) or wish.asked_by in FOR_CALLS:
        return Purpose.CALL
    if number < view.steady_floor:
        return Purpose.FLOOR
    if number < view.floor:
        return Purpose.WARM
    is_guess = wish.asked_by in GUESSED or (view.arm is not None and not view.deployed)
    return Purpose.PREWARM if is_guess else Purpose.BUFFER


def purpose_of_kept(view: VersionView, declared: int) -> Purpose:
    """Why the last of `declared` containers of the current version is kept, which are there by no guess."""
    if declared <= needed_by_calls(view):
        return Purpose.CALL
    if declared <= view.steady_floor:
        return Purpose.FLOOR
    return Purpose.WARM if declared <= view.floor else Purpose.BUFFER


def _floors(view: VersionView, memory: FunctionMemory) -> Iterator[_Floor]:
    """What asks for containers of a version, by what is known of it alone; what comes first of equals first."""
    if view.is_shut_down:
        return
    needed = view.wanted
    if needed:
        yield _Floor(needed, *_calls(view, needed))
    if (arm := view.arm) is not None and not view.unfunded:
        yield from _for_rollout(arm, needed, memory.carried())
    if not view.deployed:
        return
    jobs = view.demand.backlog if view.demand is not None and not view.unfunded else 0
    if jobs:
        behind = _for_jobs(view, jobs, memory)
        yield _Floor(needed + behind, ScalingRule.BACKLOG, f"at least {jobs} jobs wait behind the calls of now")
    is_active = view.demand is not None and bool(view.demand.waiting or view.demand.running)
    if is_active and view.buffer:
        beyond = f"buffer_containers={view.buffer}{_whose(view, 'buffer_containers')} beyond"
        yield _Floor(needed + view.buffer, ScalingRule.BUFFER, f"{needed} for calls, and {beyond}")
    whose = _whose(view, "min_containers")
    if view.floor > view.steady_floor:
        yield _Floor(view.floor, ScalingRule.WARM, f"{view.floor} are kept{whose}")
    elif view.floor:
        yield _Floor(view.floor, ScalingRule.FLOOR, f"min_containers keeps {view.floor}{whose}")


def _for_rollout(arm: ArmCapacity, needed: int, whole: int) -> Iterator[_Floor]:
    """What a side of a rollout keeps, of a function whose calls have lately needed `whole` containers."""
    kept = arm.containers(whole, needed)
    if kept <= needed:
        return
    if arm.arm is Arm.CONTROL:
        because = f"a rollout runs, and the old version keeps the {whole} that carry all calls"
    else:
        because = f"a rollout's {arm.arm} is to carry {arm.part:.0%} of what needs {whole}"
    yield _Floor(kept, ScalingRule.ROLLOUT, because)


def _whose(view: VersionView, field: str) -> str:
    """Whose word a bound is, within a sentence; "": the specification's."""
    reason = AS_DEPLOYED if view.bounds is None else view.bounds.because[field]
    return "" if reason == AS_DEPLOYED else f" ({reason})"


def _foreseen(view: FunctionView, memory: FunctionMemory, at: float) -> Iterator[_Floor]:
    """What asks for containers of the current version, by what was known of the function."""
    planned, current = view.planned, view.versions[view.current]
    if current.unfunded:
        return
    if planned is not None and planned.is_soon(memory.load_s) and planned.version in ("", view.current):
        calls, jobs_ = needed_by_calls(current), _for_jobs(current, planned.calls, memory)
        needed = calls + jobs_ if planned.due_in_s > 0.0 else max(calls, jobs_)  # then they are among its calls
        jobs = "1 job is" if planned.calls == 1 else f"{planned.calls} jobs are"
        yield _Floor(needed, ScalingRule.PLANNED, f"at least {jobs} due within the time of a start")
    taken = memory.taken_over(view.current, at)
    if taken:
        yield _Floor(taken, ScalingRule.TAKEN_OVER, f"calls needed {taken} of the version before it")
    ahead = memory.ahead()
    if ahead:
        yield _Floor(ahead, ScalingRule.FORECAST, f"its past foretells {ahead} for the coming minute ({memory.method})")


def _calls(view: VersionView, needed: int) -> tuple[ScalingRule, str]:
    if view.paced >= needed > max(wanted_by_demand(view), wanted_by_level(view)):
        return ScalingRule.PACE, explain_pace(view.spec.slo, view.containers)
    if wanted_by_level(view) >= needed and view.spec.slo.p95_ms is not None:
        rate, level = f"{view.rate:.3g} calls arrive a second", f"{view.spec.slo.p95_ms:g} ms"
        return ScalingRule.LEVEL, f"{rate}, and {needed} containers carry them within {level}"
    running = max(sum(each.running for each in view.containers), view.demand.running if view.demand else 0)
    waiting = view.demand.waiting if view.demand is not None else 0
    turned_away = view.demand.refused_calls + view.demand.late if view.demand is not None else 0
    said = ((running, "runs", "run"), (waiting, "waits", "wait"), (turned_away, "was turned away", "were turned away"))
    parts = [f"1 call {one}" if count == 1 else f"{count} calls {several}" for count, one, several in said if count]
    return ScalingRule.CALLS, ", ".join(parts) or "a call ended just now"


def _for_jobs(view: VersionView, jobs: int, memory: FunctionMemory) -> int:
    """Containers for jobs beyond the calls of now, at most as many as they can occupy."""
    known_s = (view.demand.service_ms, view.demand.oldest_run_ms) if view.demand is not None else (0.0, 0.0)
    service_s = known_s[0] / 1000.0 or memory.service_s or max(memory.load_s, known_s[1] / 1000.0)
    within_s = max(BACKLOG_S, STARTS_OF_BACKLOG * memory.load_s)
    return math.ceil(jobs * min(service_s, within_s) / (view.spec.slots * within_s))


def _consolidated(view: VersionView, best: _Floor) -> _Floor:
    """What is kept of the containers that are there, because fewer would not carry the calls that arrive."""
    is_more = view.size > best.least and not view.unfunded
    kept = min(least_kept(view, best.least), view.ceiling) if is_more else best.least
    if kept <= best.least:
        return best
    what = "slots" if view.spec.slo.p95_ms is None else "service level"
    because = f"{view.rate:.3g} calls arrive a second, and with one fewer they would need more than 80 % of its {what}"
    return _Floor(kept, ScalingRule.CONSOLIDATION, because)


def _hold(view: FunctionView, memory: FunctionMemory, at: float) -> _Floor | None:
    """Why none should go that is there."""
    if any(each.home_is_silent for each in view.versions.values()):
        return _Floor(view.size, ScalingRule.SILENT_HOME, "the home of its calls is silent, so none goes")
    is_funded = not any(each.unfunded for each in view.versions.values())
    if is_funded and at < cools_until(memory, view.window_s):
        within = sum(min(each.size, each.ceiling) for each in view.versions.values())
        return _Floor(within, ScalingRule.COOLDOWN, "one was started a while ago, so none goes")
    return None


def cools_until(memory: FunctionMemory, window_s: float) -> float:
    """When the number may fall again after it rose, of a function whose idle containers stay for so long."""
    return memory.cool_at(window_s if window_s < COOLDOWN_S else COOLDOWN_S)


def _next_change_at(view: FunctionView, current: VersionView, memory: FunctionMemory, at: float) -> float:
    """Always later than `at`: what is due now is due at each look."""
    window_s = view.window_s
    cool = cools_until(memory, window_s)
    if cool > at:
        ends = [cool]  # none that is idle goes before
    else:
        windows = {window_s, current.zero_window_s}
        idle = (each.idle_s for each in current.containers if not each.running)
        ends = [at + (window - idle_s) for idle_s in idle for window in windows if idle_s < window]
    if current.bounds is not None:
        ends.append(current.bounds.changes_at)
    if view.planned is not None:
        start_at = at + view.planned.due_in_s - memory.load_s - PLANNED_MARGIN_S
        ends += [start_at] if start_at > at else []
    if memory.is_known:
        ends.append((at // MINUTE_S + 1) * MINUTE_S)
    return min(ends, default=NEVER)


def _without_current(counts: Mapping[str, int]) -> Wish:
    """Of a function whose versions are all superseded or shut down: their calls end, nothing else starts."""
    count = sum(counts.values())
    rule = ScalingRule.CALLS if count else ScalingRule.SHUT_DOWN
    return Wish(
        count=count,
        tier=Warmth.READY if count else Warmth.NONE,
        rule=rule,
        because="calls of a superseded version run on" if count else "nothing of it should run",
        look_again_at=NEVER,
        by_version=counts,
    )
