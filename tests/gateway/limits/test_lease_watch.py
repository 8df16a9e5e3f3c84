"""When the leases of gateways were renewed, over a real bus."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_gateway.limits.lease_watch import LeaseWatch


async def test_renewals_are_known_by_process(bus: Bus, other: Bus) -> None:
    """The lease names the process that holds it, and a released lease has no renewal."""
    at = 10.0
    renewals, name = LeaseWatch(bus, lambda: at), f"g{token(8)}"
    lease = other.lease(f"gateway.{name}", name, data=b"g-process")
    changed = asyncio.Event()
    async with renewals.followed():
        renewals._mirror.on_change.append(lambda key, _: changed.set() if key == f"gateway.{name}" else None)
        await lease.acquire()
        await changed.wait()
        changed.clear()
        assert renewals.of("g-process") == at

        await lease.release()
        await changed.wait()
        assert renewals.of("g-process") is None


async def test_an_unreadable_lease_renews_nothing(bus: Bus, other: Bus) -> None:
    """The earlier renewal is forgotten."""
    renewals, key = LeaseWatch(bus, lambda: 10.0), f"gateway.g{token(8)}"
    lease = other.lease(key, "g", data=b"a-process")
    changed = asyncio.Event()
    async with renewals.followed():
        renewals._mirror.on_change.append(lambda told, _: changed.set() if told == key else None)
        await lease.acquire()
        await changed.wait()
        changed.clear()
        kv = other.kv("LEASES")
        await kv.put(key, b"\xff")
        await changed.wait()
        assert renewals.of("a-process") is None
        await kv.delete(key)
