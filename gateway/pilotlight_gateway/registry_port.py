"""What the gateway asks of the registry, and a registry in memory for tests.

The real one is `core.host.registry.Registry`. Plain verbs answer from the mirror; async ones ask the bus on a miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.host.registry import KeyRecord, TenantRecord
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.spec import AppRecord, VersionRecord


class RegistryPort(Protocol):
    """Tenants, keys, apps and versions."""

    def fresh(self, at: float | None = None) -> bool: ...
    def tenant_nowait(self, name: str) -> TenantRecord | None: ...
    async def tenant(self, name: str) -> TenantRecord | None: ...
    async def put_tenant(self, record: TenantRecord) -> None: ...
    def key_nowait(self, key_id: str) -> KeyRecord | None: ...
    async def key(self, key_id: str) -> KeyRecord | None: ...
    async def put_key(self, record: KeyRecord) -> None: ...
    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]: ...
    def app_nowait(self, tenant: str, app: str) -> AppRecord | None: ...
    async def app(self, tenant: str, app: str) -> AppRecord | None: ...
    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]: ...
    def version(self, version_id: str) -> VersionRecord | None: ...
    async def fetch_version(self, version_id: str) -> VersionRecord | None: ...
    async def put_version(self, record: VersionRecord) -> None: ...
    async def deploy(self, record: AppRecord, expected_revision: int) -> None: ...


@dataclass(kw_only=True)
class MemoryRegistry:
    """Keeps records in dictionaries. Tests script it: `stale`, and `conflicts`, the deploys that lose their race."""

    tenants: dict[str, TenantRecord] = field(default_factory=dict)
    key_records: dict[str, KeyRecord] = field(default_factory=dict)
    apps: dict[tuple[str, str], AppRecord] = field(default_factory=dict)
    versions: dict[str, VersionRecord] = field(default_factory=dict)
    stale: bool = False
    conflicts: int = 0

    def fresh(self, at: float | None = None) -> bool:  # noqa: ARG002
        return not self.stale

    def tenant_nowait(self, name: str) -> TenantRecord | None:
        return self.tenants.get(name)

    async def tenant(self, name: str) -> TenantRecord | None:
        return self.tenants.get(name)

    async def put_tenant(self, record: TenantRecord) -> None:
        self.tenants[record.name] = record

    def key_nowait(self, key_id: str) -> KeyRecord | None:
        return self.key_records.get(key_id)

    async def key(self, key_id: str) -> KeyRecord | None:
        return self.key_records.get(key_id)

    async def put_key(self, record: KeyRecord) -> None:
        self.key_records[record.id] = record

    def keys(self, tenant: str | None = None) -> Iterator[KeyRecord]:
        return iter([key for key in self.key_records.values() if tenant in (None, key.tenant)])

    def app_nowait(self, tenant: str, app: str) -> AppRecord | None:
        return self.apps.get((tenant, app))

    async def app(self, tenant: str, app: str) -> AppRecord | None:
        return self.apps.get((tenant, app))

    def iter_apps(self, tenant: str | None = None) -> Iterator[AppRecord]:
        return iter([app for app in self.apps.values() if tenant in (None, app.tenant)])

    def version(self, version_id: str) -> VersionRecord | None:
        return self.versions.get(version_id)

    async def fetch_version(self, version_id: str) -> VersionRecord | None:
        return self.versions.get(version_id)

    async def put_version(self, record: VersionRecord) -> None:
        self.versions.setdefault(record.id, record)

    async def deploy(self, record: AppRecord, expected_revision: int) -> None:
        present = self.apps.get((record.tenant, record.app))
        if self.conflicts or (present.revision if present else 0) != expected_revision:
            self.conflicts = max(0, self.conflicts - 1)
            raise Conflict(f"The app {record.app} was changed meanwhile; read it and deploy again.")
        self.apps[record.tenant, record.app] = record
