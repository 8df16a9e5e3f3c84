"""The keys that seal tenants' blobs: data keys of their own, which gateways and duties read and none else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog
from cachetools import TTLCache

from pilotlight_core.bus import Bus, BusError, StoreRefused
from pilotlight_core.bus.jetstream import NO_STREAM
from pilotlight_core.host.blobs import BlobsDown, BlobsErased, NoBlobStore, SealedBlobs, open_blobs
from pilotlight_core.host.blobs.blob_port import erased_blobs
from pilotlight_core.host.blobs.blob_sealing import BlobKey
from pilotlight_core.host.foundations import ASK_EVERY_S, WrongFoundation
from pilotlight_core.model.subjects import BLOB_KEY_BUCKET
from pilotlight_gateway.secrets.bus_data_keys import BusDataKeys
from pilotlight_gateway.secrets.data_key_store import DataKeyErased, DataKeyStore
from pilotlight_gateway.secrets.data_keys import HELD_S, KEYS_HELD, DataKeys
from pilotlight_gateway.secrets.key_opening import PlatformKeyPair
from pilotlight_gateway.secrets.platform_keys import NoPlatformKey, PlatformKeyDown

WHAT = "blobs"
THEN = ": what is sealed is lost with it, and files that are uploaded again are there again"

IsErased = Callable[[str], bool]
"""Whether a tenant was erased, as far as this process knows."""

log = structlog.get_logger(__name__)


def nobody_is(_tenant: str) -> bool:
    """Of a process that does not follow tenants: destroyed keys are in its memory for some minutes more. That no other
    is made follows from what is stored."""
    return False


class TenantBlobKeys:
    """`BlobKeys` over stored data keys."""

    def __init__(
        self,
        store: DataKeyStore,
        keys: DataKeys,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_erased: IsErased = nobody_is,
    ) -> None:
        self.store = store
        self.keys = keys
        self._is_erased = is_erased
        self._wall = wall
        self._known: TTLCache[str, BlobKey] = TTLCache(KEYS_HELD, HELD_S, clock)

    async def find(self, tenant: str) -> BlobKey | None:
        try:
            return await self.find_to_write(tenant)
        except BlobsErased:
            return None

    async def find_to_write(self, tenant: str) -> BlobKey | None:
        self._check(tenant)
        known: BlobKey | None = self._known.get(tenant)
        return known if known is not None else await self._key(tenant, make=False)

    async def make(self, tenant: str) -> BlobKey:
        self._check(tenant)
        known: BlobKey | None = self._known.get(tenant)
        if known is None:
            known = await self._key(tenant, make=True)
        assert known is not None  # noqa: S101 - one is made
        return known

    async def erase(self, tenant: str) -> bool:
        """Destroy a tenant's key, with all that it seals, and let no other be made; False: there was none."""
        erased = await self.keys.erase(tenant)
        self.forget(tenant)
        return erased

    async def is_there(self, tenant: str) -> bool:
        """Whether a tenant has a key."""
        return await self.keys.is_there(tenant)

    def forget(self, tenant: str) -> None:
        """Have a tenant's key in memory no longer."""
        self._known.pop(tenant, None)
        self.keys.forget(tenant)

    def _check(self, tenant: str) -> None:
        if self._is_erased(tenant):
            raise erased_blobs(tenant)

    async def _key(self, tenant: str, *, make: bool) -> BlobKey | None:
        """Asked anew each time while there is none: another gateway may have made one, and sealed by it, just now."""
        try:
            if make:
                _, data = await self.keys.make(tenant, self._wall())
            else:
                record = await self.store.data_key(tenant)
                if record is not None and record.is_destroyed:
                    raise erased_blobs(tenant)
                opened = None if record is None else await self.keys.open(record)
                if opened is None:
                    return None
                data = opened
        except DataKeyErased:
            raise erased_blobs(tenant) from None
        except NoPlatformKey as error:
            # Why is for operators: it has paths, and names of keys.
            log.error("blobs cannot be sealed or opened", why=str(error))
            raise NoBlobStore("The key of blobs cannot be used: this platform's operator has to mend that.") from None
        except (PlatformKeyDown, BusError) as error:
            log.warning("blobs cannot be sealed or opened now", why=str(error))
            raise BlobsDown("The key of this platform's blobs cannot be asked for now.") from None
        key = self._known[tenant] = BlobKey(tenant, data)
        return key


class PlatformBlobs:
    """The blobs of a gateway or of duties, and what seals them."""

    def __init__(
        self, url: str, bus: Bus, pair: PlatformKeyPair, *, seals: bool, is_erased: IsErased = nobody_is
    ) -> None:
        store = BusDataKeys(bus, BLOB_KEY_BUCKET)
        keys = DataKeys(store, *pair, what=WHAT, then=THEN, spares=True)
        self.keys = TenantBlobKeys(store, keys, is_erased=is_erased)
        self.seals = seals
        self.blobs = SealedBlobs(open_blobs(url), self.keys, seals=seals)

    async def check(self) -> None:
        """See, at the start, whether what seals blobs can be used: who is to seal does not start without.

        Who only has to open some says so, and serves all that needs none of them.

        Raises:
            WrongFoundation, BusError.
        """
        if not self.seals and not await self.keys.store.platform_key():
            return
        try:
            await self.keys.keys.claim()
        except (NoPlatformKey, PlatformKeyDown) as error:
            if self.seals:
                raise WrongFoundation(f"--encrypt-blobs needs the platform's key: {error}.") from None
            log.error("blobs of this platform are sealed, and cannot be opened here", why=str(error))

    async def check_if_made(self) -> bool:
        """Check, in a process that may start before the gateway that makes the bucket; False: it is not there yet.

        Raises:
            WrongFoundation, BusError.
        """
        try:
            await self.check()
        except StoreRefused as error:
            if error.number != NO_STREAM:
                raise
            log.info("what seals blobs is not known yet", error=str(error))
            return False
        return True

    async def check_until_made(self) -> None:
        """After a first `check_if_made`: check as soon as a gateway has made the bucket.

        Raises:
            WrongFoundation, BusError.
        """
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            if await self.check_if_made():
                return
