"""How fast a version's containers are within its service level, by its curves. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pilotlight_autoscaler.policy.scaling_policy import VersionSpeed
from pilotlight_core.model.messages.node_messages import ContainerReport
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.explain.speeds import key_of_slice, on_slice
from pilotlight_placement.fleet.fleet import Fleet


def speed_of(
    record: VersionRecord, curves: Curves | None, containers: Sequence[ContainerReport], fleet: Fleet
) -> VersionSpeed | None:
    """The throughput of a version's containers within its service level, if both are known."""
    level = record.spec.slo.p95_ms
    if level is None or curves is None:
        return None
    best = [point.throughput for key in curves.points if (point := curves.best(*key, level)) is not None]
    if not best:
        return None
    slices = [held.slice for c in containers if (held := fleet.held.get(c.id)) is not None]
    if len(slices) < len(containers):
        return None  # a report is ahead of the fleet: the next pass knows where they are
    points = [on_slice(curves, slice_, level) for slice_ in slices]
    if any(p is None and not curves.knows(s.type, key_of_slice(s)) for p, s in zip(points, slices, strict=True)):
        return None  # one of them has no curve
    return VersionSpeed(there=tuple(point.throughput if point else 0.0 for point in points), next=max(best))
