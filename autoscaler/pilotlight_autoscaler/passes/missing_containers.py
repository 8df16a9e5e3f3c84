"""The containers that versions should have and have not, as far as their tenants' limits allow them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.version_views import explain_level, holders
from pilotlight_autoscaler.policy.scaling_policy import wanted_by_demand, wanted_by_level
from pilotlight_autoscaler.policy.tenant_rooms import LimitedVersion, TenantRooms
from pilotlight_placement.asks.ask import Ask


class MissingContainers:
    def __init__(self, state: PassState) -> None:
        given = state.given
        self._state = state
        self._rooms = TenantRooms(given.limits_of, holders(state.world, given.versions), given.weight_of)
        self.limited: list[LimitedVersion] = []
        """The versions with more missing than their tenant's limits allow."""

    def find(self, decided: Collection[str]) -> dict[Ask, list[str]]:
        """For each ask those of the versions that miss a container, in turn, each as often as it misses one."""
        asks: dict[Ask, list[str]] = {}
        short = self._short(decided)
        backoff = self._state.world.backoff
        delayed = backoff.refused(short, self._state.at)
        for version in self._in_order(short.keys() - delayed):
            # One that fails is tried by one container, however many should be there.
            allowed = self._allowed(version, 1 if backoff.is_failing(version) else short[version])
            if allowed > 0:
                backoff.tried(version, self._state.at)
                asks.setdefault(self._state.ask(version), []).extend([version] * allowed)
        return asks

    def _allowed(self, version: str, wanted: int) -> int:
        """How many of the missing containers the tenant's limits allow; the rest is noted."""
        record = self._state.versions[version]
        allowed, reached = self._rooms.take(record.tenant, record.spec, wanted)
        if reached is not None:
            self.limited.append(LimitedVersion(version=version, missing=wanted - allowed, reached=reached))
        return allowed

    def _short(self, decided: Collection[str]) -> dict[str, int]:
        """Those of the versions that should have more containers, and how many."""
        short = {}
        for version in decided:
            view = self._state.views[version]
            count = self._state.wanted(version) - view.size
            if count > 0 and wanted_by_level(view) > wanted_by_demand(view):
                self._state.decision.notes.append(explain_level(self._state.versions[version], view))
            if count > 0:
                short[version] = count
        return short

    def _in_order(self, versions: Iterable[str]) -> list[str]:
        """The one that has waited longest first, of the tenant that holds least for its weight."""
        views = self._state.views
        waiting = {name: told.oldest_ms if (told := views[name].demand) else 0.0 for name in versions}
        ordered = sorted(waiting, key=lambda version: (-waiting[version], version))
        return self._rooms.in_turn((version, self._state.versions[version].tenant) for version in ordered)


def in_turn(missing: Mapping[Ask, int]) -> tuple[tuple[Ask, int], ...]:
    """What to start, in order: the first of each before the second of any, so that a burst leaves others a place."""
    first = [(ask, 1) for ask, count in missing.items() if count > 0]
    return (*first, *((ask, count - 1) for ask, count in missing.items() if count > 1))
