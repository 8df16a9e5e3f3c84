"""How many more containers each tenant may have, by its limits `containers`, `gpus` and `floor_containers`. Pure.

What counts is what holds slices: containers in any state, and those that are about to start. A limit that was lowered
stops nothing that runs; it lets nothing new start, and no floor above it stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pilotlight_autoscaler.policy.preemption import PreemptionVictim
from pilotlight_core.model.limits import NO_LIMITS, Limits, ReachedLimit
from pilotlight_core.model.messages.node_messages import ContainerReport
from pilotlight_core.model.scaling.scale_bounds import NO_BOUNDS, ScaleBounds
from pilotlight_core.model.spec import FunctionSpec, VersionRecord

LimitsOf = Callable[[str], Limits]
HeldBy = Callable[[str], Iterable[tuple[FunctionSpec | None, int]]]
"""By tenant: the specs of its containers, and how many there are."""
BORROW = "borrow"
"""The limit on a tenant's share of the fleet, which `shares` counts."""


def unlimited(_tenant: str) -> Limits:
    """The limits of any tenant where none are set."""
    return NO_LIMITS


@dataclass(frozen=True, kw_only=True)
class LimitedVersion:
    """A version whose tenant's limit allows fewer containers than it should have."""

    version: str
    missing: int
    reached: ReachedLimit

    @property
    def reason(self) -> str:
        """For the tenant's own people, and the operator."""
        if self.reached.limit == BORROW:
            return (
                f"{self.reached.tenant} has {self.reached.current:.0%} of the fleet, "
                f"and with what it may borrow {self.reached.allowed:.0%} are its most"
            )
        what = "containers" if self.reached.limit == "containers" else "GPUs of its containers"
        return (
            f"{self.reached.tenant} has {self.reached.current:g} {what}, "
            f"and its limit {self.reached.limit}={self.reached.allowed:g} allows no more"
        )

    @property
    def for_callers(self) -> str:
        """For whoever waits, who may be of another tenant."""
        allowed = (
            f"{self.reached.allowed:.0%} of the fleet" if self.reached.limit == BORROW else f"{self.reached.allowed:g}"
        )
        return f"the function's owner may have {allowed} at a time (limit {self.reached.limit})"


class TenantRooms:
    """What all tenants' containers hold, against their limits."""

    def __init__(self, limits_of: LimitsOf, held_by: HeldBy) -> None:
        """A spec that is not known counts without GPUs. Tenants without a limit are not counted."""
        self._limits_of = limits_of
        self._held_by = held_by
        self._containers: Counter[str] = Counter()
        self._gpus: Counter[str] = Counter()
        self._counted = set[str]()

    def take(self, tenant: str, spec: FunctionSpec, wanted: int) -> tuple[int, ReachedLimit | None]:
        """How many of `wanted` further containers may start, which then count; and the limit that allows no more."""
        limits, least, reached = self._limits_of(tenant), wanted, None
        if limits.containers is None and limits.gpus is None:
            return wanted, None
        self._count(tenant)
        for name, allowed, used, each in (
            ("containers", limits.containers, self._containers[tenant], 1),
            ("gpus", limits.gpus, self._gpus[tenant], spec.gpus),
        ):
            if allowed is None or not each:
                continue
            room = max(0, allowed - used) // each
            if room < least:
                least, reached = room, ReachedLimit(limit=name, tenant=tenant, allowed=allowed, current=used)
        self._containers[tenant] += least
        self._gpus[tenant] += least * spec.gpus
        return least, reached

    def _count(self, tenant: str) -> None:
        if tenant in self._counted:
            return
        self._counted.add(tenant)
        for spec, count in self._held_by(tenant):
            self._containers[tenant] += count
            self._gpus[tenant] += count * spec.gpus if spec is not None else 0


def give_way(
    limited: LimitedVersion,
    idle: Iterable[PreemptionVictim],
    leaving: Iterable[ContainerReport],
    versions: Mapping[str, VersionRecord],
) -> list[tuple[str, str]]:
    """The idle containers, with their versions, that the tenant gives for a version that waits at its limit.

    As many as are missing, less those that leave anyway; the longest idle first.
    """
    own = limited.reached.tenant

    def helps(version: str) -> bool:
        record = versions.get(version)
        has_gpus = record is not None and record.spec.gpus > 0
        return record is not None and record.tenant == own and (has_gpus or limited.reached.limit != "gpus")

    coming = sum(helps(container.version) for container in leaving)
    spare = [victim for victim in idle if victim[1] != limited.version and helps(victim[1])]
    spare.sort(key=lambda victim: (-victim[0].idle_s, victim[0].id))
    return [(container.id, version) for container, version in spare[: max(0, limited.missing - coming)]]


def floors(
    deployed: Mapping[str, VersionRecord], limits_of: LimitsOf, bounds: Mapping[str, ScaleBounds] = NO_BOUNDS
) -> dict[str, int]:
    """The containers that each deployed version keeps, in the order of the versions' ids up to their tenant's limit.

    `bounds` has those whose floor may be another than their spec's.
    """
    left: dict[str, int] = {}
    found: dict[str, int] = {}
    for version, record in sorted(deployed.items()):
        least = bounds[version].least if version in bounds else record.spec.min_containers
        if least:
            most = limits_of(record.tenant).floor_containers
            room = left.get(record.tenant, least if most is None else most)
            found[version] = min(least, room)
            if most is not None:
                left[record.tenant] = room - found[version]
    return found
