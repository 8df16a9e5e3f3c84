"""Keys of tenants on record: of the bucket of what all processes of a platform must know, where agents read too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.bus.kv import NewValue
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.subjects import PLATFORM_BUCKET
from pilotlight_core.model.supply.trust_records import TRUST_KEYS, TrustRecord

ChangeTrust = Callable[[TrustRecord], TrustRecord]
"""From the present record, empty if there is none, to the next one; may raise to refuse."""


class TrustReader(Protocol):
    async def read(self, tenant: str) -> TrustRecord | None:
        """Whose signatures count for a tenant; None: nobody's. Raises BusError."""


class TrustStore(TrustReader, Protocol):
    async def change(self, tenant: str, change: ChangeTrust) -> TrustRecord:
        """Raises BusError, Conflict, and what `change` does."""
        ...


class TrustKeys:
    """The `TrustStore` on the bus."""

    def __init__(self, bus: Bus) -> None:
        self._kv = bus.kv(PLATFORM_BUCKET)

    async def read(self, tenant: str) -> TrustRecord | None:
        entry = await self._kv.get(_key(tenant))
        return None if entry is None else msgspec.msgpack.decode(entry.value, type=TrustRecord)

    async def change(self, tenant: str, change: ChangeTrust) -> TrustRecord:
        made = TrustRecord(tenant=tenant)

        def changed(value: bytes | None) -> NewValue | None:
            nonlocal made
            present = TrustRecord(tenant=tenant)
            if value is not None:
                present = msgspec.msgpack.decode(value, type=TrustRecord)
            made = change(present)
            return None if made == present else NewValue(msgspec.msgpack.encode(made))

        await self._kv.change(_key(tenant), changed)
        return made


@dataclass
class MemoryTrust:
    """The `TrustStore` of tests."""

    records: dict[str, TrustRecord] = field(default_factory=dict)

    async def read(self, tenant: str) -> TrustRecord | None:
        return self.records.get(tenant)

    async def change(self, tenant: str, change: ChangeTrust) -> TrustRecord:
        self.records[tenant] = change(self.records.get(tenant) or TrustRecord(tenant=tenant))
        return self.records[tenant]


def _key(tenant: str) -> str:
    return f"{TRUST_KEYS}{check_name(tenant, 'tenant')}"
