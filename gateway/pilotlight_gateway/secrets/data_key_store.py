"""The port of stored data keys, and its in-memory twin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_gateway.secrets.secret_records import DataKeyRecord


class DataKeyErased(Exception):
    """The tenant was erased: there is no key, and none is made any more."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"The tenant {tenant} was erased: nothing is stored for it.")


def destroyed_key(tenant: str) -> DataKeyRecord:
    """What stays in the place of a key that was destroyed."""
    return DataKeyRecord(tenant=tenant, id="", platform_key="", sealed=b"", created_at=0.0)


def check_replaced(present: DataKeyRecord | None, tenant: str, former: str) -> None:
    """Refuse a data key in the place of one that was destroyed since it was read.

    Raises:
        DataKeyErased.
    """
    if (present is None and former) or (present is not None and present.is_destroyed):
        raise DataKeyErased(tenant)


class DataKeyStore(Protocol):
    """A key of each tenant, and what seals them. All methods raise BusError."""

    async def data_key(self, tenant: str) -> DataKeyRecord | None:
        """As the bus has it; that of an erased tenant is destroyed (`DataKeyRecord.is_destroyed`)."""
        ...

    async def data_keys(self) -> list[DataKeyRecord]:
        """Those of all tenants that were not erased."""
        ...

    async def replace_data_key(self, record: DataKeyRecord, former: str) -> DataKeyRecord:
        """Store a tenant's data key in the place of that with the id `former` ("": of none); the one that is there
        then, which another gateway may have stored before. Raises DataKeyErased: it was destroyed."""
        ...

    async def platform_key(self) -> str:
        """The identity of the key that seals data keys; "": none does yet."""
        ...

    async def claim_platform_key(self, identity: str, former: str) -> str:
        """Store which key seals data keys in the place of `former` ("": of none); the one that is there then."""
        ...

    async def erase_data_key(self, tenant: str) -> bool:
        """Destroy a tenant's data key, also in the files of the bus, and let no other be made; False: there was
        none."""
        ...


@dataclass(kw_only=True)
class MemoryDataKeys:
    """An in-memory `DataKeyStore`."""

    keys: dict[str, DataKeyRecord] = field(default_factory=dict)
    platform: str = ""

    async def data_key(self, tenant: str) -> DataKeyRecord | None:
        return self.keys.get(tenant)

    async def data_keys(self) -> list[DataKeyRecord]:
        return [record for record in self.keys.values() if not record.is_destroyed]

    async def replace_data_key(self, record: DataKeyRecord, former: str) -> DataKeyRecord:
        present = self.keys.get(record.tenant)
        check_replaced(present, record.tenant, former)
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
        present = self.keys.get(tenant)
        self.keys[tenant] = destroyed_key(tenant)
        return present is not None and not present.is_destroyed
