"""The port of the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pilotlight_core.model.api.audit_api import AuditEntry, AuditList
from pilotlight_gateway.audit.audit_entries import AuditQuery, merged_entries


class AuditLog(Protocol):
    """Keeps what is written: nothing of it is changed, and nothing deleted before it is old."""

    async def write(self, entry: AuditEntry) -> None:
        """Keep what is known of a change; it is stored when this returns.

        Raises:
            Unavailable: it cannot be stored now.
        """
        ...

    def note(self, entry: AuditEntry) -> None:
        """Keep what came of a change, soon: nobody waits for it. It may be lost, and the change's end with it."""
        ...

    async def read(self, query: AuditQuery) -> AuditList:
        """The changes that are asked for.

        Raises:
            Unavailable: they cannot be read now.
            BadInput: there are more in that time than one answer may look through.
        """
        ...


@dataclass(kw_only=True)
class MemoryAuditLog:
    """The fake for tests: what is in `records`, in the order in which it was written."""

    records: list[AuditEntry] = field(default_factory=list)
    error: Exception | None = None
    """Raised instead of writing."""

    async def write(self, entry: AuditEntry) -> None:
        if self.error is not None:
            raise self.error
        self.records.append(entry)

    def note(self, entry: AuditEntry) -> None:
        if self.error is None:
            self.records.append(entry)

    async def read(self, query: AuditQuery) -> AuditList:
        return merged_entries(self.records, query)
