"""The audit log over the bus: a stream from which no process may delete.

Each tenant has a subject, and of each a bounded number of the last records is kept: whoever asks for the same change
again and again pushes out its own entries, and nobody else's.
"""

from __future__ import annotations

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.api.audit_api import AuditEntry, AuditList
from pilotlight_core.model.errors import BadInput, Unavailable
from pilotlight_gateway.audit.audit_entries import AuditQuery, merged_entries

WRITTEN_WITHIN_S = 5.0
MOST_READ = 100_000
"""Records that one question looks through."""
BEFORE_S = 60.0
"""A change whose end is asked for began at most so long before it; what began earlier is shown by its end."""

log = structlog.get_logger(__name__)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AuditEntry)


class BusAuditLog:
    """The `AuditLog` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region

    async def write(self, entry: AuditEntry) -> None:
        subject = subjects.audit(self._region, entry.tenant)
        written = f"{entry.id}.{entry.status}"
        try:
            await self._bus.jetstream.store(
                subject, _encoder.encode(entry), message_id=written, timeout=WRITTEN_WITHIN_S
            )
        except BusError as error:
            raise Unavailable("The audit log cannot be written now, and nothing is changed without it.") from error

    async def read(self, query: AuditQuery) -> AuditList:
        subject = subjects.audit(self._region, query.tenant or "*")
        try:
            records = await self._records(subject, query.since - BEFORE_S)
        except BusError as error:
            raise Unavailable("The audit log cannot be read now.") from error
        return merged_entries(records, query)

    async def _records(self, subject: str, since: float) -> list[AuditEntry]:
        found: list[AuditEntry] = []
        page = await self._bus.jetstream.page_since(subjects.AUDIT_STREAM, subject, max(0.0, since))
        while page.records:
            found += [entry for each in page.records if (entry := _read(each.data)) is not None]
            if len(found) > MOST_READ:
                raise BadInput(
                    f"since: more than {MOST_READ} records are as old: ask for less time, or one tenant.", field="since"
                )
            page = await self._bus.jetstream.page(subjects.AUDIT_STREAM, subject, page.records[-1].seq + 1)
        return found


def _read(data: bytes) -> AuditEntry | None:
    """None, and a logged error, if it is no entry."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        log.error("a record of the audit log cannot be read", error=str(error))
        return None
