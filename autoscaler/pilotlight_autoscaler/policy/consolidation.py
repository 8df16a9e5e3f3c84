"""Whether calls can do with fewer containers than there are. Pure.

Before one of N goes, what it carries is laid upon the others: each of them gets N/(N-1) of its load. They must carry
that at 80 % of what they can, and of the service level:

    with a curve    their throughput within the level, used to 80 %, carries the calls that arrive
    without         their slots are in use at 80 % at most, and the 95 % quantile of wait and service is within 80 % of
                    the level, by the formula of Erlang for calls that wait (M/M/c)

What runs at an instant says less than what arrives: calls that ended just now leave containers idle that the next ones
need. Nothing is known of a version whose calls have not ended yet, or of which none arrive: nothing is held for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_core.model.api.curve_api import TARGET_UTILISATION
from pilotlight_core.model.messages.node_messages import ContainerReport

LEVEL_PART = 0.8
"""Of the service level, for the containers that are left."""
QUANTILE = 0.95
NEGLIGIBLE = 1e-9


def least_kept(view: VersionView, wanted: int) -> int:
    """How many of a version's containers its calls need, of those beyond `wanted`: the fastest would be left."""
    count = max(wanted, min(view.size, _least_by_slots(view)))
    while count < view.size and not carries(view, count):
        count += 1
    return count


def carries(view: VersionView, count: int) -> bool:
    """Whether so many of a version's containers, the fastest ones, carry the calls that arrive."""
    if not view.rate:
        return True
    if view.speed is not None:
        speeds = sorted(view.speed.there, reverse=True)[:count]
        return view.rate <= TARGET_UTILISATION * sum(speeds)
    return slots_carry(view.rate, _service_ms(view), count * view.slots, view.spec.slo.p95_ms)


def without_needed(view: VersionView, going: Sequence[ContainerReport]) -> list[ContainerReport]:
    """Those of the containers `going`, in their order, that may go one by one."""
    left = {container.id: speed for container, speed in zip(view.containers, _speeds(view), strict=True)}
    found = []
    for container in going:
        rest = sum(left.values()) - left[container.id]
        if view.rate and view.speed is not None and view.rate > TARGET_UTILISATION * rest:
            continue
        if view.speed is None and not carries(view, len(left) - 1):
            break
        del left[container.id]
        found.append(container)
    return found


def _least_by_slots(view: VersionView) -> int:
    if view.speed is not None or view.demand is None or not view.rate:
        return 0
    return least_by_slots(view.rate, view.demand.service_ms, view.slots)


def least_by_slots(rate: float, service_ms: float, slots: int) -> int:
    """Containers that have slots for the calls that arrive, used to the target."""
    return math.ceil(rate * service_ms / 1000.0 / (TARGET_UTILISATION * slots) - NEGLIGIBLE)


def _speeds(view: VersionView) -> Sequence[float]:
    return view.speed.there if view.speed is not None else [0.0] * len(view.containers)


def _service_ms(view: VersionView) -> float:
    return view.demand.service_ms if view.demand is not None else 0.0


def slots_carry(rate: float, service_ms: float, slots: int, level_ms: float | None) -> bool:
    """Whether so many slots carry the calls that arrive, by how long these take, within their service level."""
    service_s = service_ms / 1000.0
    load = rate * service_s
    if not load:
        return True
    if load > TARGET_UTILISATION * slots + NEGLIGIBLE:
        return False
    return level_ms is None or wait_s(load, slots, service_s) + service_s <= LEVEL_PART * level_ms / 1000.0


def wait_s(load: float, slots: int, service_s: float) -> float:
    """The 95 % quantile of the wait where `load` (calls at a time) is less than the slots, by Erlang's C."""
    blocked = 1.0
    for number in range(1, slots + 1):  # Erlang's B, by its recursion
        blocked = load * blocked / (number + load * blocked)
    waits = slots * blocked / (slots - load * (1.0 - blocked))
    if waits <= 1.0 - QUANTILE:
        return 0.0
    return service_s / (slots - load) * math.log(waits / (1.0 - QUANTILE))
