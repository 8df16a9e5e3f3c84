"""What a dead gateway leaves behind: its lease, for which others would wait until it has ended.

A lease is the only thing by which gateways know that another one is dead, since a process that does not answer may only
be cut off from the bus, and act on. Whoever has seen the process end knows better, and ends its lease for it: then its
shards are taken over at once.
"""

from __future__ import annotations

from pilotlight_core.bus import Bus, bus_users, connect, read_holder
from pilotlight_core.model.subjects import LEASE_BUCKET


async def end_gateway_lease(url: str, name: str, launch: str) -> None:
    """End the lease of a gateway's process that is dead; `url` is of the bus, as a gateway.

    Raises:
        BusError, KeyConflict: if it could not be done.
    """
    async with connect(url, name="burial", inbox=bus_users.gateway().inbox, makes_streams=False) as bus:
        await end_lease(bus, f"gateway.{name}", instance_of(name, launch))


async def end_lease(bus: Bus, key: str, data: str) -> bool:
    """End a lease if its data says that it is held by a process that is dead; whether it was."""
    kv = bus.kv(LEASE_BUCKET)
    entry = await kv.get(key)
    # One that is not ours is another process's of that name, and may be alive.
    if entry is None or read_holder(entry.value, entry.revision).data != data.encode():
        return False
    await kv.delete(key, entry.revision)
    return True


def instance_of(name: str, launch: str) -> str:
    """What the process of a gateway is called on the bus."""
    return f"{name}-{launch}"
