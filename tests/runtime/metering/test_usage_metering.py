"""Usage on its way from the meters to the stream."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import BusDown, StoreRefused
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.metering import usage_metering
from pilotlight_runtime.metering.ended_shares import EndedShares, shares_in
from pilotlight_runtime.metering.metered_slice import SliceOwner
from pilotlight_runtime.metering.usage_log import UsageLog, UsageRecord
from pilotlight_runtime.metering.usage_metering import (
    RECORD_SHARES,
    Metering,
    boot_id,
    boot_ns,
    by_tenant,
    pause_after,
)

SLICES = tuple(SliceReport(id=f"cpu-{n}", kind=SliceKind.CPU, device="cpu", ppm=500_000, price="cpu") for n in range(2))


class World:
    """A stream that keeps what is stored, and a boot clock that is set."""

    def __init__(self) -> None:
        self.at_ns = 1_000
        self.down = False
        self.kept: dict[str, tuple[str, UsageBatch]] = {}
        self.came = asyncio.Event()

    async def store(self, subject: str, message: Message, *, id: str, timeout: float) -> int:  # noqa: A002
        if self.down:
            raise BusDown("down")
        assert isinstance(message, UsageBatch)
        self.kept.setdefault(id, (subject, message))
        self.came.set()
        return 1

    @property
    def events(self) -> list[UsageEvent]:
        return [event for _, batch in self.kept.values() for event in batch.events]

    @asynccontextmanager
    async def metering(
        self, folder: Path, instance: str = "i1", slices: tuple[SliceReport, ...] = SLICES
    ) -> AsyncIterator[Metering]:
        log, ended = UsageLog(folder, "boot"), EndedShares(folder / "ended", "boot")
        try:
            yield Metering(
                node="n",
                instance=instance,
                region="local",
                slices=slices,
                usage_log=log,
                ended_shares=ended,
                store=self,
                clock=lambda: self.at_ns,
            )
        finally:
            log.close()
            ended.close()


def event(tenant: str, shares: int) -> UsageEvent:
    return UsageEvent(
        id=f"{tenant}.{shares}",
        node="n",
        device="cpu",
        slice="cpu-0",
        ppm=1,
        price="cpu",
        state=LeaseState.BUSY,
        t0=0,
        t1=1,
        ended_at=0.0,
        tenant=tenant,
        shares=tuple(CallShare(str(n), tenant, 1) for n in range(shares)),
    )


async def test_usage_is_on_disk_before_it_is_stored(tmp_path: Path, anyio_backend: str) -> None:
    """While the bus is away it waits there, and the next agent hands it in."""
    world = World()
    world.down = True
    async with world.metering(tmp_path) as metering:
        metering.slice("cpu-0").transition(LeaseState.IDLE, 2_000, SliceOwner(tenant="acme", container="c1"))
        world.at_ns = 5_000
        await metering.write()
        assert not await metering.ship()
    world.down = False
    world.at_ns = 9_000
    async with world.metering(tmp_path, "i2") as metering:
        await metering.write()
        assert await metering.ship()

    assert {subject for subject, _ in world.kept.values()} == {"usage.local.n.acme", "usage.local.n.-"}
    line = [(e.tenant, e.t0, e.t1) for e in sorted(world.events, key=lambda e: e.t0) if e.slice == "cpu-0"]
    assert line == [("", 1_000, 2_000), ("acme", 2_000, 5_000), ("", 5_000, 9_000)]


async def test_a_call_is_noted_until_its_usage_is_on_disk(tmp_path: Path, anyio_backend: str) -> None:
    """The notes of a window go when the next one has been written."""
    world = World()
    async with world.metering(tmp_path) as metering:
        part = metering.slice("cpu-0")
        part.transition(LeaseState.IDLE, 1_000, SliceOwner(tenant="acme", container="c1"))
        part.call_started("call_1", "acme", 2_000)
        part.call_ended("call_1", "ok", 3_000)
        world.at_ns = 4_000
        await metering.write()
        assert [note.share.call_id for note in shares_in(tmp_path / "ended", "boot")] == ["call_1"]
        world.at_ns = 5_000
        await metering.write()

    assert shares_in(tmp_path / "ended", "boot") == []


async def test_what_the_disk_refuses_is_written_when_it_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """Nothing is lost of it, and the notes of ended calls stay until then."""
    world = World()
    async with world.metering(tmp_path) as metering:
        part = metering.slice("cpu-0")
        part.transition(LeaseState.IDLE, 1_000, SliceOwner(tenant="acme", container="c1"))
        part.call_started("call_1", "acme", 1_000)
        with monkeypatch.context() as full:
            full.setattr(UsageLog, "append", refuse)
            for world.at_ns in (2_000, 3_000):
                await metering.write()
        part.call_ended("call_1", "ok", 3_500)
        assert [note.checkpoint_share_ns for note in shares_in(tmp_path / "ended", "boot")] == [2_000]
        world.at_ns = 4_000
        await metering.write()
        assert await metering.ship()

    shares = [share for each in world.events for share in each.shares]
    assert [(share.ns, share.ended) for share in shares] == [(1_000, ""), (1_000, ""), (500, "ok")]


async def test_of_what_the_disk_refuses_for_long_the_oldest_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """It is bounded, and said."""
    monkeypatch.setattr(usage_metering, "MOST_UNWRITTEN", 8)
    monkeypatch.setattr(UsageLog, "append", refuse)
    world = World()
    with capture_logs() as lines:
        async with world.metering(tmp_path) as metering:
            for world.at_ns in range(2_000, 12_000, 1_000):
                await metering.write()

            assert sum(len(record.events) for record in metering._unwritten) == 8
    assert lines[-1]["event"].startswith("usage that callers were told of is lost")


def refuse(_log: UsageLog, _records: object) -> None:
    """A full disk."""
    raise OSError("No space left on device")


async def test_a_write_that_is_cancelled_ends_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """Its thread cannot be stopped, and two must not use the log."""
    world, under_way, go_on, at_once = World(), threading.Event(), threading.Event(), []
    append, inside = UsageLog.append, []

    def slow(log: UsageLog, records: list[UsageRecord]) -> None:
        inside.append(1)
        at_once.append(len(inside))
        under_way.set()
        assert go_on.wait(30.0)
        append(log, records)
        inside.pop()

    monkeypatch.setattr(UsageLog, "append", slow)
    async with world.metering(tmp_path) as metering:
        world.at_ns += 1_000
        first = asyncio.ensure_future(metering.write())
        await asyncio.to_thread(under_way.wait, 30.0)
        first.cancel()
        world.at_ns += 1_000
        second = asyncio.ensure_future(metering.write())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait([first, second])

    assert at_once == [1, 1]


def gpu(name: str, ppm: int) -> SliceReport:
    return SliceReport(id=name, kind=SliceKind.GPU, device="GPU-1", ppm=ppm, price="h100")


async def test_a_part_that_comes_back_after_a_crash_is_not_metered_for_others_time(
    tmp_path: Path, anyio_backend: str
) -> None:
    """Its own last record is older than that of the shares that were there meanwhile."""
    world, whole, share = World(), gpu("GPU-1", WHOLE_DEVICE), gpu("GPU-1:250/1000~c1", WHOLE_DEVICE // 4)
    async with world.metering(tmp_path, slices=(whole,)) as metering:
        world.at_ns = 2_000
        await metering.write()
        metering.recut([share])
        metering.slice(share.id).transition(LeaseState.IDLE, 2_000, SliceOwner(tenant="acme", container="c1"))
        world.at_ns = 6_000
        await metering.write()
        world.at_ns = 7_000  # and it is killed
    world.at_ns = 9_000
    async with world.metering(tmp_path, "i2", (whole,)) as metering:
        await metering.write()
        assert await metering.ship()

    line = sorted((e.t0, e.t1, e.slice, e.tenant) for e in world.events)
    assert line == [
        (1_000, 2_000, "GPU-1", ""),
        (2_000, 6_000, "GPU-1.rest", ""),
        (2_000, 6_000, "GPU-1:250/1000~c1", "acme"),
        (6_000, 9_000, "GPU-1", ""),
    ]
    assert sum((e.t1 - e.t0) * e.ppm for e in world.events) == 8_000 * WHOLE_DEVICE


async def test_a_device_of_which_nothing_can_be_had_is_metered(tmp_path: Path, anyio_backend: str) -> None:
    """A GPU in MIG mode without instances is the operator's, at its own price."""
    world = World()
    async with world.metering(tmp_path, slices=()) as metering:
        metering.recut([], {"GPU-1": "h100"})
        world.at_ns = 3_000
        await metering.write()
        await metering.ship()
        metering.check_integrity()

    assert [(e.slice, e.t0, e.t1, e.ppm, e.price) for e in world.events] == [
        ("GPU-1.rest", 1_000, 3_000, WHOLE_DEVICE, "h100")
    ]


async def test_it_goes_by_itself(tmp_path: Path, anyio_backend: str) -> None:
    """What an earlier agent left is stored at once, not after the first second."""
    world = World()
    async with world.metering(tmp_path) as metering:
        world.at_ns = 2_000
        await metering.write()
    async with world.metering(tmp_path, "i2") as metering, asyncio.TaskGroup() as group:
        running = group.create_task(metering.run())
        async with asyncio.timeout(30):
            await world.came.wait()
        running.cancel()


async def test_free_devices_are_written_once_a_minute(tmp_path: Path, anyio_backend: str) -> None:
    """By those writes that come each second; the last one of an agent says everything."""
    world = World()
    async with world.metering(tmp_path) as metering:
        for second in range(1, 63):
            world.at_ns = second * 10**9
            await metering.write(everything=False)
        await metering.ship()
        told = [(each.slice, each.t1) for each in world.events]
        await metering.write()
        await metering.ship()
        metering.check_integrity()

    assert told == [(part, at) for at in (10**9, 61 * 10**9) for part in ("cpu-0", "cpu-1")]
    assert max(each.t1 for each in world.events) == 62 * 10**9


def test_a_full_stream_is_asked_ever_more_rarely() -> None:
    """It refuses at once, and for long; a bus that is away was waited for already."""
    full, pauses = StoreRefused("maximum bytes exceeded", number=10077), [0.0]
    for _ in range(7):
        pauses.append(pause_after(full, pauses[-1]))

    assert pauses == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert pause_after(BusDown("down"), 8.0) == 0.0


def test_records_are_one_payers_and_bounded() -> None:
    """A message holds so many calls, and only one tenant's."""
    half = RECORD_SHARES // 2
    events = [event("a", half), event("b", 1), event("a", half), event("a", 1), event("", 0)]

    parts = by_tenant(events)

    assert sorted((tenant, sum(len(e.shares) for e in part)) for tenant, part in parts) == [
        ("", 0),
        ("a", 1),
        ("a", RECORD_SHARES),
        ("b", 1),
    ]


def test_the_boot_clock_is_the_machines() -> None:
    """It only rises, and has a name."""
    assert boot_ns() <= boot_ns()
    assert len(boot_id()) == 36
