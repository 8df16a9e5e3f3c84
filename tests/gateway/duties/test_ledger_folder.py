"""The fold as a duty, over a real stream: from the last place on, by one holder, and every event once."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from pilotlight_core.bus import Bus, connect, reader
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.messages.wire import decode
from pilotlight_core.model.price_book import DatedRate, PriceRecord, load_prices
from pilotlight_gateway.duties.ledger_folder import LedgerFolder
from pilotlight_gateway.ledger import unread_usage
from pilotlight_gateway.ledger.call_receipts import add_receipts
from pilotlight_gateway.ledger.ledger_entries import LedgerRows
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line, usage_day
from pilotlight_gateway.reports.billing_periods import closed_until
from tests.builders.nodes import binding
from tests.gateway.ledger.metering import busy
from tests.waiting import until


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="ledger") as bus:
        yield bus


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    yield ledger
    ledger.close()


@pytest.fixture
def tenant() -> str:
    """The stream outlives a test: each has a tenant of its own."""
    return f"t{token(8)}"


def events(tenant: str, *numbers: int) -> tuple[UsageEvent, ...]:
    now = time.time()
    return tuple(
        busy(
            n,
            n * 10,
            (f"call{n}", 10, "ok"),
            id=f"{tenant}.{n}",
            tenant=tenant,
            ended_at=now,
            device=tenant,
            container=f"c-{tenant}",
        )
        for n in numbers
    )


async def publish(bus: Bus, tenant: str, batch: tuple[UsageEvent, ...]) -> None:
    """Store usage of a container of the tenant, which is bound."""
    bound = Bound(
        binding=binding(
            f"c-{tenant}", node="n1", tenant=tenant, function=f"{tenant}:shop.hello", slice="s0", ppm=1_000_000
        )
    )
    await bus.store(subjects.bindings("local", "n1"), bound, id=token())
    await bus.store(subjects.usage("local", "n1", tenant), UsageBatch(events=batch), id=token())


def folded(ledger: Ledger, tenant: str) -> int:
    count = sa.select(sa.func.count().label("n")).where(lease_line.c.device == tenant)
    return int(ledger.read(count)[0]["n"])


@asynccontextmanager
async def on_duty(bus: Bus, ledger: Ledger, holder: str = "duties") -> AsyncIterator[LedgerFolder]:
    folder = LedgerFolder(bus, ledger, holder=holder)
    async with running(folder):
        yield folder


def unread_of(ledger: Ledger, tenant: str) -> int:
    """Garbage of other tests may wait too."""
    return sum(each.delivery.subject.endswith(f".{tenant}") for each in ledger.unread(0, 0.0))


def unread_by(folder: LedgerFolder) -> int:
    told = folder.statistics()
    return told.unread if told is not None else 0


@asynccontextmanager
async def running(folder: LedgerFolder) -> AsyncIterator[None]:
    task = asyncio.create_task(folder.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_what_agents_stored_is_folded_once_and_in_full(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """Before and after the start, repeated by its agent, over a restart of the duty."""
    await publish(bus, tenant, events(tenant, 1, 2))
    async with on_duty(bus, ledger):
        await until(lambda: folded(ledger, tenant) == 2)
        await publish(bus, tenant, events(tenant, 2, 3))
        await until(lambda: folded(ledger, tenant) == 3)
    seq = ledger.last_seq("USAGE")
    await publish(bus, tenant, events(tenant, 4))
    async with on_duty(bus, ledger) as folder:
        await until(lambda: folded(ledger, tenant) == 4)
        await until(lambda: (told := folder.statistics()) is not None and told.results == ledger.results())

    assert ledger.last_seq("USAGE") > seq
    assert ledger.results()["repeated"] == 1


async def test_one_of_two_folds(bus: Bus, server_url: str, ledger: Ledger, tmp_path: Path, tenant: str) -> None:
    """The other takes over when the first is gone."""
    others = Ledger(f"sqlite:///{tmp_path / 'other.sqlite'}", load_prices())
    async with connect(server_url, name="other") as other:
        async with on_duty(bus, ledger, "one"):
            await publish(bus, tenant, events(tenant, 1))
            await until(lambda: folded(ledger, tenant) == 1)
            async with on_duty(other, others, "two"):
                await publish(bus, tenant, events(tenant, 2))
                await until(lambda: folded(ledger, tenant) == 2)
                assert folded(others, tenant) == 0
        async with on_duty(other, others, "two"):
            await publish(bus, tenant, events(tenant, 3))
            await until(lambda: folded(others, tenant) == 3)
    others.close()


async def test_a_stream_that_was_made_anew_is_read_from_its_start(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """A place beyond the stream's end means that it is another stream; known events do no harm."""
    await publish(bus, tenant, events(tenant, 1))
    ledger.fold("USAGE", 10**9, [])

    async with on_duty(bus, ledger):
        await until(lambda: folded(ledger, tenant) == 1)

    assert ledger.last_seq("USAGE") < 10**9


POISON: tuple[dict[str, Any], ...] = (
    {"ended_at": 1e300}, {"ended_at": math.nan}, {"ended_at": 0.0}, {"t0": 2**63, "t1": 2**63}, {"ppm": 2**64 - 1},
    {"device": "d\0"}, {"tenant": "x" * 5_000},
    {"state": LeaseState.BUSY, "shares": (CallShare("a", "rival", 10**15), CallShare("b", "acme", 10 - 10**15))},
)  # fmt: skip


async def test_no_message_stops_the_fold(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """Whatever an agent stores: it goes into quarantine, what follows is folded, and a restart begins behind it."""
    subject = subjects.usage("local", "n1", tenant)
    async with on_duty(bus, ledger):
        await publish(bus, tenant, events(tenant, 3))
        await until(lambda: folded(ledger, tenant) == 1)
        known = ledger.results().get("quarantined", 0)  # of other tests' agents, whose containers nobody bound
        await bus.jetstream.store(subject, b"\xc1 no message")
        await bus.store(subject, Cancel(call_id="a"), id=token())
        for number, poison in enumerate(POISON):
            (good,) = events(tenant, 100 + number)
            await bus.store(subject, UsageBatch(events=(msgspec.structs.replace(good, **poison),)), id=token())
        await publish(bus, tenant, events(tenant, 1))
        await until(lambda: folded(ledger, tenant) == 2)
    before = ledger.results()["quarantined"]
    await publish(bus, tenant, events(tenant, 2))
    async with on_duty(bus, ledger):
        await until(lambda: folded(ledger, tenant) == 3)

    assert before == ledger.results()["quarantined"] == known + 1 + len(POISON)
    assert unread_of(ledger, tenant) == 1


async def test_what_an_older_fold_cannot_read_is_folded_by_a_newer_one(
    bus: Bus, ledger: Ledger, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that it does not know: the message waits, what follows is folded, and nothing of it is lost."""

    def older(data: bytes) -> Any:
        if b"parked" in data:
            raise msgspec.ValidationError("Invalid enum value 'parked'")
        return decode(data)

    (parked,) = events(tenant, 1)
    parked = msgspec.structs.replace(parked, state=LeaseState.PARKED, shares=())
    with monkeypatch.context() as release:
        release.setattr(reader, "decode", older)
        release.setattr(unread_usage, "decode", older)
        folder = LedgerFolder(bus, ledger, holder="older")
        async with running(folder):
            await publish(bus, tenant, (parked,))
            await publish(bus, tenant, events(tenant, 2))
            await until(lambda: folded(ledger, tenant) == 1 and unread_by(folder) > 0)
    assert unread_of(ledger, tenant) == 1
    assert folder.statistics() is None

    async with on_duty(bus, ledger):
        await until(lambda: folded(ledger, tenant) == 2)

    assert unread_of(ledger, tenant) == 0
    states = ledger.read(sa.select(lease_line.c.state).where(lease_line.c.device == tenant))
    assert {row["state"] for row in states} == {"parked", "busy"}


async def test_months_are_closed_when_their_grace_is_over(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """By the first fold: all days of months that ended long ago, and none of this one."""
    await publish(bus, tenant, events(tenant, 1))
    async with on_duty(bus, ledger):
        await until(lambda: ledger.open_from() == closed_until(time.time()))


async def test_sums_that_are_not_those_of_their_lines_are_told(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """The last days are recomputed; what somebody changed by hand is seen."""
    async with on_duty(bus, ledger) as folder:
        await publish(bus, tenant, events(tenant, 1, 2))
        await until(lambda: folded(ledger, tenant) == 2)
        tomorrow = time.time() + 86_400.0
        await folder.verify_days(tomorrow)
        assert (found := folder.statistics()) is not None
        assert not found.differs

        with ledger._engine.begin() as connection:
            connection.execute(sa.update(usage_day).values(ns=usage_day.c.ns + 1))
        await folder.verify_days(tomorrow)
        assert (found := folder.statistics()) is not None
        assert found.differs


async def test_a_price_of_the_registry_holds_for_the_fold(bus: Bus, ledger: Ledger, tenant: str) -> None:
    """From its date on, and by the time of the interval, not of the fold."""
    now, older = time.time(), load_prices().rate("cpu")
    rates = (DatedRate(nano_usd_per_hour=older), DatedRate(starts_at=now - 60.0, nano_usd_per_hour=77))
    early, late = events(tenant, 1, 2)
    early = msgspec.structs.replace(early, ended_at=now - 120.0)
    async with Registry(bus) as registry:
        await registry.change_price("cpu", lambda _: PriceRecord(id="cpu", rates=rates))
        try:
            await publish(bus, tenant, (early, late))
            async with on_duty(bus, ledger):
                await until(lambda: folded(ledger, tenant) == 2)
        finally:
            await registry.change_price("cpu", lambda _: None)

    query = sa.select(lease_line.c.rate).where(lease_line.c.device == tenant).order_by(lease_line.c.wall)
    assert [row["rate"] for row in ledger.read(query)] == [older, 77]


async def test_what_the_database_refuses_goes_alone(
    bus: Bus, ledger: Ledger, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that no check has foreseen: its message is put aside whole, the others of the fold are folded."""

    def refuse(connection: sa.Connection, entries: LedgerRows) -> None:
        if any(call == "call7" for _, call, *_ in entries.calls):
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        add_receipts(connection, entries)

    monkeypatch.setattr("pilotlight_gateway.ledger.ledger_store.add_receipts", refuse)
    for number in (6, 7, 8):
        await publish(bus, tenant, events(tenant, number))
    async with on_duty(bus, ledger):
        await until(lambda: folded(ledger, tenant) == 2)

    (row,) = [row for row in ledger.quarantine(node="n1", before=None, limit=99) if row["reason"] == "not_stored"]
    assert "too large" in row["text"]
