"""The audit log over a real bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.api.audit_api import AuditEntry
from pilotlight_core.model.errors import BadInput, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_gateway.audit import bus_audit_log
from pilotlight_gateway.audit.audit_entries import AuditQuery
from pilotlight_gateway.audit.bus_audit_log import BusAuditLog
from tests.waiting import until_found


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="audit-test") as bus:
        yield bus


def entry(tenant: str, at: float, status: int = 0) -> AuditEntry:
    return AuditEntry(id=f"req_{tenant}_{at}", at=at, tenant=tenant, by="ops", key="k", operation="x", status=status)


async def test_what_is_written_is_read_by_time(bus: Bus) -> None:
    """Of one tenant, or of all; what was stored long before the asked time is not read."""
    log, region = BusAuditLog(bus, region="local"), "local"
    tenant, other, now = f"t{token(6)}", f"t{token(6)}", time.time()
    for each in (entry(tenant, now), entry(other, now), entry(tenant, now, 200)):
        await log.write(each)
    await bus.jetstream.store(subjects.audit(region, tenant), b"{", message_id=token())

    mine = await log.read(AuditQuery(tenant=tenant, since=now - 1.0))
    every = await log.read(AuditQuery(since=now - 1.0, limit=10_000))
    later = await log.read(AuditQuery(tenant=tenant, since=now + 3_600.0))

    assert mine.entries == [entry(tenant, now, 200)]
    assert {tenant, other} <= {one.tenant for one in every.entries}
    assert later.entries == []


async def test_nothing_of_it_can_be_deleted(bus: Bus) -> None:
    """Neither one record nor all: the server refuses it, whoever asks."""
    log, tenant, now = BusAuditLog(bus, region="local"), f"t{token(6)}", time.time()
    await log.write(entry(tenant, now))
    page = await bus.jetstream.page(subjects.AUDIT_STREAM, subjects.audit("local", tenant), 1)

    with pytest.raises(Exception, match=r"not permitted|not allowed"):
        await bus.jetstream.delete(subjects.AUDIT_STREAM, page.records[0].seq)
    with pytest.raises(Exception, match=r"not permitted|not allowed"):
        await bus.jetstream.api(f"STREAM.PURGE.{subjects.AUDIT_STREAM}", {}, 2.0)

    assert (await log.read(AuditQuery(tenant=tenant, since=now - 1.0))).entries == [entry(tenant, now)]


async def test_too_much_for_one_question_is_said(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to ask instead."""
    monkeypatch.setattr(bus_audit_log, "MOST_READ", 200)
    log, tenant, now = BusAuditLog(bus, region="local"), f"t{token(6)}", time.time()
    for number in range(3):
        await log.write(entry(tenant, now + number))

    with pytest.raises(BadInput, match="ask for less time"):
        await log.read(AuditQuery(tenant=tenant, since=now - 1.0))


async def test_what_came_of_a_change_is_written_soon(bus: Bus) -> None:
    """Nobody waits for it."""
    log, tenant, now = BusAuditLog(bus, region="local"), f"t{token(6)}", time.time()
    await log.write(entry(tenant, now))
    log.note(entry(tenant, now, 200))

    async def is_there() -> bool:
        return (await log.read(AuditQuery(tenant=tenant, since=now - 1.0))).entries == [entry(tenant, now, 200)]

    await until_found(is_there)
    assert (await log.read(AuditQuery(tenant=tenant, since=1e12))).entries == []


async def test_a_log_that_cannot_be_reached_is_an_error(server_url: str) -> None:
    """So that nothing is changed without it."""
    async with connect(server_url, name="audit-test") as bus:
        log = BusAuditLog(bus, region="local")

    with pytest.raises(Unavailable, match="nothing is changed"):
        await log.write(entry("acme", 1.0))
    with pytest.raises(Unavailable, match="cannot be read"):
        await log.read(AuditQuery())
