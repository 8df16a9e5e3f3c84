"""The least and most containers of a function at an instant, its buffer and its window, and whose word each is. Pure.

    people's word     `pilotlight scale`, `Function.update_autoscaler`: goes before all else until it ends
    warm windows      the floor is the largest of those that are open, and of `min_containers`
    the specification

A floor never goes above the ceiling: `--max 1` in a warm window of two containers is one container. Instants are unix
seconds; the zones of windows are their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from msgspec import UNSET

from pilotlight_core.model.calendar.warm_windows import Warm, WeeklyHours, hours_of
from pilotlight_core.model.scaling.scale_record import BOUNDS, BoundOverride, ScaleRecord, deployed, overridden
from pilotlight_core.model.spec import FunctionSpec

FLOOR = "min_containers"
SAID = "by 'pilotlight scale'"


@dataclass(frozen=True)
class BoundReason:
    """Whose word a bound is, and until when."""

    word: str
    """Such as "warm window Mon-Fri 08:00-18:00 Europe/Berlin"."""
    ends_at: float = math.inf
    """The unix second at which it ends; infinity: it stays."""

    def __str__(self) -> str:
        return self.word if math.isinf(self.ends_at) else f"{self.word}, until {time_text(self.ends_at)}"


AS_DEPLOYED = BoundReason("as deployed")


@dataclass(frozen=True, kw_only=True)
class ScaleBounds:
    """What a function is held to from one instant until `changes_at`, and why."""

    least: int
    """Containers that stay at any demand."""
    most: int
    buffer: int
    window_s: float
    """Seconds without calls after which a container goes."""
    zero_window_s: float
    """The same of the last one."""
    steady: int
    """What of `least` is there without a warm window."""
    forecast: bool
    """Whether its past may keep or start containers."""
    because: dict[str, BoundReason]
    """By field of the specification: `AS_DEPLOYED` for most."""
    changes_at: float
    """The unix second at which something of it may be different; infinity: nothing ends by itself."""


NO_BOUNDS: Mapping[str, ScaleBounds] = MappingProxyType({})
"""By version: each is held to its specification."""


@dataclass(frozen=True, kw_only=True)
class _Floor:
    containers: int
    because: BoundReason
    changes_at: float = math.inf


def bounds_of(spec: FunctionSpec, record: ScaleRecord | None, at: float, *, lead_s: float = 0.0) -> ScaleBounds:
    """The bounds of a function at the unix second `at`.

    Args:
        record: people's word, if there is any.
        lead_s: how long before a warm window its containers start, so that they are ready when it opens.
    """
    held = overridden(spec, record, at)
    holding = {} if record is None else record.holding(at)
    because = {field: _reason_of(holding[field]) if field in holding else AS_DEPLOYED for field in BOUNDS}
    floor = _Floor(containers=held.min_containers, because=because[FLOOR])
    if FLOOR not in holding:
        floor = _warm_floor(spec, at, lead_s) or floor
    if floor.containers > held.max_containers:
        floor = _Floor(
            containers=held.max_containers,
            because=replace(
                floor.because,
                word=f"{floor.because.word}: of its {floor.containers} max_containers allows {held.max_containers}",
            ),
            changes_at=floor.changes_at,
        )
    return ScaleBounds(
        least=floor.containers,
        most=held.max_containers,
        buffer=held.buffer_containers,
        window_s=held.scaledown_window,
        zero_window_s=float(deployed(held, "zero_window")),
        forecast=bool(deployed(held, "forecast")),
        steady=min(held.min_containers, floor.containers),
        because=because | {FLOOR: floor.because},
        changes_at=min([floor.changes_at, *(override.end for override in holding.values())]),
    )


def most_kept(spec: FunctionSpec, record: ScaleRecord | None, at: float) -> int:
    """The most containers that a function may keep without calls from the unix second `at` on."""
    declared = max([spec.min_containers, *(window.containers for window in windows_of(spec))])
    override = None if record is None else record.override(FLOOR, at)
    if override is None:
        return declared
    return max(int(override.value), declared) if override.ends_at else int(override.value)


def windows_of(spec: FunctionSpec) -> tuple[Warm, ...]:
    """The warm windows that a function declares."""
    return () if spec.warm is UNSET else spec.warm


def time_text(at: float) -> str:
    """A unix second as `2026-11-24 18:00 UTC`."""
    instant = datetime.fromtimestamp(at, UTC)
    return f"{instant:%Y-%m-%d %H:%M:%S}".removesuffix(":00") + " UTC"


def _warm_floor(spec: FunctionSpec, at: float, lead_s: float) -> _Floor | None:
    """The floor of a function with warm windows; None: it has none."""
    if not windows_of(spec):
        return None
    floor = _Floor(containers=spec.min_containers, because=AS_DEPLOYED)
    changes_at = math.inf
    for window in windows_of(spec):
        hours = _hours(window)
        if hours is None:
            continue
        is_open, turn_at = hours.is_open(at), hours.changes_at(at)
        is_early = not is_open and turn_at - lead_s <= at
        if (is_open or is_early) and window.containers > floor.containers:
            reason = BoundReason(f"warm window {window}", hours.changes_at(turn_at) if is_early else turn_at)
            floor = _Floor(containers=window.containers, because=reason)
        changes_at = min(changes_at, turn_at if is_open or is_early else turn_at - lead_s)
    return replace(floor, changes_at=changes_at)


def _hours(window: Warm) -> WeeklyHours | None:
    """When a window is open; None: this host knows no such zone, so it never is."""
    try:
        return hours_of(window.when, window.tz)
    except ValueError:
        return None


def _reason_of(override: BoundOverride) -> BoundReason:
    return BoundReason(SAID + (f" with the key {override.by}" if override.by else ""), override.end)
