"""Leases have one holder at a time and rising epochs, and a holder knows when it may not act."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import Bus, BusTimeout, LeaseHolder, connect, read_holder
from pilotlight_core.bus.lease import LeaseRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import LEASE_BUCKET
from tests.waiting import until

HOLDER = Path(__file__).with_name("lease_holder.py")


async def test_a_held_lease_is_valid_and_excludes_others(bus: Bus, other: Bus) -> None:
    """While one holds it another waits in vain, and the holder may act until shortly before the time to live."""
    key = f"home.{token()}"
    async with bus.lease(key, "one", ttl=30.0) as lease:
        now = time.monotonic()

        assert lease.valid(now)
        assert not lease.valid(now + 30.0)
        with pytest.raises(BusTimeout):
            await other.lease(key, "two").acquire(timeout=0.4)


async def test_a_released_lease_can_be_had_at_once_with_a_higher_epoch(bus: Bus, other: Bus) -> None:
    """A release wakes the waiting process."""
    key = f"home.{token()}"
    first = bus.lease(key, "one", ttl=60.0)
    await first.acquire()
    second = other.lease(key, "two", ttl=60.0)
    waiting = asyncio.create_task(second.acquire(timeout=30))
    await asyncio.sleep(0)

    await first.release()
    epoch = await waiting

    assert epoch == second.epoch > first.epoch
    assert not first.valid(time.monotonic())
    assert not first.lost.is_set()


async def test_a_release_takes_back_a_renewal_that_it_cut_off(bus: Bus, other: Bus) -> None:
    """The renewal arrived without a confirmation: the release deletes its record too."""
    key = f"home.{token()}"
    lease = bus.lease(key, "me", ttl=30.0)
    await lease.acquire()
    kv = other.kv(LEASE_BUCKET)
    entry = await kv.get(key)
    assert entry is not None
    renewed = LeaseRecord(holder="me", epoch=lease.epoch)
    await kv.update(key, msgspec.msgpack.encode(renewed), entry.revision)

    await lease.release()

    assert await kv.get(key) is None


async def test_the_same_holder_takes_over_at_once(bus: Bus, other: Bus) -> None:
    """A restarted process need not wait for its former self, which learns that it has lost the lease."""
    key = f"home.{token()}"
    former = bus.lease(key, "me", ttl=2.0)
    await former.acquire()

    again = other.lease(key, "me", ttl=2.0)
    epoch = await again.acquire(timeout=30)

    assert epoch > former.epoch
    async with asyncio.timeout(30):
        await former.lost.wait()
    assert not former.valid(time.monotonic())
    assert again.valid(time.monotonic())


async def test_renewals_keep_the_epoch(bus: Bus) -> None:
    """The lease outlives its time to live, under the epoch of its acquisition, which readers see."""
    key = f"home.{token()}"
    async with bus.lease(key, "me", ttl=2.0, data=b"where") as lease, bus.mirror(LEASE_BUCKET, "home.") as mirror:
        renewed = asyncio.Event()
        mirror.on_change.append(lambda changed, _: renewed.set() if changed == key else None)
        for _ in range(4):
            async with asyncio.timeout(30):
                await renewed.wait()
            renewed.clear()
        entry = mirror.get(key)

        assert entry is not None
        assert entry.revision > lease.epoch
        assert read_holder(entry.value, entry.revision) == LeaseHolder(name="me", epoch=lease.epoch, data=b"where")
        assert lease.valid(time.monotonic())


async def test_a_dead_holders_lease_goes_to_the_next_after_its_time_to_live(server_url: str, other: Bus) -> None:
    """Without renewals it expires, and the waiting process gets it."""
    key = f"home.{token()}"
    async with connect(server_url, name="dying") as dying:
        dead = dying.lease(key, "one", ttl=1.0)
        await dead.acquire()

    epoch = await other.lease(key, "two", ttl=1.0).acquire(timeout=30)

    assert epoch > dead.epoch
    assert not dead.valid(time.monotonic())


async def test_a_paused_holder_that_wakes_up_knows_that_it_may_not_act(server_url: str, other: Bus) -> None:
    """After SIGSTOP, a take-over and SIGCONT it never reports `valid` again."""
    key = f"home.{token()}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HOLDER), server_url, key, "one", "1.0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            epoch = int((await process.stdout.readline()).split()[1])
            assert await process.stdout.readline() == b"valid\n"
            os.kill(process.pid, signal.SIGSTOP)

            lease = other.lease(key, "two", ttl=1.0)
            assert await lease.acquire(timeout=10) > epoch
            os.kill(process.pid, signal.SIGCONT)

            # What it wrote before the pause is still in the pipe: `valid` lines may come first, but none after.
            said = (await process.stdout.read()).decode().split()
            assert said[-1] == "lost"
            assert said == sorted(said, key=["valid", "invalid", "lost"].index)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_dead_holders_lease_goes_to_the_next_although_the_server_keeps_it(bus: Bus, other: Bus) -> None:
    """Whose clock was set back: it would forget the key in an hour."""
    key, dead = f"home.{token()}", LeaseRecord(holder="one", ttl=1.0)
    kept = await bus.kv(LEASE_BUCKET).update(key, msgspec.msgpack.encode(dead), 0, ttl=3_600.0)

    lease = other.lease(key, "two", ttl=30.0)

    assert await lease.acquire(timeout=30) > kept
    await lease.release()


async def test_a_living_holder_keeps_its_lease_however_long_another_waits(bus: Bus, other: Bus) -> None:
    """Who waits goes by what is written in the record, not by its own time to live."""
    key = f"home.{token()}"
    async with bus.lease(key, "one", ttl=30.0) as lease:
        with pytest.raises(BusTimeout):
            await other.lease(key, "two", ttl=1.0).acquire(timeout=2.0)
        assert lease.valid(time.monotonic())


async def test_a_lease_that_the_server_forgot_too_soon_is_had_again(bus: Bus, other: Bus) -> None:
    """Its clock was set ahead: the holder learns that it has lost it, and nothing keeps it from taking it again."""
    key = f"home.{token()}"
    lease = bus.lease(key, "me", ttl=1.0)
    before = await lease.acquire()
    await other.kv(LEASE_BUCKET).delete(key)

    async with asyncio.timeout(30):
        await lease.lost.wait()
    assert await lease.acquire(timeout=30) > before
    await lease.release()


async def test_a_record_that_cannot_be_read_is_taken_once_nobody_renews_it(bus: Bus, other: Bus) -> None:
    """It may belong to a holder of another release of the platform, as long as it changes."""
    key = f"home.{token()}"
    lease = other.lease(key, "me", ttl=1.0)
    kv = bus.kv(LEASE_BUCKET)
    written = await kv.put(key, b"\xff")
    waiting, began = asyncio.create_task(lease.acquire(timeout=30)), time.monotonic()

    while time.monotonic() < began + 2 * lease.ttl:
        await until(lambda: waiting.done() or lease._stood[0] == written)  # noqa: B023 - waited for at once
        assert not waiting.done()
        written = await kv.put(key, b"\xff")

    assert await waiting > written
    assert lease.valid(time.monotonic())
    await lease.release()


async def test_a_holder_whose_record_was_overwritten_knows_that_it_has_lost(bus: Bus, other: Bus) -> None:
    """Also if the new record cannot be read."""
    key = f"home.{token()}"
    lease = bus.lease(key, "me", ttl=1.0)
    await lease.acquire()
    await other.kv(LEASE_BUCKET).put(key, b"\xff")

    async with asyncio.timeout(30):
        await lease.lost.wait()
    assert not lease.valid(time.monotonic())


async def test_a_lease_lives_at_least_a_second(bus: Bus) -> None:
    """The server counts whole seconds; less is a mistake."""
    with pytest.raises(ValueError, match="at least 1 s"):
        bus.lease("x", "me", ttl=0.5)
