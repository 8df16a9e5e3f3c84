"""How much of each model of GPU is free, and how much dearer what is left of a scarce one is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.host_fragmentation import leading_bits
from pilotlight_placement.fragmentation.scarcity import ModelClaims, claims, prices
from pilotlight_placement.fragmentation.scores import devices_of
from pilotlight_placement.hardware.catalogue import Device

BITS = 4
"""What is free is rounded down to so many leading bits, so that one device more or less seldom changes a premium."""
STEPS = 8
"""Premiums are rounded to so many parts of a device's worth."""
MAX_KNOWN = 4096
NO_CLAIMS = ModelClaims(models=(), demand=(), unions=())


class ModelRooms:
    """Free parts of devices by model, and the premiums that follow from them and from the demand."""

    def __init__(self) -> None:
        self._free: dict[str, int] = {}
        self._claims = NO_CLAIMS
        self._rounded: dict[str, int] = {}
        self._premiums: dict[str, float] = {}
        self._known: dict[tuple[tuple[str, int], ...], dict[str, float]] = {}
        """Premiums by what is free, since a fleet at work comes back to the same states."""
        self._stale = False

    def change(self, model: str, parts: int) -> None:
        """Count parts of devices that became free (or, below 0, were taken)."""
        free = self._free[model] = self._free.get(model, 0) + parts
        if (rounded := leading_bits(free, BITS)) != self._rounded.get(model):
            self._rounded[model] = rounded
            self._stale = True

    def claim(self, devices: Iterable[Device], mix: Mapping[AskShape, float]) -> None:
        """Set the models that there are, and the demand for them."""
        there = {device.name: device for device in devices}
        demand: dict[frozenset[str], float] = {}
        for shape, part in mix.items():
            accepted = frozenset(name for name in there if shape.accepts(name))
            if accepted:
                amount = sum(devices_of(shape, there[name]) for name in sorted(accepted)) / len(accepted)
                demand[accepted] = demand.get(accepted, 0.0) + part * amount
        self._claims = claims(sorted(there), demand)
        self._known.clear()
        self._stale = True

    def premium(self, model: str) -> float:
        """What a model's room is worth more than that of the least loaded one, as a part of it."""
        if self._stale:
            self._stale = False
            self._premiums = self._now() if len(self._claims.demand) > 1 else {}
        return self._premiums.get(model, 0.0)

    def _now(self) -> dict[str, float]:
        rooms = tuple(sorted(self._rounded.items()))
        if (known := self._known.get(rooms)) is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = prices(self._claims, self._rounded)
            known = self._known[rooms] = {name: round(price * STEPS) / STEPS for name, price in found.items()}
        return known

    def contents(self) -> dict[str, int]:
        """Free parts by model, without models of which nothing is free."""
        return {model: free for model, free in self._free.items() if free}
