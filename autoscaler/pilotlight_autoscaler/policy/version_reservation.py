"""The version that devices are reserved for, and for how long. Pure: time is an argument (seconds).

It is one version at a time: of those without a place, the one whose call has waited longest. After `FOR_S` it is
another version's turn, on other devices if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.plan.reservation import Reservation, choose_reservation

AFTER_S = 15.0
"""A version whose call has waited for so long has devices reserved."""
FOR_S = 300.0
"""The longest time, because the containers on the devices may run for ever."""


@dataclass(frozen=True, kw_only=True)
class WaitingVersion:
    version: str
    ask: Ask
    waited_s: float


@dataclass(frozen=True, kw_only=True)
class VersionReservation:
    """Devices reserved for a version, and since when."""

    version: str
    kept: Reservation
    since: float


def next_reservation(
    now: VersionReservation | None, waiting: Sequence[WaitingVersion], fleet: Fleet, at: float
) -> VersionReservation | None:
    long = [each for each in waiting if each.waited_s >= AFTER_S]
    long.sort(key=lambda each: (-each.waited_s, each.version))
    if now is not None and at - now.since < FOR_S and is_available(fleet, now.kept):
        for each in waiting:
            if each.version == now.version:
                return replace(now, kept=replace(now.kept, ask=each.ask))
    last = frozenset() if now is None else now.kept.devices
    # The version that had its turn comes last, and on other devices if possible.
    for each in sorted(long, key=lambda each: now is not None and each.version == now.version):
        if devices := choose_reservation(fleet, each.ask, last):
            return VersionReservation(version=each.version, kept=Reservation(ask=each.ask, devices=devices), since=at)
    return None


def is_available(fleet: Fleet, kept: Reservation) -> bool:
    """Whether all reserved devices still accept containers."""
    places = fleet.places
    return all(
        node in places and device in places[node].by_id and places[node].by_id[device].serves
        for node, device in kept.devices
    )
