"""`kill -9` of the server: everything goes on by itself, and what was confirmed is still there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.bus import Bus, BusDown, connect
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.subjects import JOB_BUCKET, LOGS_STREAM, REGISTRY_BUCKET, logs
from pilotlight_supervisor.embedded_bus import EmbeddedNats, embedded_nats
from tests.waiting import until


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedNats]:
    async with embedded_nats(tmp_path / "nats") as server:
        yield server


async def crash(server: EmbeddedNats, *buses: Bus) -> None:
    """`kill -9`, and wait until all have noticed."""
    assert server.process is not None
    server.kill()
    await server.process.wait()
    await until(lambda: not any(bus.connected for bus in buses))


async def restart(server: EmbeddedNats, *buses: Bus) -> None:
    """Start it again, and wait until all have restored what they need."""
    restored = [asyncio.Event() for _ in buses]

    def told_by(event: asyncio.Event) -> Any:
        async def tell() -> None:
            event.set()

        return tell

    for bus, event in zip(buses, restored, strict=True):
        bus.on_reconnect.append(told_by(event))
    await server.start()
    async with asyncio.timeout(30):
        for event in restored:
            await event.wait()


async def test_while_the_server_is_away_a_publish_fails_at_once_and_afterwards_it_works(server: EmbeddedNats) -> None:
    """BusDown without delay, nothing sent late; subscriptions come back by themselves."""
    async with connect(server.url, name="one") as bus, connect(server.url, name="two") as other:
        heard: asyncio.Queue[str] = asyncio.Queue()
        await other.subscribe("t.x", lambda _s, message, _r: heard.put_nowait(message.call_id))
        await other.flush()
        pending = asyncio.ensure_future(bus.request("t.x", Cancel(call_id="unanswered"), 60.0))
        async with asyncio.timeout(30):
            assert await heard.get() == "unanswered"

        await crash(server, bus, other)
        with pytest.raises(BusDown):
            await pending
        with pytest.raises(BusDown):
            bus.publish("t.x", Cancel(call_id="too late")).send(None)  # without a turn of the loop

        await restart(server, bus, other)
        await bus.publish("t.x", Cancel(call_id="again"))
        async with asyncio.timeout(30):
            assert await heard.get() == "again"
        assert bus.statistics().reconnects == 1


async def test_confirmed_writes_and_leases_survive(server: EmbeddedNats) -> None:
    """After kill -9 the registry has every confirmed write, and a lease is kept without a new epoch."""
    async with connect(server.url, name="one") as bus:
        kv = bus.kv(REGISTRY_BUCKET)
        revisions = {f"k.{n}": await kv.put(f"k.{n}", b"v") for n in range(50)}
        lease = bus.lease("controller", "one", ttl=8.0)
        epoch = await lease.acquire()

        await crash(server, bus)
        await restart(server, bus)

        assert {key: entry.revision for key, entry in (await kv.entries("k.")).items()} == revisions
        assert lease.epoch == epoch
        assert lease.valid(time.monotonic())
        assert not lease.lost.is_set()


async def test_a_mirror_grows_old_and_then_catches_up(server: EmbeddedNats) -> None:
    """While the server is away the age rises; afterwards it shows what others wrote and deleted."""
    async with connect(server.url, name="one") as bus, bus.mirror(REGISTRY_BUCKET) as mirror:
        async with connect(server.url, name="two") as other:
            await other.kv(REGISTRY_BUCKET).put("a.b", b"1")
            await crash(server, bus, other)
            first = mirror.age(time.monotonic())
            await until(lambda: mirror.age(time.monotonic()) > first)
            await restart(server, bus, other)
            await other.kv(REGISTRY_BUCKET).put("c.d", b"2")
            await other.kv(REGISTRY_BUCKET).delete("a.b")

        await until(lambda: [key for key, _ in mirror.items()] == ["c.d"])
        await until(lambda: mirror.age(time.monotonic()) < 5)


def _has(read: list[str], goal: int) -> bool:
    return len(read) >= goal


async def test_a_follower_reads_on_without_gap_or_repetition(server: EmbeddedNats) -> None:
    """Stored before, during and after two crashes: each once, in order."""
    subject = logs("local", "n1", "t", "app", "fn")
    async with connect(server.url, name="writer") as writer, connect(server.url, name="reader") as reader:
        read: list[str] = []
        enough = asyncio.Event()

        async def follow() -> None:
            async for stored in reader.read_stream(LOGS_STREAM, subject, follow=True):
                read.append(stored.message.lines[0].text)
                if len(read) == 300:
                    enough.set()

        async def write() -> None:
            for number in range(300):
                line = LogLine(at=0.0, stream="stdout", text=str(number), container="c")
                await writer.store(subject, LogBatch(lines=(line,)), id=str(number), timeout=30)

        following, writing = asyncio.ensure_future(follow()), asyncio.ensure_future(write())
        for goal in (60, 160):
            await until(partial(_has, read, goal))
            await crash(server, writer, reader)
            await server.start()
        async with asyncio.timeout(30):
            await writing
            await enough.wait()
        following.cancel()
        await asyncio.wait([following])

    assert read == [str(number) for number in range(300)]


async def test_closing_while_the_server_is_away_is_quick(server: EmbeddedNats) -> None:
    """A process that ends then does not wait for the server; a lease it held is simply left to expire."""
    async with asyncio.timeout(60), connect(server.url, name="one") as bus:
        async with bus.lease("controller", "one", ttl=3_600.0) as lease:
            await crash(server, bus)
        assert not lease.valid(time.monotonic())


async def test_an_orderly_restart_of_the_server_is_survived_too(server: EmbeddedNats) -> None:
    """SIGTERM closes the connections with an error, which is not the end."""
    async with connect(server.url, name="one") as bus:
        await server.stop()
        await until(lambda: not bus.connected)

        await restart(server, bus)

        assert await bus.kv(REGISTRY_BUCKET).put("a.b", b"1") > 0
        assert not bus.closed.is_set()


async def test_writes_that_travel_together_arrive_after_a_crash(server: EmbeddedNats) -> None:
    """Begun while the server is away: each is stored once it is back, as if it had been alone."""
    async with connect(server.url, name="one") as bus:
        group_commit = bus.group_commit(JOB_BUCKET)
        await crash(server, bus)
        writes = [asyncio.ensure_future(group_commit.update(f"t.{number}", b"x", 0)) for number in range(20)]
        await restart(server, bus)

        revisions = await asyncio.gather(*writes)

        assert len(set(revisions)) == 20
        assert len(await bus.kv(JOB_BUCKET).keys("t.")) == 20
