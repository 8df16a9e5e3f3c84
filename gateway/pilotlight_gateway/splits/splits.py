"""Decides on which side of a rollout a call is, from the registry's mirror."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutRecord, Sticky
from pilotlight_core.model.rollouts.split import Drawn, Side, drawn
from pilotlight_core.model.rollouts.split_units import SplitAsker, is_in_cohort, unit_of
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.tenancy.registry_port import RegistryPort

NAMED = -1
"""Of a call whose version was named, or fixed before: no split concerns it."""
UNKNOWN = 0
"""Of a call whose app has no rollouts, as far as is known here."""


class Chosen(NamedTuple):
    """The version of a call, and by what it was chosen."""

    version: VersionRecord
    side: Side | None
    split: int
    """As `CallDescriptor.split`."""


class Splits:
    """Of one gateway."""

    def __init__(self, registry: RegistryPort, counts: Counter[str] | None = None) -> None:
        self._registry = registry
        self.counts: Counter[str] = Counter() if counts is None else counts
        """Calls by what they were drawn by: their unit, or `unkeyed` where they did not say what they should."""

    def record_of(self, version: VersionRecord) -> RolloutRecord | None:
        """What is known here of the rollouts of a version's app; None: it has had none."""
        return self._registry.rollout_nowait(version.tenant, version.app)

    def choose(
        self, record: RolloutRecord, version: VersionRecord, asker: SplitAsker, beside: Side | None = None
    ) -> Chosen:
        """Which version runs a call that names none, of a function whose deployed version is `version`.

        `beside`: the side of the call that makes this one; both are on the same.
        """
        rollout = record.running
        if rollout is None or rollout.control.get(version.function) != version.id:
            return Chosen(version, None, record.revision)
        if not is_in_cohort(rollout.terms.cohort, asker):
            return Chosen(version, None, record.revision)
        if beside is not None and beside.rollout == rollout.id:
            found, hashed = _on(rollout, version.function, beside), beside.unit
        else:
            unit = unit_of(rollout.terms.sticky, asker)
            found, hashed = drawn(rollout, version.function, unit.text), unit.hashed
            if rollout.terms.sticky is not Sticky.CALL and not unit.is_keyed:
                self.counts["unkeyed"] += 1
        if found is None:
            return Chosen(version, None, record.revision)
        chosen = version if found.version == version.id else self._registry.version(found.version)
        if chosen is None:  # it came before what it names: nobody waits for it
            return Chosen(version, None, record.revision)
        self.counts[found.arm] += 1
        return Chosen(chosen, Side(rollout.id, found.arm, found.rho, hashed), record.revision)


def _on(rollout: Rollout, function: str, beside: Side) -> Drawn | None:
    """The version of a function on the side that another call of the same tree is on, as far as it may be now."""
    if (control := rollout.control.get(function)) is None:
        return None
    if beside.arm is Arm.CANARY and rollout.share and function in rollout.canary:
        return Drawn(Arm.CANARY, rollout.canary[function], 0.0)
    if beside.arm is Arm.TWIN and rollout.twin_share and function in rollout.twins:
        return Drawn(Arm.TWIN, rollout.twins[function], 0.0)
    return Drawn(Arm.CONTROL, control, 0.0)
