"""The data keys of tenants, which the platform's key seals.

Nothing is lost if a gateway dies in between: the platform's key is on disk before it is claimed, and a data key is
stored before anything is sealed by it; of two gateways that make one, both take the first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from cachetools import TTLCache
from msgspec.structs import replace

from pilotlight_core.model.ids import token
from pilotlight_gateway.secrets.data_key_store import DataKeyErased, DataKeyStore
from pilotlight_gateway.secrets.platform_keys import KEY_BYTES, NoPlatformKey, PlatformKey
from pilotlight_gateway.secrets.secret_records import DataKeyRecord

KEYS_HELD = 1_000
"""Data keys in memory, of the tenants last asked for."""
HELD_S = 300.0
"""How long: until then a key that its service has disabled still opens what it sealed."""
OTHER_KEY = (
    "{what} of this platform are sealed under the key {theirs}, and this process has {ours}: give all gateways and "
    "duties one --secrets-key. If that key is lost for good, start one gateway with --adopt secrets_key{then}"
)


class OtherPlatformKey(NoPlatformKey):
    """This process has another key than the one that seals its platform's data keys."""


class DataKeys:
    """Methods raise NoPlatformKey, PlatformKeyDown and BusError.

    `former` is the key that sealed data keys before: what it sealed is sealed anew, at its next use or by `reseal_all`.
    `what` they seal, and what follows `then` if they are lost, are words of an error. `spares`: a data key that neither
    key opens is refused, and stays until its key is there or is given up by `adopt`; else `make` replaces it.
    """

    def __init__(
        self,
        store: DataKeyStore,
        platform: PlatformKey,
        former: PlatformKey | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        what: str,
        then: str,
        spares: bool = False,
    ) -> None:
        self._store = store
        self._platform = platform
        self._former = former
        self._spares = spares
        self._words = {"what": what, "then": then}
        self._held: TTLCache[tuple[str, str], bytes] = TTLCache(KEYS_HELD, HELD_S, clock)
        self._names: TTLCache[PlatformKey, str] = TTLCache(2, HELD_S, clock)

    async def make(self, tenant: str, at: float) -> tuple[str, bytes]:
        """The id and the bytes of a tenant's data key, which is made at the unix second `at` if there is none.

        Raises:
            DataKeyErased: the tenant was erased.
        """
        identity = await self.claim()
        present = await self._store.data_key(tenant)
        if present is not None and present.is_destroyed:
            raise DataKeyErased(tenant)
        record = None if present is None else await self._resealed(present, identity)
        if record is None or (record.platform_key != identity and not self._spares):
            fresh = await self._fresh(tenant, identity, at)
            record = await self._store.replace_data_key(fresh, "" if record is None else record.id)
        return record.id, await self._opened(record, identity)

    async def open(self, record: DataKeyRecord) -> bytes | None:
        """The bytes of a data key; None: it was destroyed, or sealed under a key that was given up."""
        identity = await self.claim()
        if record.is_destroyed:
            return None
        try:
            record = await self._resealed(record, identity)
        except DataKeyErased:
            return None
        if record.platform_key != identity and not self._spares:
            return None
        return await self._opened(record, identity)

    async def erase(self, tenant: str) -> bool:
        """Destroy a tenant's key, with all that it seals, and let no other be made; False: there was none."""
        erased = await self._store.erase_data_key(tenant)
        self.forget(tenant)
        return erased

    async def is_there(self, tenant: str) -> bool:
        """Whether a tenant has a key."""
        present = await self._store.data_key(tenant)
        return present is not None and not present.is_destroyed

    def forget(self, tenant: str) -> None:
        """Have a tenant's key in memory no longer."""
        for key in [key for key in self._held if key[0] == tenant]:
            del self._held[key]

    async def claim(self, *, adopt: bool = False) -> str:
        """The identity of this process's key.

        It is the platform's from now on if that has none, has this one's former, or if `adopt`.
        """
        registered = await self._store.platform_key()
        if registered and not adopt:
            with suppress(NoPlatformKey):  # the former one is asked for only where it is needed
                if await self._identity(self._platform) == registered:
                    return registered
        takes_over = adopt or not registered or registered == await self._former_identity()
        identity = await self._identity(self._platform, create=takes_over)
        if registered != identity and takes_over:
            registered = await self._store.claim_platform_key(identity, registered)
        if registered != identity:
            raise self._other(registered, identity)
        if adopt and self._spares:
            await self._give_up(identity)
        return identity

    async def _give_up(self, identity: str) -> None:
        """Make others in the place of data keys that neither key opens."""
        for record in await self._store.data_keys():
            if record.platform_key not in (identity, await self._former_identity()):
                fresh = await self._fresh(record.tenant, identity, time.time())
                with suppress(DataKeyErased):
                    await self._store.replace_data_key(fresh, record.id)

    async def reseal_all(self) -> int:
        """Seal by this process's key what the former one has sealed; how many data keys that were."""
        identity = await self.claim()
        done = 0
        for record in await self._store.data_keys():
            with suppress(DataKeyErased):
                done += await self._resealed(record, identity) is not record
        return done

    async def _resealed(self, record: DataKeyRecord, identity: str) -> DataKeyRecord:
        """The data key as it is stored now: sealed by this process's key, if it or the former one has sealed it."""
        if record.platform_key == identity or self._former is None:
            return record
        if record.platform_key != await self._former_identity():
            return record
        key = await self._former.open(record.tenant, record.sealed)
        sealed = await self._platform.seal(record.tenant, key)
        # Its id stays, and with it all that it has sealed; another gateway may have done the same.
        return await self._store.replace_data_key(replace(record, platform_key=identity, sealed=sealed), record.id)

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
            raise self._other(record.platform_key, identity)
        known: bytes | None = self._held.get((record.tenant, record.id))
        if known is None:
            known = self._held[record.tenant, record.id] = await self._platform.open(record.tenant, record.sealed)
        return known

    def _other(self, theirs: str, ours: str) -> OtherPlatformKey:
        return OtherPlatformKey(OTHER_KEY.format(theirs=theirs, ours=ours, **self._words))
