"""A full stream of usage loses nothing, and heals by itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from pilotlight_core.bus import Bus, StoreRefused, StreamLimits, connect
from pilotlight_core.bus.streams import stream_configs
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.messages.usage import LeaseState, UsageBatch
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.duties.ledger_folder import LedgerFolder
from pilotlight_gateway.duties.usage_room import UsageRoom, first_kept
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line
from pilotlight_runtime.metering.ended_shares import EndedShares
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import Metering
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.gateway.ledger.metering import event
from tests.waiting import until, until_found

SLICE = SliceReport(id="cpu-0", kind=SliceKind.CPU, device="cpu", ppm=1_000_000, price="cpu")
SECOND = 10**9
TINY = StreamLimits(usage_bytes=20_000)


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Bus]:
    """A server of its own, whose stream of usage holds some 40 messages."""
    async with embedded_nats(tmp_path / "nats") as server, connect(server.url, name="x", limits=TINY) as bus:
        yield bus


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    yield ledger
    ledger.close()


class BootClock:
    def __init__(self) -> None:
        self.at_ns = 1_000

    def __call__(self) -> int:
        return self.at_ns


@asynccontextmanager
async def metered(bus: Bus, folder: Path, clock: BootClock) -> AsyncIterator[Metering]:
    """An agent's meters over the real stream."""
    log, ended = UsageLog(folder, "boot"), EndedShares(folder / "ended", "boot")
    try:
        yield Metering(
            node="n1", instance="i1", region="local", slices=(SLICE,), usage_log=log, ended_shares=ended, store=bus,
            clock=clock,
        )  # fmt: skip
    finally:
        log.close()
        ended.close()


async def fill(bus: Bus) -> int:
    """Store usage of an older kind until the stream refuses; the number of messages."""
    subject = subjects.usage("local", "n9", "-")
    for number in range(1_000):
        one = event(
            number, number * 10, number * 10 + 10, LeaseState.FREE, tenant="", app="", function="", version="",
            container="", ended_at=time.time(), node="n9", id=f"n9.{number}",
        )  # fmt: skip
        try:
            await bus.store(subject, UsageBatch(events=(one,)), id=str(number))
        except StoreRefused:
            return number
    raise AssertionError("it never refuses")


def folded_ns(ledger: Ledger, node: str) -> int:
    return int(
        ledger.read(sa.select(sa.func.sum(lease_line.c.ns).label("ns")).where(lease_line.c.node == node))[0]["ns"] or 0
    )


async def test_a_full_stream_loses_nothing_and_heals(bus: Bus, ledger: Ledger, tmp_path: Path) -> None:
    """What was stored stays until it is folded, the agent keeps what is refused, and the duties make room for it."""
    stored, clock = await fill(bus), BootClock()
    async with metered(bus, tmp_path / "agent", clock) as metering:
        for _ in range(30):
            clock.at_ns += SECOND
            await metering.write()
        assert not await metering.ship()
        assert (await bus.jetstream.span(USAGE_STREAM)) == (1, stored)

        task = asyncio.create_task(LedgerFolder(bus, ledger, holder="duties", room_every=0.05).run())
        try:
            await until(lambda: folded_ns(ledger, "n9") == stored * 10)
            await until_found(metering.ship)
            await until(lambda: folded_ns(ledger, "n1") == 30 * SECOND)
        finally:
            task.cancel()
            await asyncio.wait([task])

    assert (await bus.jetstream.span(USAGE_STREAM))[0] > 1
    assert ledger.quarantine(node=None, before=None, limit=9) == []


async def test_what_is_not_folded_stays(bus: Bus, ledger: Ledger) -> None:
    """However full it is; what is folded goes only as far as needed."""
    stored, room = await fill(bus), UsageRoom(bus, ledger)

    assert await room.make() == 0
    ledger.fold(USAGE_STREAM, 3, [])
    assert await room.make() == 3
    assert await room.make() == 0
    ledger.fold(USAGE_STREAM, stored, [])
    assert 0 < await room.make() < stored
    assert 0.4 < await bus.jetstream.filled(USAGE_STREAM) < 0.6
    assert await room.make() == 0


async def test_an_existing_stream_becomes_one_that_refuses(bus: Bus) -> None:
    """One of before this release dropped the oldest; the next gateway that starts changes it."""
    (config,) = (one for one in stream_configs(TINY) if one["name"] == USAGE_STREAM)
    await bus.jetstream.ensure_stream(config | {"discard": "old"})
    await fill_beyond(bus)

    await bus.ensure_streams()

    with pytest.raises(StoreRefused):
        await fill_beyond(bus)


async def fill_beyond(bus: Bus) -> None:
    for number in range(60):
        await bus.jetstream.store(subjects.usage("local", "n9", "-"), bytes(500), message_id=f"{time.time()}.{number}")


@pytest.mark.parametrize(
    ("first", "last", "folded", "filled", "kept"),
    [
        (1, 100, 100, 1.0, 51),  # half goes
        (1, 100, 10, 1.0, 11),  # no more than is folded
        (50, 100, 10, 1.0, 11),  # nothing of what is there is folded
        (1, 1, 1, 1.0, 2),  # one large message
        (1, 100, 900, 1.0, 1),  # it is another stream than what was folded
    ],
)
def test_what_goes_is_the_oldest_that_is_folded(first: int, last: int, folded: int, filled: float, kept: int) -> None:
    """Up to the half of what the stream holds."""
    assert first_kept(first, last, folded, filled) == kept
