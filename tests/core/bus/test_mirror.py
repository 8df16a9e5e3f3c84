"""Mirrors follow their bucket, know their age, and fetch through."""

from __future__ import annotations

import asyncio
import time

from pilotlight_core.bus import Bus, KvEntry, Mirror
from pilotlight_core.bus.mirror import FRESH_FOR_S
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import REGISTRY_BUCKET


async def wait_for(mirror: Mirror, key: str, value: bytes | None) -> None:
    """Until the mirror shows `value` for `key`."""
    changed = asyncio.Event()

    def ring(_key: str, _entry: KvEntry | None) -> None:
        changed.set()

    mirror.on_change.append(ring)
    async with asyncio.timeout(30):
        while getattr(mirror.get(key), "value", None) != value:
            await changed.wait()
            changed.clear()
    mirror.on_change.remove(ring)


async def test_a_mirror_starts_complete_and_follows(bus: Bus, other: Bus) -> None:
    """It holds what is there when it opens, then every change, and nothing outside its prefix."""
    kv, base = other.kv(REGISTRY_BUCKET), token()
    for number in range(300):
        await kv.put(f"{base}.{number}", b"old")
    await kv.put(f"{base}x.0", b"elsewhere")

    async with bus.mirror(REGISTRY_BUCKET, f"{base}.") as mirror:
        assert len(mirror) == len(mirror.items()) == 300

        await kv.put(f"{base}.new", b"1")
        await wait_for(mirror, f"{base}.new", b"1")
        await kv.put(f"{base}.0", b"changed")
        await wait_for(mirror, f"{base}.0", b"changed")
        await kv.delete(f"{base}.1")
        await wait_for(mirror, f"{base}.1", None)

        assert len(mirror) == 300


async def test_a_mirror_is_fresh_only_for_a_while(bus: Bus) -> None:
    """Confirmed now, it may be relied on for 30 s, not longer."""
    async with bus.mirror(REGISTRY_BUCKET, f"{token()}.") as mirror:
        now = time.monotonic()

        assert mirror.fresh(now)
        assert mirror.age(now) < 5
        assert not mirror.fresh(now + FRESH_FOR_S + 5)


async def test_fetch_reads_through(bus: Bus, other: Bus) -> None:
    """A fetched key is the server's present value, and the mirror has it from then on."""
    key = f"{token()}.k"
    async with bus.mirror(REGISTRY_BUCKET, f"{key.partition('.')[0]}.") as mirror:
        revision = await other.kv(REGISTRY_BUCKET).put(key, b"1")

        assert await mirror.fetch(key) == KvEntry(b"1", revision) == mirror.get(key)
        assert await mirror.fetch(f"{key}2") is None

        await other.kv(REGISTRY_BUCKET).delete(key)
        assert await mirror.fetch(key) is None
        assert mirror.get(key) is None


async def test_a_callback_that_raises_stops_nothing(bus: Bus) -> None:
    """The other callbacks are called, and the mirror goes on."""
    key = f"{token()}.k"

    def bad(_key: str, _entry: KvEntry | None) -> None:
        raise RuntimeError("on purpose")

    async with bus.mirror(REGISTRY_BUCKET, f"{key.partition('.')[0]}.") as mirror:
        mirror.on_change.append(bad)
        await bus.kv(REGISTRY_BUCKET).put(key, b"1")
        await wait_for(mirror, key, b"1")
        await bus.kv(REGISTRY_BUCKET).put(key, b"2")
        await wait_for(mirror, key, b"2")


async def test_what_vanished_without_a_trace_is_noticed(bus: Bus) -> None:
    """A fetch finds that record and marker of a key are gone, and the mirror reads the whole prefix again."""
    kv, base = bus.kv(REGISTRY_BUCKET), token()
    async with bus.mirror(REGISTRY_BUCKET, f"{base}.") as mirror:
        for name in ("gone", "stays"):
            await kv.put(f"{base}.{name}", b"1")
            await wait_for(mirror, f"{base}.{name}", b"1")
        subject = key_subject(REGISTRY_BUCKET, f"{base}.gone")
        assert await bus.purge_before(bucket_stream(REGISTRY_BUCKET), subject, 2**62) == 1
        changes: list[tuple[str, KvEntry | None]] = []
        mirror.on_change.append(lambda key, entry: changes.append((key, entry)))

        assert await mirror.fetch(f"{base}.gone") is None
        await wait_for(mirror, f"{base}.gone", None)

        assert [key for key, _ in mirror.items()] == [f"{base}.stays"]
        assert changes == [(f"{base}.gone", None)]
