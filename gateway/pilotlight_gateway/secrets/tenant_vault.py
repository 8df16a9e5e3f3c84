"""Seals and unseals values: by the data key of their tenant, which the platform's key seals.

Nothing is lost if a gateway dies in between: the platform's key is on disk before it is claimed, and a data key is
stored before a value is sealed by it; of two gateways that make one, both take the first.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

from cachetools import TTLCache
from msgspec.structs import replace

from pilotlight_core.model.ids import token
from pilotlight_gateway.secrets.platform_keys import KEY_BYTES, NoPlatformKey, PlatformKey, open_bytes, seal_bytes
from pilotlight_gateway.secrets.secret_records import DataKeyRecord, SecretRecord
from pilotlight_gateway.secrets.secret_store import SecretStore

KEYS_HELD = 1_000
"""Data keys in memory, of the tenants last asked for."""
HELD_S = 300.0
"""How long: until then a key that its service has disabled still opens what it sealed."""
OTHER_KEY = (
    "secrets of this platform are sealed under the key {theirs}, and this gateway has {ours}: give all gateways one "
    "--secrets-key. If that key is lost for good, start one gateway with --adopt secrets_key, and set all secrets anew"
)


class OtherPlatformKey(NoPlatformKey):
    """This gateway has another key than the one that seals its platform's data keys."""


class SecretsLost(Exception):
    """`names` were sealed under a key that was given up; they have to be set anew."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(", ".join(names))
        self.names = names


class TenantVault:
    """Methods raise NoPlatformKey, PlatformKeyDown and BusError.

    `former` is the key that sealed data keys before: what it sealed is sealed anew, at its next use or by `reseal_all`.
    """

    def __init__(
        self,
        store: SecretStore,
        platform: PlatformKey,
        former: PlatformKey | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._platform = platform
        self._former = former
        self._held: TTLCache[tuple[str, str], bytes] = TTLCache(KEYS_HELD, HELD_S, clock)
        self._names: TTLCache[PlatformKey, str] = TTLCache(2, HELD_S, clock)

    async def seal(self, tenant: str, name: str, value: str, at: float) -> tuple[str, bytes]:
        """The id of the data key, made at the unix second `at` if there is none, and the sealed value."""
        identity = await self.claim()
        present = await self.store.data_key(tenant)
        record = None if present is None else await self._resealed(present, identity)
        if record is None or record.platform_key != identity:
            fresh = await self._fresh(tenant, identity, at)
            record = await self.store.replace_data_key(fresh, "" if record is None else record.id)
        key = await self._opened(record, identity)
        return record.id, await asyncio.to_thread(seal_bytes, key, value.encode(), _context(tenant, name))

    async def open_all(self, tenant: str, secrets: Mapping[str, SecretRecord]) -> dict[str, str]:
        """The values of a tenant's secrets by name. Raises SecretsLost."""
        if not secrets:
            return {}
        present = await self.store.data_key(tenant)
        if lost := tuple(sorted(n for n, one in secrets.items() if present is None or one.data_key != present.id)):
            raise SecretsLost(lost)
        assert present is not None  # noqa: S101 - else all are lost
        identity = await self.claim()
        record = await self._resealed(present, identity)
        if record.platform_key != identity:
            raise SecretsLost(tuple(sorted(secrets)))
        key = await self._opened(record, identity)
        return {name: _open_value(key, one) for name, one in secrets.items()}

    async def claim(self, *, adopt: bool = False) -> str:
        """The identity of this gateway's key.

        It is the platform's from now on if that has none, has this one's former, or if `adopt`.
        """
        registered = await self.store.platform_key()
        takes_over = adopt or not registered or registered == await self._former_identity()
        identity = await self._identity(self._platform, create=takes_over)
        if registered != identity and takes_over:
            registered = await self.store.claim_platform_key(identity, registered)
        if registered != identity:
            raise OtherPlatformKey(OTHER_KEY.format(theirs=registered, ours=identity))
        return identity

    async def reseal_all(self) -> int:
        """Seal by this gateway's key what the former one has sealed; how many data keys that were."""
        identity = await self.claim()
        done = 0
        for record in await self.store.data_keys():
            done += await self._resealed(record, identity) is not record
        return done

    async def _resealed(self, record: DataKeyRecord, identity: str) -> DataKeyRecord:
        """The data key as it is stored now: sealed by this gateway's key, if it or the former one has sealed it."""
        if record.platform_key == identity or self._former is None:
            return record
        if record.platform_key != await self._former_identity():
            return record
        key = await self._former.open(record.tenant, record.sealed)
        sealed = await self._platform.seal(record.tenant, key)
        # Its id stays, and with it all that it has sealed; another gateway may have done the same.
        return await self.store.replace_data_key(replace(record, platform_key=identity, sealed=sealed), record.id)

    async def _former_identity(self) -> str:
        return "" if self._former is None else await self._identity(self._former)

    async def _identity(self, key: PlatformKey, *, create: bool = False) -> str:
        known: str | None = self._names.get(key)
        if known is None:
            known = self._names[key] = await key.identity(create=create)
        return known

    async def _fresh(self, tenant: str, identity: str, at: float) -> DataKeyRecord:
        key = os.urandom(KEY_BYTES)
        sealed = await self._platform.seal(tenant, key)
        return DataKeyRecord(tenant=tenant, id=f"dk_{token()}", platform_key=identity, sealed=sealed, created_at=at)

    async def _opened(self, record: DataKeyRecord, identity: str) -> bytes:
        if record.platform_key != identity:
            raise OtherPlatformKey(OTHER_KEY.format(theirs=record.platform_key, ours=identity))
        known: bytes | None = self._held.get((record.tenant, record.id))
        if known is None:
            known = self._held[record.tenant, record.id] = await self._platform.open(record.tenant, record.sealed)
        return known


def _open_value(key: bytes, record: SecretRecord) -> str:
    try:
        return open_bytes(key, record.sealed, _context(record.tenant, record.name)).decode()
    except ValueError:
        raise SecretsLost((record.name,)) from None


def _context(tenant: str, name: str) -> bytes:
    return f"secret {name} of {tenant}".encode()
