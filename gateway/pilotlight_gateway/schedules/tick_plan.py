"""Which jobs of ticks have to stand at an instant.

The job of the next tick is stored ahead, so that the tick comes whatever becomes of the duty until then, and so that
scaling can see it. Of ticks that were missed the last one comes late, if the function was deployed at that instant and
the tick may still begin; those before it never come.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.schedules.ticks import last_tick, latest_start, next_tick, share_of
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.schedules.scheduled_methods import ScheduledMethod, version_at

AHEAD_S = 600
"""How long before its tick a job is stored at most: as long as a container may take to start unless it says more."""
LEAST_AHEAD_S = 300
"""Jobs are stored between the two, each method's at an instant of its own: many ticks come at full hours."""
FAR_S = 86_400.0
"""When to look again at a schedule that has no tick for decades."""


class TickPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The ticks of one method whose jobs have to stand, earliest first, and the unix second of the next look."""

    ticks: tuple[int, ...]
    look_again_at: float


def plan_ticks(method: ScheduledMethod, app: AppRecord, at: float) -> TickPlan:
    """The plan at the unix second `at` for a method of `app`."""
    missed = _missed_tick(method, app, at)
    ticks = () if missed is None else (missed,)
    coming = next_tick(method.schedule, method.who, at)
    if coming is None:
        return TickPlan(ticks=ticks, look_again_at=at + FAR_S)
    stored_at = coming - LEAST_AHEAD_S - share_of(method.who, AHEAD_S - LEAST_AHEAD_S + 1)
    if at < stored_at:
        return TickPlan(ticks=ticks, look_again_at=stored_at)
    return TickPlan(ticks=(*ticks, coming), look_again_at=coming)


def _missed_tick(method: ScheduledMethod, app: AppRecord, at: float) -> int | None:
    """The last tick, unless it may not begin any more, or was none of the version that was deployed then.

    Whether it was really missed its job tells, which is stored once.
    """
    tick = last_tick(method.schedule, method.who, at)
    if tick is None or at >= latest_start(method.schedule, method.who, tick):
        return None
    return tick if version_at(app, method.version.function, tick) == method.version.id else None
