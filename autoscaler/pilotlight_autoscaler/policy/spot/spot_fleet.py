"""What a pool of spot machines is to launch and to end, so that as many are ready as are wanted. Pure.

1  spot       as many as are wanted, and spares; those that are taken away, or are likely to be, do not count, so
              others start before they are gone
2  where      the zone with the fewest of them, of those that have not just preempted
3  on demand  one for each that is wanted and not *ready* as spot, since a spot machine that starts may never come
              up. It costs little: it stands for as long as a start takes
4  the end    machines on demand that spot ones have replaced, the latest first; then spot machines that are likely
              to be taken away, once as many others are ready; then what is beyond
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PoolInstance:
    """A machine of a pool, from its launch to its end."""

    name: str
    zone: str
    is_spot: bool
    is_ready: bool
    is_leaving: bool = False
    """Its provider takes it away: it has said so, or the machine is not heard of any more."""
    is_at_risk: bool = False
    """Its provider recommends to replace it."""


@dataclass(frozen=True, kw_only=True)
class SpotPlan:
    """What to do now."""

    spot: tuple[str, ...] = ()
    """Zones in which to launch a spot machine each, in order."""
    on_demand: int = 0
    """Machines to launch on demand, wherever there are some."""
    ends: tuple[str, ...] = ()
    """Machines to drain and end."""


def choose_zone(zones: Sequence[str], held: Counter[str], avoided: Collection[str] = ()) -> str | None:
    """The zone of the next spot machine; None: there is none. Of equal ones the first."""
    open_zones = [zone for zone in zones if zone not in avoided] or list(zones)
    return min(open_zones, key=lambda zone: held[zone], default=None)


def on_demand_wanted(wanted: int, ready_spot: int) -> int:
    """How many machines on demand stand in for spot ones that are not ready."""
    return max(0, wanted - ready_spot)


def plan_spot_fleet(
    wanted: int,
    instances: Iterable[PoolInstance],
    zones: Sequence[str],
    avoided: Collection[str] = (),
    *,
    spares: int = 0,
    may_fall_back: bool = True,
) -> SpotPlan:
    """What is to be launched and ended. `zones`: those with a price, the cheapest first; `instances`: oldest first."""
    every = list(instances)
    spot = [one for one in every if one.is_spot and not one.is_leaving]
    lasting = [one for one in spot if not one.is_at_risk]
    launches = _launches(wanted + spares - len(lasting), spot, zones, avoided)
    ready = sum(one.is_ready for one in spot)
    stand_ins = [one for one in every if not one.is_spot and not one.is_leaving]
    lacking = on_demand_wanted(wanted, ready) if may_fall_back else 0
    ends = [one.name for one in _surplus(stand_ins, len(stand_ins) - lacking)]
    ready_lasting = sum(one.is_ready for one in lasting)
    if ready_lasting >= wanted:
        ends += [one.name for one in spot if one.is_at_risk]
    ends += [one.name for one in _surplus(lasting, len(lasting) - wanted - spares)]
    return SpotPlan(spot=launches, on_demand=max(0, lacking - len(stand_ins)), ends=tuple(ends))


def _launches(
    count: int, spot: Iterable[PoolInstance], zones: Sequence[str], avoided: Collection[str]
) -> tuple[str, ...]:
    held = Counter(one.zone for one in spot)
    found: list[str] = []
    for _ in range(count):
        if (zone := choose_zone(zones, held, avoided)) is None:
            break
        held[zone] += 1
        found.append(zone)
    return tuple(found)


def _surplus(instances: Sequence[PoolInstance], count: int) -> list[PoolInstance]:
    """So many of them, those that start before those that are ready, the latest first."""
    if count <= 0:
        return []
    latest = list(reversed(instances))
    return sorted(latest, key=lambda one: one.is_ready)[:count]
