"""Secrets in a bucket of the bus, which gateways alone may read and write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from pilotlight_core.bus import Bus, NewValue
from pilotlight_core.model.subjects import SECRET_BUCKET
from pilotlight_gateway.secrets.bus_data_keys import BusDataKeys
from pilotlight_gateway.secrets.secret_records import SecretRecord
from pilotlight_gateway.secrets.secret_store import ChangeSecret

MARKER_SECONDS = 3_600.0
"""Retention of removal markers: longer than a mirror goes without reading the bucket again."""
LIST_TRIES, LIST_AGAIN_S = 40, 0.05
"""A server of a cluster may list what it does not have yet of the last moments."""
_encoder = msgspec.msgpack.Encoder()
_secret = msgspec.msgpack.Decoder(SecretRecord)


class BusSecrets(BusDataKeys):
    """The `SecretStore` over the bus, while `running` is open."""

    def __init__(self, bus: Bus) -> None:
        super().__init__(bus, SECRET_BUCKET)
        self._mirror = bus.mirror(SECRET_BUCKET, "secret.")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the bucket until the block ends."""
        async with self._mirror:
            yield

    def secrets(self, tenant: str) -> list[SecretRecord]:
        found = [entry.value for key, entry in self._mirror.items() if key.startswith(f"secret.{tenant}.")]
        return sorted(map(_secret.decode, found), key=lambda record: record.name)

    def secret_nowait(self, tenant: str, name: str) -> SecretRecord | None:
        entry = self._mirror.get(_key(tenant, name))
        return None if entry is None else _secret.decode(entry.value)

    def is_fresh(self) -> bool:
        return self._mirror.fresh(time.monotonic())

    async def secret(self, tenant: str, name: str) -> SecretRecord | None:
        entry = await self._mirror.fetch(_key(tenant, name))
        return None if entry is None else _secret.decode(entry.value)

    async def change_secret(self, tenant: str, name: str, change: ChangeSecret) -> SecretRecord | None:
        wanted: SecretRecord | None = None

        def changed(data: bytes | None) -> NewValue | None:
            nonlocal wanted
            present = None if data is None else _secret.decode(data)
            wanted = change(present)
            if wanted == present:
                return None
            return NewValue(None, MARKER_SECONDS) if wanted is None else NewValue(_encoder.encode(wanted))

        await self._kv.change(_key(tenant, name), changed)
        await self._mirror.fetch(_key(tenant, name))  # whoever asks here next finds it
        return wanted

    async def names(self, tenant: str, stored: str) -> set[str]:
        # A list with one record has all that were stored before it: each server stores them in the same order.
        prefix, found = f"secret.{tenant}.", set[str]()
        for _ in range(LIST_TRIES):
            found = {key.removeprefix(prefix) async for key in self._kv.each_key(f"{prefix}*")}
            if stored in found:
                break
            await asyncio.sleep(LIST_AGAIN_S)
        return found


def _key(tenant: str, name: str) -> str:
    return f"secret.{tenant}.{name}"
