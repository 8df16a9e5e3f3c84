"""Ends the lease of a gateway whose process has ended, so that its shards are taken over at once.

Other gateways must wait until the lease expires, since an unresponsive gateway may still act. The supervisor sees the
process end, and can therefore delete its lease.
"""

from __future__ import annotations

from pilotlight_core.bus import Bus, bus_users, connect, read_holder
from pilotlight_core.model.subjects import LEASE_BUCKET


async def end_gateway_lease(url: str, name: str, launch: str) -> None:
    """End the lease of a gateway's process that has ended; `url` has the credentials of the gateway's user.

    Raises:
        BusError, KeyConflict.
    """
    async with connect(url, name="lease-cleanup", inbox=bus_users.gateway().inbox, makes_streams=False) as bus:
        await end_lease(bus, f"gateway.{name}", instance_of(name, launch))


async def end_lease(bus: Bus, key: str, data: str) -> bool:
    """Delete a lease if its data names the process that has ended; whether it was deleted."""
    kv = bus.kv(LEASE_BUCKET)
    entry = await kv.get(key)
    # With other data the holder is another process of that name, which may be alive.
    if entry is None or read_holder(entry.value, entry.revision).data != data.encode():
        return False
    await kv.delete(key, entry.revision)
    return True


def instance_of(name: str, launch: str) -> str:
    return f"{name}-{launch}"
