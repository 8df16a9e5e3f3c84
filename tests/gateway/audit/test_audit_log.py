"""The fake of the audit log answers as the real one does."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.audit_api import AuditEntry
from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.audit.audit_entries import AuditQuery
from pilotlight_gateway.audit.audit_log import MemoryAuditLog

ENTRY = AuditEntry(id="req_1", at=1.0, tenant="acme", by="acme", key="k", operation="stopApp", status=200)


async def test_what_is_written_is_read_and_an_error_is_raised() -> None:
    """For tests of what happens without a log."""
    log = MemoryAuditLog()
    await log.write(ENTRY)
    assert (await log.read(AuditQuery(tenant="acme"))).entries == [ENTRY]
    assert (await log.read(AuditQuery(tenant="beta"))).entries == []

    log.error = Unavailable("away")
    with pytest.raises(Unavailable):
        await log.write(ENTRY)
