"""The registry: tenants, keys, limits, apps and versions, as typed records over a live mirror.

    tenant.{tenant}        TenantRecord
    tier.{tier}            Tier             over the configured tier of that name
    limits.{tenant}        LimitsRecord     over its tier's limits
    key.{key id}           KeyRecord
    app.{tenant}.{app}     AppRecord        replaced by compare-and-set: a deploy is atomic for the app
    share.{tenant}.{app}   FunctionShareRecord      other tenants that may call the app's functions
    version.{version id}   VersionRecord    immutable
    curves.{version id}    CurvesRecord     its throughput curves, measured and learnt

Plain methods answer from memory; the async ones of the same name read from the bus what memory lacks. Callers that
decide on a record check `fresh` and fail closed: a disconnected mirror may miss that a key was revoked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import msgspec
import structlog

from pilotlight_core.bus import Bus, KeyConflict, KeyExists, KvEntry, Mirror, NewValue
from pilotlight_core.host.effective_limits import Allowances
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.limits import EffectiveLimits, Tier, load_tiers
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord, LimitsRecord, TenantRecord

__all__ = ["FunctionShareRecord", "KeyRecord", "LimitsRecord", "Registry", "TenantRecord"]

log = structlog.get_logger(__name__)

KINDS: dict[str, type[msgspec.Struct]] = {
    "tenant": TenantRecord, "tier": Tier, "limits": LimitsRecord, "key": KeyRecord, "app": AppRecord,
    "share": FunctionShareRecord, "version": VersionRecord, "curves": CurvesRecord,
}  # fmt: skip
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {kind: msgspec.msgpack.Decoder(cls) for kind, cls in KINDS.items()}
R = TypeVar("R", bound=msgspec.Struct)
W = TypeVar("W", bound=msgspec.Struct | None)
OnRecord = Callable[[str, Any], None]
"""(key, record): the new or changed record; None: it is gone."""


class Registry:
    """The registry in one process; an async context manager, which reads all records on entry.

    `tiers` are the configured ones (default: the standard tiers). The methods `change_…` take a pure function from the
    present record (None: there is none) to the next one; it may raise to refuse. After a conflict it is called again,
    so that no change is lost; repeated conflicts raise Conflict.
    """

    def __init__(self, bus: Bus, tiers: Mapping[str, Tier] | None = None) -> None:
        self._kv = bus.kv(REGISTRY_BUCKET)
        self._mirror: Mirror = bus.mirror(REGISTRY_BUCKET)
        self._mirror.on_change.append(self._changed)
        self._records: dict[str, Any] = {}
        self._allowances = Allowances(self._records, load_tiers() if tiers is None else tiers)
        self.on_change: list[OnRecord] = []
        """Plain, fast functions, called from the read loop for each changed record."""

    async def __aenter__(self) -> Registry:
        await self._mirror.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirror.__aexit__(kind, error, trace)

    def fresh(self, at: float | None = None) -> bool:
        """Whether its answers may be relied on at `at` (monotonic seconds; default: now)."""
        return self._mirror.fresh(time.monotonic() if at is None else at)

    def age(self, at: float) -> float:
        return self._mirror.age(at)

    # -- tenants and keys ---------------------------------------------------------------------------------------

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        return self._get(f"tenant.{name}", TenantRecord)

    async def tenant(self, name: str) -> TenantRecord | None:
        return await self._fetch(f"tenant.{name}", TenantRecord)

    async def put_tenant(self, record: TenantRecord) -> None:
        check_name(record.name, "tenant")
        await self._put(f"tenant.{record.name}", record)

    async def change_tenant(self, name: str, change: Callable[[TenantRecord | None], TenantRecord]) -> TenantRecord:
        return await self._change(f"tenant.{check_name(name, 'tenant')}", change)

    def tenants(self) -> Iterator[TenantRecord]:
        return self._each("tenant.", TenantRecord)

    def key_nowait(self, key_id: str) -> KeyRecord | None:
        return self._get(f"key.{key_id}", KeyRecord)

    async def key(self, key_id: str) -> KeyRecord | None:
        return await self._fetch(f"key.{key_id}", KeyRecord)

    async def put_key(self, record: KeyRecord) -> None:
        check_name(record.id, "key")
        await self._put(f"key.{record.id}", record)

    async def change_key(self, key_id: str, change: Callable[[KeyRecord | None], KeyRecord | None]) -> KeyRecord | None:
        return await self._change(f"key.{check_name(key_id, 'key')}", change)

    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]:
        return (key for key in self._each("key.", KeyRecord) if tenant in (None, key.tenant))

    # -- what tenants are allowed -------------------------------------------------------------------------------

    def limits(self, tenant: str, function: str) -> EffectiveLimits:
        return self._allowances.limits(tenant, function)

    def tier_of(self, tenant: str) -> Tier:
        return self._allowances.tier_of(tenant)

    def weight_of(self, tenant: str) -> float:
        return self._allowances.weight_of(tenant)

    def tier(self, name: str) -> Tier | None:
        return self._allowances.tier(name)

    def tier_configured(self, name: str) -> Tier | None:
        """The configured tier, without the registry's record."""
        return self._allowances.configured(name)

    def tiers(self) -> list[Tier]:
        return self._allowances.tiers()

    async def change_tier(self, name: str, change: Callable[[Tier | None], Tier | None]) -> Tier | None:
        """Change the registry's record of a tier; None removes it, which restores the configured tier."""
        return await self._change(f"tier.{check_name(name, 'tier')}", change)

    async def limits_set(self, tenant: str) -> LimitsRecord | None:
        """The operator's limits for the tenant, from the bus."""
        key = f"limits.{check_name(tenant, 'tenant')}"
        await self._mirror.fetch(key)
        return self._get(key, LimitsRecord)

    async def change_limits(self, tenant: str, change: Callable[[LimitsRecord | None], LimitsRecord]) -> LimitsRecord:
        return await self._change(f"limits.{check_name(tenant, 'tenant')}", change)

    # -- shared functions ---------------------------------------------------------------------------------------

    def share_nowait(self, owner: str, app: str) -> FunctionShareRecord | None:
        return self._get(f"share.{owner}.{app}", FunctionShareRecord)

    async def share(self, owner: str, app: str) -> FunctionShareRecord | None:
        """The app's share record, from the bus."""
        key = f"share.{check_name(owner, 'tenant')}.{check_name(app, 'app')}"
        await self._mirror.fetch(key)
        return self._get(key, FunctionShareRecord)

    async def change_share(
        self, owner: str, app: str, change: Callable[[FunctionShareRecord | None], FunctionShareRecord]
    ) -> FunctionShareRecord:
        return await self._change(f"share.{check_name(owner, 'tenant')}.{check_name(app, 'app')}", change)

    def shares(self) -> Iterator[FunctionShareRecord]:
        return self._each("share.", FunctionShareRecord)

    # -- apps and versions --------------------------------------------------------------------------------------

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return self._get(f"app.{tenant}.{app}", AppRecord)

    async def app(self, tenant: str, app: str) -> AppRecord | None:
        """The app's record, read from the bus, as a deploy requires."""
        key = f"app.{tenant}.{app}"
        await self._mirror.fetch(key)
        return self._get(key, AppRecord)

    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]:
        return self._each("app." if tenant is None else f"app.{tenant}.", AppRecord)

    def version(self, version_id: str) -> VersionRecord | None:
        return self._get(f"version.{version_id}", VersionRecord)

    async def fetch_version(self, version_id: str) -> VersionRecord | None:
        """The version, from the bus if memory lacks it."""
        return await self._fetch(f"version.{version_id}", VersionRecord)

    async def put_version(self, record: VersionRecord) -> None:
        """Store a version; storing it again is allowed.

        Raises:
            Conflict: if its id belongs to another function.
        """
        key = f"version.{check_name(record.id, 'version')}"
        data = _encoder.encode(record)
        try:
            await self._kv.create(key, data)
        except KeyExists:
            kept = await self._fetch(key, VersionRecord)
            if kept is None or (kept.tenant, kept.app, kept.function) != (record.tenant, record.app, record.function):
                raise Conflict(f"The version {record.id} belongs to something else.") from None
        await self._mirror.fetch(key)

    def curves(self, version_id: str) -> CurvesRecord | None:
        return self._get(f"curves.{version_id}", CurvesRecord)

    async def change_curves(
        self, version_id: str, change: Callable[[CurvesRecord | None], CurvesRecord]
    ) -> CurvesRecord:
        return await self._change(f"curves.{check_name(version_id, 'version')}", change)

    async def deploy(self, record: AppRecord, expected_revision: int) -> None:
        """Replace an app's record, if it is still at `expected_revision` (0: there is none yet).

        `record.revision` must be the next one, so that no two writers can both succeed the same state.

        Raises:
            Conflict: after another change of the app.
        """
        if record.revision != expected_revision + 1:
            raise ValueError(f"revision {record.revision} does not follow {expected_revision}")
        key = f"app.{check_name(record.tenant, 'tenant')}.{check_name(record.app, 'app')}"
        entry = await self._mirror.fetch(key)
        present = self._records.get(key)
        if (present.revision if present is not None else 0) != expected_revision:
            raise Conflict(f"The app {record.app} was changed meanwhile; read it and deploy again.")
        data = _encoder.encode(record)
        try:
            await (self._kv.update(key, data, entry.revision) if entry else self._kv.create(key, data))
        except KeyConflict:
            raise Conflict(f"The app {record.app} was changed meanwhile; read it and deploy again.") from None
        finally:
            await self._mirror.fetch(key)

    # -- the mirror as records ----------------------------------------------------------------------------------

    def _changed(self, key: str, entry: KvEntry | None) -> None:
        record = _decoded(key, entry.value if entry is not None else None)
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record
        self._allowances.changed(key)
        for callback in self.on_change:
            callback(key, record)

    def _get(self, key: str, _cls: type[R]) -> R | None:
        record: R | None = self._records.get(key)
        return record

    async def _fetch(self, key: str, cls: type[R]) -> R | None:
        if key not in self._records:
            await self._mirror.fetch(key)
        return self._get(key, cls)

    async def _put(self, key: str, record: msgspec.Struct) -> None:
        await self._kv.put(key, _encoder.encode(record))
        await self._mirror.fetch(key)

    async def _change(self, key: str, change: Callable[[Any], W]) -> W:
        wanted: W

        def changed(data: bytes | None) -> NewValue | None:
            nonlocal wanted
            present = _decoded(key, data)
            wanted = change(present)
            return None if wanted == present else NewValue(None if wanted is None else _encoder.encode(wanted))

        await self._kv.change(key, changed)
        await self._mirror.fetch(key)
        return wanted

    def _each(self, prefix: str, _cls: type[R]) -> Iterator[R]:
        return iter([record for key, record in self._records.items() if key.startswith(prefix)])


def _decoded(key: str, data: bytes | None) -> Any:
    """The record of a key; None if there is none, or it cannot be decoded."""
    kind = key.partition(".")[0]
    if data is not None and kind in _decoders:
        try:
            return _decoders[kind].decode(data)
        except msgspec.DecodeError as error:
            log.error("a registry record cannot be read", key=key, error=str(error))
    return None
