"""What a home tells the controller of one version: what waits, runs, was refused, and was late."""

from __future__ import annotations

from collections.abc import Mapping

from pilotlight_core.model.messages.demand import ClassLoad, Demand
from pilotlight_gateway.home.tier_queue import QueueEntry
from pilotlight_gateway.home.version_queue import VersionQueue

REFUSED_S = 5.0
"""A call that was refused for lack of a container is demand for this long, unless one is ready sooner: enough to drain
an idle container and to start one in its place, and callers who come again renew it."""


def demand_of(queue: VersionQueue, gateway: str, epoch: int, granted: Mapping[str, QueueEntry], at: float) -> Demand:
    """The demand of a version; it counts as reported. `granted` are the home's calls that have not ended."""
    oldest = queue.calls.oldest()
    if queue.refused_at is not None and at - queue.refused_at > REFUSED_S:
        queue.refused_at = None
    if queue.back_until is not None and at > queue.back_until:
        queue.back_until = None
    running, first_at = _running(queue, granted, at)
    demand = Demand(
        version=queue.version,
        tenant=queue.tenant,
        gateway=gateway,
        epoch=epoch,
        queued=len(queue.calls),
        oldest_ms=max(0.0, at - oldest) * 1000.0 if oldest is not None else 0.0,
        running=queue.pool.running(),
        arrivals=queue.arrivals,
        service_ms=queue.service_time.hold_ms or 0.0,
        edge=queue.edge,
        refused=queue.refused_at is not None or queue.back_until is not None,
        refused_calls=queue.refused_calls,
        late=queue.late,
        oldest_run_ms=(at - first_at) * 1000.0,
        classes=_classes(queue, running, at),
        function=queue.function,
    )
    queue.reported(demand, at)
    return demand


def _running(queue: VersionQueue, granted: Mapping[str, QueueEntry], at: float) -> tuple[dict[str, int], float]:
    """The running calls by class, and when the first of them was granted; `at` if none was."""
    # One plain loop: a thousand calls may run, and those that begin to wait are told of in this turn.
    running: dict[str, int] = {}
    first_at = at
    for call in queue.pool.calls():
        entry = granted.get(call)
        if entry is not None:
            name = entry.call.priority
            running[name] = running.get(name, 0) + 1
            if entry.granted_at < first_at:
                first_at = entry.granted_at
    return running, first_at


def _classes(queue: VersionQueue, running: Mapping[str, int], at: float) -> dict[str, ClassLoad]:
    waiting = queue.calls.waiting_by_class()
    return {
        name: ClassLoad(queued=queued, running=running.get(name, 0), oldest_ms=max(0.0, at - since) * 1000.0)
        for name in sorted({*waiting, *running})
        for queued, since in (waiting.get(name, (0, at)),)
    }
