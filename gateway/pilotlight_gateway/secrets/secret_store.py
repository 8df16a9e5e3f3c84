"""The port of stored secrets, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_gateway.secrets.secret_records import DataKeyRecord, SecretRecord

ChangeSecret = Callable[[SecretRecord | None], SecretRecord | None]


class SecretStore(Protocol):
    """Records by tenant. Callers have checked the parts of the keys (`check_name`).

    Methods that ask the bus raise BusError, `change_secret` also Conflict. `change` is pure, may raise to refuse, and
    is called again after a conflict; None removes the secret.
    """

    def secrets(self, tenant: str) -> list[SecretRecord]:
        """All of a tenant's that are known here, by name."""
        ...

    def secret_nowait(self, tenant: str, name: str) -> SecretRecord | None:
        """As last known here."""
        ...

    def is_fresh(self) -> bool:
        """Whether what is known here is the present state, but for the last seconds."""
        ...

    async def secret(self, tenant: str, name: str) -> SecretRecord | None:
        """As the bus has it."""
        ...

    async def change_secret(self, tenant: str, name: str, change: ChangeSecret) -> SecretRecord | None: ...

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


@dataclass(kw_only=True)
class MemorySecrets:
    """An in-memory `SecretStore`. Tests set `fresh`."""

    records: dict[tuple[str, str], SecretRecord] = field(default_factory=dict)
    keys: dict[str, DataKeyRecord] = field(default_factory=dict)
    platform: str = ""
    fresh: bool = True

    def secrets(self, tenant: str) -> list[SecretRecord]:
        return [record for key, record in sorted(self.records.items()) if key[0] == tenant]

    def secret_nowait(self, tenant: str, name: str) -> SecretRecord | None:
        return self.records.get((tenant, name))

    def is_fresh(self) -> bool:
        return self.fresh

    async def secret(self, tenant: str, name: str) -> SecretRecord | None:
        return self.records.get((tenant, name))

    async def change_secret(self, tenant: str, name: str, change: ChangeSecret) -> SecretRecord | None:
        record = change(self.records.get((tenant, name)))
        if record is None:
            self.records.pop((tenant, name), None)
        else:
            self.records[tenant, name] = record
        return record

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
