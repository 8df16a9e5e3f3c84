"""The records of batches in a bucket of the bus."""

from __future__ import annotations

import msgspec
import structlog

from pilotlight_core.bus import Bus, KvEntry, StoreRefused, WrongRevision
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.records.batches import BatchRecord
from pilotlight_core.model.subjects import BATCH_BUCKET

FORGET_WITHIN_S = 86_400.0
"""How long a record outlives its retention; a duty deletes the inputs within this time."""

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BatchRecord)


def read_batch(key: str, entry: KvEntry) -> BatchRecord | None:
    """The batch of an entry; None, and a logged error, if it is unreadable."""
    try:
        return _decoder.decode(entry.value)
    except msgspec.DecodeError as error:
        log.error("a batch's record cannot be read", key=key, error=str(error))
        return None


class BusBatches:
    """A `BatchStore` over the bus."""

    def __init__(self, bus: Bus) -> None:
        self._kv = bus.kv(BATCH_BUCKET)

    async def create(self, record: BatchRecord) -> BatchRecord:
        try:
            await self._kv.update(record.key, _encoder.encode(record), 0)
        except WrongRevision:
            found = await self.read(record.tenant, record.id)
            if found is None:
                raise
            return found[0]
        except StoreRefused as error:
            log.error("a batch cannot be stored", error=str(error))
            raise Unavailable(
                "The platform's room for batches is used up.", code="overloaded", retry_after=60.0
            ) from None
        return record

    async def read(self, tenant: str, batch: str) -> tuple[BatchRecord, int] | None:
        entry = await self._kv.get(f"{tenant}.{batch}")
        return None if entry is None else (_decoder.decode(entry.value), entry.revision)

    async def update(self, record: BatchRecord, revision: int) -> int:
        ttl = record.keep_s + FORGET_WITHIN_S if record.state.over else None
        return await self._kv.update(record.key, _encoder.encode(record), revision, ttl=ttl)

    async def all(self, tenant: str) -> list[BatchRecord]:
        found = (read_batch(key, entry) for key, entry in (await self._kv.entries(f"{tenant}.")).items())
        return [record for record in found if record is not None]
