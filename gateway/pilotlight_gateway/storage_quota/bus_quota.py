"""The records of a storage quota, in the bucket that it limits."""

from __future__ import annotations

import msgspec
import structlog

from pilotlight_core.bus import Kv, StoreRefused
from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.storage_quota.quota_shares import NOTHING, QuotaUsage

log = structlog.get_logger(__name__)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(QuotaUsage)


class BusQuotaRecords:
    """The `QuotaRecords` over the bus. `stored` names the bucket's contents in errors."""

    def __init__(self, kv: Kv, *, stored: str) -> None:
        self._kv = kv
        self._stored = stored

    async def read_share(self, key: str) -> tuple[QuotaUsage, int] | None:
        record = await self._kv.read(key)
        if record is None:
            return None
        return NOTHING if record.gone else _decoder.decode(record.data), record.seq

    async def write_share(self, key: str, taken: QuotaUsage, revision: int, ttl: float) -> None:
        try:
            await self._kv.update(key, _encoder.encode(taken), revision, ttl=ttl)
        except StoreRefused as error:
            log.error("the bucket of a quota is full", stored=self._stored, error=str(error))
            raise Unavailable(
                f"The platform's room for {self._stored} is used up.", code="overloaded", retry_after=60.0
            ) from None
