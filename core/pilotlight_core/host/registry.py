"""The registry: tenants, keys, apps and versions, as typed records over a live mirror.

    tenant.{tenant}        TenantRecord
    key.{key id}           KeyRecord
    app.{tenant}.{app}     AppRecord        replaced by compare-and-set: a deploy is atomic for the app
    version.{version id}   VersionRecord    immutable

Plain verbs answer from memory; the async ones of the same name ask the bus when memory has nothing. Whoever decides on
what it reads checks `fresh` and fails closed: a mirror without contact may miss that a key was revoked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeVar

import msgspec
import structlog

from pilotlight_core.host.bus import Bus, Entry, KeyConflict, KeyExists, Mirror
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.subjects import REGISTRY_BUCKET

log = structlog.get_logger(__name__)


class TenantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns functions. Key: `tenant.{name}`."""

    name: str
    created_at: float
    """Unix seconds."""
    weight: float = 1.0
    """Its share among tenants that compete."""
    requests_per_s: float | None = None
    """None: the platform's default."""
    concurrency: int | None = None
    """Live calls at once; None: the platform's default."""
    disabled: bool = False


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An API key. The secret itself is nowhere: only its digest. Key: `key.{id}`."""

    id: str
    tenant: str
    sha256: str
    """Of the secret, hexadecimal."""
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    """Unix seconds."""
    label: str = ""
    revoked: bool = False


KINDS: dict[str, type[msgspec.Struct]] = {
    "tenant": TenantRecord, "key": KeyRecord, "app": AppRecord, "version": VersionRecord,
}  # fmt: skip
_encoder = msgspec.msgpack.Encoder()
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {kind: msgspec.msgpack.Decoder(cls) for kind, cls in KINDS.items()}
R = TypeVar("R", bound=msgspec.Struct)
OnRecord = Callable[[str, Any], None]
"""(key, record): the record is new or changed, or with None gone."""


class Registry:
    """The registry as one process sees it; an async context manager, read once when it opens."""

    def __init__(self, bus: Bus) -> None:
        self._kv = bus.kv(REGISTRY_BUCKET)
        self._mirror: Mirror = bus.mirror(REGISTRY_BUCKET)
        self._mirror.on_change.append(self._changed)
        self._records: dict[str, Any] = {}
        self.on_change: list[OnRecord] = []
        """Called for each record that changes, from the read loop: plain fast functions."""

    async def __aenter__(self) -> Registry:
        await self._mirror.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirror.__aexit__(kind, error, trace)

    def fresh(self, at: float | None = None) -> bool:
        """Whether what it says may be relied on at `at` (monotonic seconds; default: now)."""
        return self._mirror.fresh(time.monotonic() if at is None else at)

    def age(self, at: float) -> float:
        """Seconds since the bus last confirmed it."""
        return self._mirror.age(at)

    # -- tenants and keys ---------------------------------------------------------------------------------------

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        return self._get(f"tenant.{name}", TenantRecord)

    async def tenant(self, name: str) -> TenantRecord | None:
        return await self._fetch(f"tenant.{name}", TenantRecord)

    async def put_tenant(self, record: TenantRecord) -> None:
        check_name(record.name, "tenant")
        await self._put(f"tenant.{record.name}", record)

    def tenants(self) -> Iterator[TenantRecord]:
        return self._each("tenant.", TenantRecord)

    def key_nowait(self, key_id: str) -> KeyRecord | None:
        return self._get(f"key.{key_id}", KeyRecord)

    async def key(self, key_id: str) -> KeyRecord | None:
        return await self._fetch(f"key.{key_id}", KeyRecord)

    async def put_key(self, record: KeyRecord) -> None:
        check_name(record.id, "key")
        await self._put(f"key.{record.id}", record)

    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]:
        return (key for key in self._each("key.", KeyRecord) if tenant in (None, key.tenant))

    # -- apps and versions --------------------------------------------------------------------------------------

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return self._get(f"app.{tenant}.{app}", AppRecord)

    async def app(self, tenant: str, app: str) -> AppRecord | None:
        """The app as the bus has it now: what a deploy must follow."""
        key = f"app.{tenant}.{app}"
        await self._mirror.fetch(key)
        return self._get(key, AppRecord)

    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]:
        return self._each("app." if tenant is None else f"app.{tenant}.", AppRecord)

    def version(self, version_id: str) -> VersionRecord | None:
        """The version, from memory."""
        return self._get(f"version.{version_id}", VersionRecord)

    async def fetch_version(self, version_id: str) -> VersionRecord | None:
        """The version, from the bus if memory has it not."""
        return await self._fetch(f"version.{version_id}", VersionRecord)

    async def put_version(self, record: VersionRecord) -> None:
        """Keep a version. The same one may be kept again.

        Raises:
            Conflict: if its id stands for something else.
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

    async def deploy(self, record: AppRecord, expected_revision: int) -> None:
        """Replace an app's record, if it is still at `expected_revision` (0: there is none yet).

        `record.revision` must be the next one, so that no two writers can both have followed the same state.

        Raises:
            Conflict: if somebody else was first.
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

    def _changed(self, key: str, entry: Entry | None) -> None:
        record = None
        kind = key.partition(".")[0]
        if entry is not None and kind in _decoders:
            try:
                record = _decoders[kind].decode(entry.value)
            except msgspec.DecodeError as error:
                log.error("a registry record cannot be read", key=key, error=str(error))
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record
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

    def _each(self, prefix: str, _cls: type[R]) -> Iterator[R]:
        return iter([record for key, record in self._records.items() if key.startswith(prefix)])
