"""What the registry says of versions: which are deployed or shut down, and what their tenants may have.

An index of the deployed versions is kept by the registry's callbacks: there may be a hundred thousand of them, and a
pass asks about a few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from cachetools import LRUCache
from msgspec import UNSET

from pilotlight_autoscaler.passes.version_views import function_of
from pilotlight_autoscaler.policy.shares import ShareTerms
from pilotlight_autoscaler.policy.tenant_rooms import floors
from pilotlight_autoscaler.policy.version_shutdown import DELETED, why_shut_down
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.steady_clock import SteadyClock, run_time
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.rollouts.capacity import ArmCapacity, capacities
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds, bounds_of
from pilotlight_core.model.scaling.scale_record import ScaleRecord
from pilotlight_core.model.spec import AppRecord, FunctionSpec, VersionRecord

FLOORS_KEPT_S = 1.0
"""So long floors are not worked out again, unless a record changes."""
TERMS_KEPT = 10_000
"""Tenants whose share among others is not worked out again, unless a record changes."""
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
        wall: Callable[[], float] | None = None,
        load_s_of: Callable[[str], float] = lambda _: 0.0,
    ) -> None:
        """`wall` is unix seconds; `load_s_of`: how long a start of `tenant:app.function` takes, in seconds.

        Containers of warm windows start so long before these open. Unless `wall` says otherwise, a clock that is set
        for a moment opens and ends no window, no word and no run.
        """
        self._registry = registry
        self.wall = wall or SteadyClock()
        self._ends = wall or run_time
        """By it runs end."""
        self._load_s_of = load_s_of
        self.said = {f"{said.tenant}:{said.app}.{said.function}" for said in registry.scales()}
        """The functions (`tenant:app.function`) of which people say something, or have until it ended."""
        self._bounds: LRUCache[str, _KnownBounds] = LRUCache(BOUNDS_KEPT)
        """By version: the hours of a window are dear to work out for each pass."""
        self._apps: dict[str, AppRecord] = {}
        """By key, those that the index has."""
        self._current: dict[str, str] = {}
        """version -> key of the app whose function it is."""
        self._runs: set[str] = set()
        """Keys of apps that end by themselves."""
        self._by_function: dict[str, str] = {}
        """`tenant:app.function` -> its current version."""
        self._floored: set[str] = set()
        """Current versions that keep containers without calls, or may: by a window, or by people's word."""
        self._floors: tuple[float, dict[str, int]] | None = None
        """And the unix second at which they were worked out."""
        self._stirred: set[str] = set()
        self._are_limits_changed = False
        self._terms: dict[str, ShareTerms] = {}
        """By tenant."""
        self.arms: dict[str, ArmCapacity] = {}
        """By version, what the sides of rollouts that run keep."""
        self._sides: dict[str, tuple[str, ...]] = {}
        """`tenant:app.function` -> the versions of it that are sides of one."""
        self._rolled: dict[str, tuple[str, ...]] = {}
        """Key of a rollout's record -> its functions, as in `_sides`."""
        for rollouts in registry.iter_rollouts():
            self._note_rollout(f"rollout.{rollouts.tenant}.{rollouts.app}", rollouts)
        for app in registry.iter_apps():
            self._index(f"app.{app.tenant}.{app.app}", app)
        registry.on_change.append(self._changed)

    def take_changed(self) -> tuple[set[str], bool]:
        """The versions whose apps have changed since the last time, and whether limits may have."""
        changed, self._stirred = self._stirred, set()
        are_limits, self._are_limits_changed = self._are_limits_changed, False
        return changed, are_limits

    def wake(self, tenant: str) -> None:
        """Something that all functions of a tenant depend on has changed: they are decided on at once."""
        for app in self._registry.iter_apps(tenant):
            self._stirred.update(app.functions.values())

    def current_of(self, functions: Iterable[str], known: Collection[str] = ()) -> set[str]:
        """The deployed versions of functions (`tenant:app.function`); of those that are `known` too if they are not."""
        found = {version for name in functions if (version := self._by_function.get(name)) is not None}
        return {version for version in found if version in known or self.is_deployed(version)}

    def arms_of(self, functions: Iterable[str]) -> set[str]:
        """The versions of functions (`tenant:app.function`) that are sides of a rollout, of apps that serve."""
        if not self._sides:
            return set()
        return {version for name in functions for version in self._sides.get(name, ())}

    def close(self) -> None:
        """Listen to the registry no more."""
        self._registry.on_change.remove(self._changed)

    def is_deployed(self, version: str) -> bool:
        """Whether it is a function's present version, and its app serves."""
        app = self._apps.get(self._current.get(version, ""))
        return app is not None and not self._why_shut_down(app, app.tenant)

    def deployed(self, versions: Iterable[str]) -> set[str]:
        """Those of the versions that are deployed."""
        return {version for version in versions if self.is_deployed(version)}

    def over(self) -> set[str]:
        """The current versions of apps whose time is over. Of all else that ends an app, `take_changed` says it."""
        wall = self._ends()
        ended = [app for key in self._runs if (app := self._apps[key]).has_ended(wall)]
        return {version for app in ended for version in app.functions.values()}

    def with_floors(self) -> set[str]:
        """The deployed versions that keep containers without calls."""
        return self.deployed(self._floored)

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
        return self._why_shut_down(app, record.tenant)

    def _why_shut_down(self, app: AppRecord | None, tenant: str) -> str:
        is_run = app is not None and app.ends_at
        return why_shut_down(app, self._registry.tenant_nowait(tenant), self._ends() if is_run else 0.0)

    def limits_of(self, tenant: str) -> Limits:
        """What a tenant may have."""
        return self._registry.limits(tenant, "").tenant

    def network_of(self, tenant: str) -> tuple[str, ...]:
        """What a tenant's functions may be given of what they ask for by `network=`."""
        record = self._registry.tenant_nowait(tenant)
        return () if record is None else record.network

    def share_terms(self, tenant: str) -> ShareTerms:
        """What a tenant may have of the fleet where several want it."""
        terms = self._terms.get(tenant)
        if terms is None:
            if len(self._terms) >= TERMS_KEPT:
                self._terms.clear()
            terms = self._terms[tenant] = ShareTerms.of(self._registry.weight_of(tenant), self.limits_of(tenant))
        return terms

    def bounds(self, records: Iterable[VersionRecord]) -> dict[str, ScaleBounds]:
        """By version, what those are held to of which people or warm windows say something now."""
        wall, said = self.wall(), self.said
        return {
            record.id: self._bounds_of(record, wall)
            for record in records
            # A trial has one container, whatever is said of its function.
            if (record.spec.warm is not UNSET or (said and function_of(record) in said))
            and not record.spec.placing.slice
        }

    def floors(self) -> dict[str, int]:
        """The floors of deployed versions that have one, as far as their tenants' limits allow."""
        wall = self.wall()
        if self._floors is None or not 0.0 <= wall - self._floors[0] < FLOORS_KEPT_S:
            found = ((version, self._registry.version(version)) for version in self.with_floors())
            records = {version: record for version, record in found if record is not None}
            self._floors = wall, floors(records, self.limits_of, self.bounds(records.values()))
        return self._floors[1]

    def _changed(self, key: str, record: Any) -> None:
        kind, _, name = key.partition(".")
        if kind == "app":
            self._index(key, record)
        elif kind == "version":
            self._note_floor(name)  # a record may come after its app's
        elif kind == "rollout":
            self._note_rollout(key, record)
        elif kind == "scale":
            self._note_word(*name.split("."), is_gone=record is None)
        elif kind == "curves":
            self._note_curves(name)
        elif kind != "weights":  # what versions have of those is in their own records
            self._floors = None  # limits of its tenant perhaps
            self._are_limits_changed = True
            self._terms.clear()

    def _note_rollout(self, key: str, record: RolloutRecord | None) -> None:
        """What a rollout's sides keep, as its record says now."""
        before = self._rolled.pop(key, ())
        stirred = {version for name in before for version in self._sides.pop(name, ())}
        for version in stirred:
            self.arms.pop(version, None)
        running = record.running if record is not None else None
        if record is not None and running is not None:
            for function in running.canary:
                if found := capacities(running, function):
                    self.arms |= found
                    self._sides[f"{record.tenant}:{record.app}.{function}"] = tuple(found)
            self._rolled[key] = tuple(f"{record.tenant}:{record.app}.{function}" for function in running.canary)
        self._stirred |= stirred.union(*(self._sides.get(name, ()) for name in self._rolled.get(key, ())))

    def _note_curves(self, version: str) -> None:
        """Its function's present version goes by them, whichever version they were measured of."""
        record = self._registry.version(version)
        of = self._by_function.get(f"{record.tenant}:{record.app}.{record.function}") if record is not None else version
        self._stirred.update({version, of or version} & self._current.keys())

    def _note_word(self, tenant: str, app: str, function: str, *, is_gone: bool) -> None:
        (self.said.discard if is_gone else self.said.add)(f"{tenant}:{app}.{function}")
        self._floors = None
        known = self._apps.get(f"app.{tenant}.{app}")
        if known is not None and (version := known.functions.get(function)) is not None:
            self._note_floor(version)
            self._stirred.add(version)  # what is said may be that its past counts again

    def _index(self, key: str, app: AppRecord | None) -> None:
        before = self._apps.pop(key, None)
        now = set(app.functions.values()) if app is not None else set()
        self._stirred |= now if before is None else now.union(before.functions.values())
        for version in set(before.functions.values()) - now if before is not None else ():
            self._current.pop(version, None)
            self._note_floor(version)
        for name in _names(before):
            self._by_function.pop(name, None)
        self._runs.discard(key)
        if app is not None:
            if app.ends_at:
                self._runs.add(key)
            self._apps[key] = app
            self._by_function |= _names(app)
        for version in now:
            self._current[version] = key
            self._note_floor(version)

    def _note_floor(self, version: str) -> None:
        record = self._registry.version(version) if version in self._current else None
        if record is not None and self._may_have_floor(record):
            self._floored.add(version)
            self._floors = None
        elif version in self._floored:
            self._floored.remove(version)
            self._floors = None

    def _may_have_floor(self, record: VersionRecord) -> bool:
        return bool(record.spec.min_containers) or record.spec.warm is not UNSET or function_of(record) in self.said

    def _bounds_of(self, record: VersionRecord, wall: float) -> ScaleBounds:
        said = self._registry.scale_nowait(record.tenant, record.app, record.function)
        lead_s = 0.0 if record.spec.warm is UNSET else float(math.ceil(self._load_s_of(function_of(record))))
        terms, known = (record.spec, said, lead_s), self._bounds.get(record.id)
        if known is None or known.terms != terms or not known.since <= wall < known.bounds.changes_at:
            bounds = bounds_of(record.spec, said, wall, lead_s=lead_s)
            known = self._bounds[record.id] = _KnownBounds(terms, wall, bounds)
        return known.bounds


def _names(app: AppRecord | None) -> dict[str, str]:
    """The current versions of an app's functions, by `tenant:app.function`."""
    return {f"{app.tenant}:{app.app}.{name}": version for name, version in app.functions.items()} if app else {}
