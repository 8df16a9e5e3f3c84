"""The lease of a process that has ended is deleted, and no other one."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import connect
from pilotlight_core.bus.lease_cleanup import end_gateway_lease, instance_of
from pilotlight_core.model.ids import token


async def test_a_dead_gateways_lease_is_free_at_once(server_url: str) -> None:
    """Whoever waits for it has it long before it would have expired."""
    name = f"g{token(8)}"
    async with connect(server_url, name="dying") as dying:
        lease = dying.lease(f"gateway.{name}", name, ttl=60.0, data=instance_of(name, "life1").encode())
        await lease.acquire()
    async with connect(server_url, name="heir") as bus:
        heir = asyncio.create_task(bus.lease(f"gateway.{name}", "heir").acquire(timeout=30))
        await end_gateway_lease(server_url, name, "life1")

        assert await heir > lease.epoch  # within its 30 s, and the dead one's are 60


async def test_another_process_of_that_name_keeps_its_lease(server_url: str) -> None:
    """The one that died was a second one, or its successor has begun already."""
    name = f"g{token(8)}"
    async with (
        connect(server_url, name="alive") as bus,
        bus.lease(f"gateway.{name}", name, data=instance_of(name, "life2").encode()),
    ):
        before = await bus.kv("LEASES").get(f"gateway.{name}")
        await end_gateway_lease(server_url, name, "life1")

        await end_gateway_lease(server_url, f"{name}-other", "life1")

        after = await bus.kv("LEASES").get(f"gateway.{name}")
        assert before is not None
        assert after is not None
        assert after.value == before.value
