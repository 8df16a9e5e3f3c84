"""Whether engines keep the pace that `slo=SLO(ttft_ms=, itl_ms=)` of their version asks for. Pure.

    pressure    of a container: its time to the first token, or between two tokens, as a part of the level; how full its
                room for keys and values is, as a part of 90 %; more than 1 if a call waits for room in it for a second
    up          the mean over the containers that serve is above 1: so many times as many, at most twice
    kept        no fewer than would have a mean of 80 %

The mean, since calls go where there is room: a container that offers none is no reason for another one while its
neighbours have some. What an engine tells is its tenant's word: one container counts with twice its share at most, and
ceiling, limits and shares bound what comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.spec import SLO

MOST_PRESSURE = 2.0
"""Of one container; so the number at most doubles, and what comes then shows whether that was enough."""
KEPT_PRESSURE = 0.8
FULL_PART = 0.9
"""Of the room for keys and values; beyond it calls soon wait, or give up their room for others."""
LONGEST_WAIT_MS = 1000.0


def has_pace(slo: SLO) -> bool:
    """Whether a version asks for a pace of tokens."""
    return slo.ttft_ms is not None or slo.itl_ms is not None


def pressure_of(slo: SLO, engine: EngineReport) -> float:
    """How much one container is beyond its pace: above 1 it is, 0 at rest."""
    parts = [engine.kv_used_ratio / FULL_PART]
    if slo.ttft_ms is not None:
        parts.append(engine.first_token_ms / slo.ttft_ms)
    if slo.itl_ms is not None:
        parts.append(engine.inter_token_ms / slo.itl_ms)
    if engine.lacks_room and engine.waited_ms >= LONGEST_WAIT_MS:
        parts.append(1.0 + engine.waiting / (engine.waiting + engine.running))
    return min(MOST_PRESSURE, max(parts))


def pressures(slo: SLO, containers: Sequence[ContainerReport]) -> list[float]:
    """Of the containers that serve. One has none that holds no call by its agent's word, or has told nothing yet."""
    serving = (each for each in containers if each.state is ContainerState.READY)
    return [pressure_of(slo, each.engine) if each.engine is not None and each.running else 0.0 for each in serving]


def wanted_by_pace(slo: SLO, containers: Sequence[ContainerReport]) -> int:
    """Containers that hold the pace of a version; 0: it asks for none, or one would do."""
    if not has_pace(slo):
        return 0
    each = pressures(slo, containers)
    total = sum(each)
    if total > len(each):
        return math.ceil(total)
    kept = min(len(each), math.ceil(total / KEPT_PRESSURE))
    return kept if kept > 1 else 0


def explain_pace(slo: SLO, containers: Sequence[ContainerReport]) -> str:
    """Why containers are wanted for a pace, in words."""
    each = pressures(slo, containers)
    slow = sum(one > 1.0 for one in each)
    serving = (one for one in containers if one.state is ContainerState.READY and one.running)
    reports = [one.engine for one in serving if one.engine is not None]
    told = []
    for level, field, what in ((slo.ttft_ms, "first_token_ms", "TTFT"), (slo.itl_ms, "inter_token_ms", "ITL")):
        if level is not None:
            longest = max((getattr(report, field) for report in reports), default=0.0)
            told.append(f"{what} is {longest:.3g} of {level:g} ms where it is longest")
    fullest = max((report.kv_used_ratio for report in reports), default=0.0)
    waiting = sum(report.waiting for report in reports)
    told.append(f"rooms for keys and values are used to {fullest:.0%} at most")
    if waiting:
        told.append(f"{waiting} calls wait in engines")
    mean = sum(each) / len(each) if each else 0.0
    return f"{slow} of {len(each)} containers are beyond slo=, the pressure is {mean:.2f} ({', '.join(told)})"
