"""What the registry says of versions: which are deployed or shut down, and what their tenants may have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from pilotlight_autoscaler.policy.tenant_rooms import floors
from pilotlight_autoscaler.policy.version_shutdown import DELETED, why_shut_down
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import VersionRecord


class RegisteredVersions:
    """Reads the registry for passes; from memory, except for what memory lacks."""

    def __init__(self, registry: Registry, wall: Callable[[], float] = time.time) -> None:
        """`wall` is unix seconds."""
        self._registry = registry
        self._wall = wall

    def deployed(self) -> set[str]:
        """The versions of all apps that serve."""
        wall = self._wall()
        return {
            version
            for app in self._registry.iter_apps()
            if not why_shut_down(app, self._registry.tenant_nowait(app.tenant), wall)
            for version in app.functions.values()
        }

    async def read(self, ids: Iterable[str]) -> dict[str, VersionRecord]:
        """The records of versions, without those that are deleted."""
        found = {}
        for version in ids:
            record = self._registry.version(version) or await self._registry.fetch_version(version)
            if record is not None:
                found[version] = record
        return found

    async def shut_down(self, ids: Iterable[str], records: Mapping[str, VersionRecord]) -> dict[str, str]:
        """Those of the versions `ids` of which nothing should run, and why."""
        found = {}
        for version in ids:
            record = records.get(version)
            if why := DELETED if record is None else await self._why(record):
                found[version] = why
        return found

    async def _why(self, record: VersionRecord) -> str:
        app = self._registry.app_nowait(record.tenant, record.app)
        if app is None:  # its deploy may be newer than the mirror
            app = await self._registry.app(record.tenant, record.app)
        return why_shut_down(app, self._registry.tenant_nowait(record.tenant), self._wall())

    def limits_of(self, tenant: str) -> Limits:
        """What a tenant may have."""
        return self._registry.limits(tenant, "").tenant

    def weight_of(self, tenant: str) -> float:
        """A tenant's share among those that wait."""
        return self._registry.weight_of(tenant)

    def floors(self, deployed: Iterable[str]) -> dict[str, int]:
        """The floors of deployed versions, as far as their tenants' limits allow."""
        records = {version: record for version in deployed if (record := self._registry.version(version)) is not None}
        return floors(records, self.limits_of)
