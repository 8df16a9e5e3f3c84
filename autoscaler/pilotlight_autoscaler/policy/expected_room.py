"""When a place is expected for a version that has none. Pure.

How long a call takes is what calls of its version took so far; before one has ended, as long as it may take at most.
"""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_autoscaler.policy.scaling_policy import MIN_RESIDENCY_S, VersionView
from pilotlight_core.model.messages.node_messages import ContainerState


def call_s(view: VersionView) -> float:
    """How long a call of a version takes."""
    known = view.demand.service_ms / 1000.0 if view.demand is not None else 0.0
    return min(known or view.spec.timeout, view.spec.timeout)


def idle_in_s(view: VersionView) -> float:
    """When a container of a version is expected to be idle for so long that it may go, if no more calls came."""
    if any(each.state is ContainerState.READY and not each.running for each in view.containers):
        return MIN_RESIDENCY_S
    queued = view.demand.queued if view.demand is not None else 0
    return call_s(view) * (1.0 + queued / (len(view.containers) * view.spec.slots)) + MIN_RESIDENCY_S


def next_idle_s(views: Iterable[VersionView], *, on_gpu: bool) -> float:
    """When the next container of any of the versions is expected to be idle; 0.0: none of them has one of the kind."""
    holding = (view for view in views if view.containers and bool(view.spec.gpu) is on_gpu)
    return min((idle_in_s(view) for view in holding), default=0.0)
