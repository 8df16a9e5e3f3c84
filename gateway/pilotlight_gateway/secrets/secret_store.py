"""The port of stored secrets, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_gateway.secrets.data_key_store import DataKeyStore, MemoryDataKeys
from pilotlight_gateway.secrets.secret_records import SecretRecord

ChangeSecret = Callable[[SecretRecord | None], SecretRecord | None]


class SecretStore(DataKeyStore, Protocol):
    """Records by tenant, and the keys that seal them. Callers have checked the parts of the keys (`check_name`).

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

    async def names(self, tenant: str, stored: str) -> set[str]:
        """All of a tenant's that were stored before `stored`, which is one of them, and perhaps later ones."""
        ...


@dataclass(kw_only=True)
class MemorySecrets(MemoryDataKeys):
    """An in-memory `SecretStore`. Tests set `fresh`."""

    records: dict[tuple[str, str], SecretRecord] = field(default_factory=dict)
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

    async def names(self, tenant: str, stored: str) -> set[str]:  # noqa: ARG002 - all is known at once
        return {name for owner, name in self.records if owner == tenant}
