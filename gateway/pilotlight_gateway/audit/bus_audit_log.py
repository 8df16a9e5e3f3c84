"""The audit log over the bus: a stream from which no process may delete.

Each tenant has a subject, and of each a bounded number of the last records is kept: whoever asks for the same change
again and again pushes out its own entries first.
"""

from __future__ import annotations

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.api.audit_api import AuditEntry, AuditList
from pilotlight_core.model.errors import BadInput, PilotlightError, Unavailable
from pilotlight_gateway.audit.audit_entries import AuditFold, AuditQuery

WRITTEN_WITHIN_S = 5.0
MOST_READ = 64 * 2**20
"""Bytes that one question looks through."""
MOST_NOTES = 1_024
"""Ends of changes that are being written at a time."""
LATEST = 4_102_444_800.0
"""A unix second that is later than any record's: 2100."""
BEFORE_S = 60.0
"""A gateway's clock, which says when a change began, may be ahead of the bus's, by which records are found."""

log = structlog.get_logger(__name__)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AuditEntry)


class BusAuditLog:
    """The `AuditLog` over the bus."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region
        self._notes = 0

    async def write(self, entry: AuditEntry) -> None:
        subject = subjects.audit(self._region, entry.tenant)
        written = f"{entry.id}.{entry.status}"
        try:
            await self._bus.jetstream.store(
                subject, _encoder.encode(entry), message_id=written, timeout=WRITTEN_WITHIN_S
            )
        except BusError as error:
            raise Unavailable("The audit log cannot be written now, and nothing is changed without it.") from error

    def note(self, entry: AuditEntry) -> None:
        if self._notes >= MOST_NOTES:
            log.error("the audit log has an entry without an end", request_id=entry.id, error="too many at a time")
            return
        self._notes += 1
        self._bus.spawn(self._note(entry))

    async def _note(self, entry: AuditEntry) -> None:
        try:
            await self.write(entry)
        except (PilotlightError, MessageTooLarge) as error:
            log.error("the audit log has an entry without an end", request_id=entry.id, error=str(error))
        finally:
            self._notes -= 1

    async def read(self, query: AuditQuery) -> AuditList:
        subject, fold, read = subjects.audit(self._region, query.tenant or "*"), AuditFold(query), 0
        try:
            page = await self._bus.jetstream.page_since(
                subjects.AUDIT_STREAM, subject, min(max(0.0, query.since - BEFORE_S), LATEST)
            )
            while page.records:
                for each in page.records:
                    read += len(each.data)
                    if (entry := _read(each.data)) is not None:
                        fold.add(entry)
                if read > MOST_READ:
                    raise BadInput("since: there is too much to look through: ask for less time.", field="since")
                page = await self._bus.jetstream.page(subjects.AUDIT_STREAM, subject, page.records[-1].seq + 1)
        except BusError as error:
            raise Unavailable("The audit log cannot be read now.") from error
        return fold.changes()


def _read(data: bytes) -> AuditEntry | None:
    """None, and a logged error, if it is no entry."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as error:
        log.error("a record of the audit log cannot be read", error=str(error))
        return None
