"""Data keys in a bucket of the bus."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus, KeyConflict, KeyExists, NewValue
from pilotlight_gateway.secrets.data_key_store import check_replaced, destroyed_key
from pilotlight_gateway.secrets.secret_records import DataKeyRecord, PlatformKeyRecord

PLATFORM = "platform"
ERASES = 16
"""At most, where others make a key meanwhile."""
_encoder = msgspec.msgpack.Encoder()
_data_key = msgspec.msgpack.Decoder(DataKeyRecord)
_platform = msgspec.msgpack.Decoder(PlatformKeyRecord)


class BusDataKeys:
    """The `DataKeyStore` over a bucket."""

    def __init__(self, bus: Bus, bucket: str) -> None:
        self._kv = bus.kv(bucket)

    async def data_key(self, tenant: str) -> DataKeyRecord | None:
        entry = await self._kv.get(f"key.{tenant}")
        return None if entry is None else _data_key.decode(entry.value)

    async def data_keys(self) -> list[DataKeyRecord]:
        found = [_data_key.decode(entry.value) for entry in (await self._kv.entries("key.")).values()]
        return [record for record in found if not record.is_destroyed]

    async def replace_data_key(self, record: DataKeyRecord, former: str) -> DataKeyRecord:
        kept = record

        def changed(data: bytes | None) -> NewValue | None:
            nonlocal kept
            present = None if data is None else _data_key.decode(data)
            check_replaced(present, record.tenant, former)
            if present is not None and present.id != former:
                kept = present
                return None
            kept = record
            return NewValue(_encoder.encode(record))

        await self._kv.change(f"key.{record.tenant}", changed)
        return kept

    async def platform_key(self) -> str:
        entry = await self._kv.get(PLATFORM)
        return "" if entry is None else _platform.decode(entry.value).identity

    async def claim_platform_key(self, identity: str, former: str) -> str:
        kept = identity

        def changed(data: bytes | None) -> NewValue | None:
            nonlocal kept
            present = "" if data is None else _platform.decode(data).identity
            kept = identity if present == former else present
            return None if kept == present else NewValue(_encoder.encode(PlatformKeyRecord(identity=identity)))

        await self._kv.change(PLATFORM, changed)
        return kept

    async def erase_data_key(self, tenant: str) -> bool:
        key, found = f"key.{tenant}", False
        for _ in range(ERASES):
            if (present := await self.data_key(tenant)) is not None and present.is_destroyed:
                return found
            found |= await self._kv.erase(key)
            try:
                await self._kv.create(key, _encoder.encode(destroyed_key(tenant)))
            except KeyExists:  # a process that had not heard of the erasure made one in between
                continue
            return found
        raise KeyConflict("A key is made again and again while it is destroyed; try again.")
