"""Zones that have just taken machines away, or had none to give: others are tried first.

A zone is avoided from its preemption until a machine that was launched there afterwards is ready, or until the list is
cleared: with fewer than two zones left it says little, and what stands on it longest has had the longest time to
recover. (SkyServe's rule, EuroSys '25; the list forgets a zone after an hour, too: who launches nothing there would
never learn that it has recovered.)
"""

from __future__ import annotations

from collections.abc import Collection

LEAST_ACTIVE = 2
FORGOTTEN_AFTER_S = 3_600.0


class AvoidedZones:
    """Instants are seconds of any one clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        """Zone -> when it last took a machine away."""

    def zone_preempted(self, zone: str, at: float) -> None:
        """It took a machine away, or will, or had none to give."""
        self._since.pop(zone, None)
        self._since[zone] = at

    def zone_served(self, zone: str, launched_at: float) -> None:
        """A machine that was launched there then is ready."""
        if self._since.get(zone, launched_at + 1.0) <= launched_at:
            del self._since[zone]

    def avoided(self, zones: Collection[str], at: float) -> frozenset[str]:
        """Those of the zones of a pool that are avoided; all are forgotten where fewer than two others are left."""
        for zone in [zone for zone, since in self._since.items() if at - since > FORGOTTEN_AFTER_S]:
            del self._since[zone]
        listed = [zone for zone in self._since if zone in zones]
        if len(zones) - len(listed) < min(LEAST_ACTIVE, len(zones)):
            # The zone that has just preempted stays: to go back there at once is the one thing that cannot be right.
            for zone in listed[:-1] if len(zones) > 1 else listed:
                del self._since[zone]
            listed = [zone for zone in listed if zone in self._since]
        return frozenset(listed)
