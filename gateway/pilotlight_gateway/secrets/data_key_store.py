"""The port of stored data keys, and its in-memory twin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_gateway.secrets.secret_records import DataKeyRecord


class DataKeyStore(Protocol):
    """A key of each tenant, and what seals them. All methods raise BusError."""

    async def data_key(self, tenant: str) -> DataKeyRecord | None:
        """As the bus has it."""
        ...

    async def data_keys(self) -> list[DataKeyRecord]:
        """Those of all tenants."""
        ...

    async def replace_data_key(self, record: DataKeyRecord, former: str) -> DataKeyRecord:
        """Store a tenant's data key in the place of that with the id `former` ("": of none); the one that is there
        then, which another gateway may have stored before."""
        ...

    async def platform_key(self) -> str:
        """The identity of the key that seals data keys; "": none does yet."""
        ...

    async def claim_platform_key(self, identity: str, former: str) -> str:
        """Store which key seals data keys in the place of `former` ("": of none); the one that is there then."""
        ...

    async def erase_data_key(self, tenant: str) -> bool:
        """Destroy a tenant's data key, also in the files of the bus; False: there is none."""
        ...


@dataclass(kw_only=True)
class MemoryDataKeys:
    """An in-memory `DataKeyStore`."""

    keys: dict[str, DataKeyRecord] = field(default_factory=dict)
    platform: str = ""

    async def data_key(self, tenant: str) -> DataKeyRecord | None:
        return self.keys.get(tenant)

    async def data_keys(self) -> list[DataKeyRecord]:
        return list(self.keys.values())

    async def replace_data_key(self, record: DataKeyRecord, former: str) -> DataKeyRecord:
        present = self.keys.get(record.tenant)
        if present is None or present.id == former:
            self.keys[record.tenant] = record
        return self.keys[record.tenant]

    async def platform_key(self) -> str:
        return self.platform

    async def claim_platform_key(self, identity: str, former: str) -> str:
        if self.platform == former:
            self.platform = identity
        return self.platform

    async def erase_data_key(self, tenant: str) -> bool:
        return self.keys.pop(tenant, None) is not None
