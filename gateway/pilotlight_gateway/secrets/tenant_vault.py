"""Seals and unseals values, by the data key of their tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pilotlight_gateway.secrets.data_keys import DataKeys
from pilotlight_gateway.secrets.platform_keys import open_bytes, seal_bytes
from pilotlight_gateway.secrets.secret_records import SecretRecord
from pilotlight_gateway.secrets.secret_store import SecretStore

WHAT = "secrets"
THEN = ", and set all secrets anew"


class SecretsLost(Exception):
    """`names` were sealed under a key that was given up; they have to be set anew."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class TenantVault:
    """Methods raise NoPlatformKey, PlatformKeyDown and BusError."""

    def __init__(self, store: SecretStore, keys: DataKeys) -> None:
        self.store = store
        self.keys = keys

    async def seal(self, tenant: str, name: str, value: str, at: float) -> tuple[str, bytes]:
        """The id of the data key, made at the unix second `at` if there is none, and the sealed value."""
        data_key, key = await self.keys.make(tenant, at)
        return data_key, await asyncio.to_thread(seal_bytes, key, value.encode(), _context(tenant, name))

    async def open_all(self, tenant: str, secrets: Mapping[str, SecretRecord]) -> dict[str, str]:
        """The values of a tenant's secrets by name. Raises SecretsLost."""
        if not secrets:
            return {}
        present = await self.store.data_key(tenant)
        if lost := tuple(sorted(n for n, one in secrets.items() if present is None or one.data_key != present.id)):
            raise SecretsLost(lost)
        assert present is not None  # noqa: S101 - else all are lost
        key = await self.keys.open(present)
        if key is None:
            raise SecretsLost(tuple(sorted(secrets)))
        return {name: _open_value(key, one) for name, one in secrets.items()}


def _open_value(key: bytes, record: SecretRecord) -> str:
    try:
        return open_bytes(key, record.sealed, _context(record.tenant, record.name)).decode()
    except ValueError:
        raise SecretsLost((record.name,)) from None


def _context(tenant: str, name: str) -> bytes:
    return f"secret {name} of {tenant}".encode()
