"""What the registry says of versions: which are deployed or shut down, and what their tenants may have."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from cachetools import LRUCache
from msgspec import UNSET

from pilotlight_autoscaler.passes.version_views import function_of
from pilotlight_autoscaler.policy.tenant_rooms import floors
from pilotlight_autoscaler.policy.version_shutdown import DELETED, why_shut_down
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds, bounds_of
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.spec import FunctionSpec, VersionRecord

BOUNDS_KEPT = 10_000
"""Versions; those beyond are worked out for each pass."""


class _KnownBounds(NamedTuple):
    terms: tuple[FunctionSpec, ScaleRecord | None, float]
    """What they were worked out of."""
    since: float
    """The unix second for which they were; a clock that was set back comes before it."""
    bounds: ScaleBounds


class RegisteredVersions:
    """Reads the registry for passes; from memory, except for what memory lacks."""

    def __init__(
        self,
        registry: Registry,
        wall: Callable[[], float] = time.time,
        load_s_of: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        """`wall` is unix seconds; `load_s_of`: how long a start of `tenant:app.function` takes, in seconds.

        Containers of warm windows start so long before these open.
        """
        self._registry = registry
        self._wall = wall
        self._load_s_of = load_s_of
        self._said = {(said.tenant, said.app, said.function) for said in registry.scales()}
        """The functions of which people say something, or have until it ended."""
        registry.on_change.append(self._on_record)
        self._bounds: LRUCache[str, _KnownBounds] = LRUCache(BOUNDS_KEPT)
        """By version: the hours of a window are dear to work out for each pass."""

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

    def bounds(self, records: Iterable[VersionRecord]) -> dict[str, ScaleBounds]:
        """By version, what those are held to of which people or warm windows say something now."""
        wall, said = self._wall(), self._said
        return {
            record.id: self._bounds_of(record, wall)
            for record in records
            # Few have any, and each pass asks for all. A trial has one container, whatever is said of its function.
            if (record.spec.warm is not UNSET or (said and (record.tenant, record.app, record.function) in said))
            and not record.spec.placing.slice
        }

    def floors(self, deployed: Iterable[str]) -> dict[str, int]:
        """The floors of deployed versions, as far as their tenants' limits allow."""
        records = {version: record for version in deployed if (record := self._registry.version(version)) is not None}
        return floors(records, self.limits_of, self.bounds(records.values()))

    def _on_record(self, key: str, record: object) -> None:
        match key.split("."):
            case ["scale", tenant, app, function]:
                (self._said.discard if record is None else self._said.add)((tenant, app, function))

    def _bounds_of(self, record: VersionRecord, wall: float) -> ScaleBounds:
        said = self._registry.scale_nowait(record.tenant, record.app, record.function)
        lead_s = 0.0 if record.spec.warm is UNSET else float(math.ceil(self._load_s_of(function_of(record))))
        terms, known = (record.spec, said, lead_s), self._bounds.get(record.id)
        if known is None or known.terms != terms or not known.since <= wall < known.bounds.changes_at:
            bounds = bounds_of(record.spec, said, wall, lead_s=lead_s)
            known = self._bounds[record.id] = _KnownBounds(terms, wall, bounds)
        return known.bounds
