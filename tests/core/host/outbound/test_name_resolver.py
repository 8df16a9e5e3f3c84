"""Names of tenants, asked for in threads that nobody can take back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from pilotlight_core.host.outbound.name_resolver import THREADS_PER_TENANT, DnsResolver


class Resolver:
    """A resolver that says nothing of some names until it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()

    def __call__(self, host: str, port: int) -> Sequence[tuple[Any, ...]]:
        self.asked.append(host)
        if host.startswith("silent"):
            self.go_on.wait(60)
        return [(0, 0, 0, "", ("203.0.113.1", port)), (0, 0, 0, "", ("203.0.113.1", port))]


async def ask(names: DnsResolver, tenant: str, host: str, seconds: float) -> Sequence[str] | None:
    """What is heard in that time."""
    try:
        async with asyncio.timeout(seconds):
            return await names.addresses(tenant, host, 443)
    except TimeoutError:
        return None


async def test_a_silent_name_server_holds_up_its_own_tenant_only() -> None:
    """However many names are asked for, and given up: its threads are few, and the others' questions are answered."""
    resolver = Resolver()
    names = DnsResolver(resolver)
    try:
        for _ in range(40):
            given_up = await asyncio.gather(*(ask(names, "slow", f"silent{n}.example", 0.01) for n in range(16)))
            assert set(given_up) == {None}
        assert len(resolver.asked) <= THREADS_PER_TENANT
        assert await ask(names, "other", "quick.example", 20) == ["203.0.113.1"]

        resolver.go_on.set()
        assert await ask(names, "slow", "quick.example", 20) == ["203.0.113.1"]
    finally:
        resolver.go_on.set()
        names.close()
