"""A gateway's part in erasing tenants, over a bus."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_gateway.erasure.bus_traces import BusTraces
from pilotlight_gateway.erasure.erased_answers import erased_answers
from pilotlight_gateway.erasure.tenant_eraser import TenantEraser
from pilotlight_gateway.gateway_secrets import GatewaySecrets
from pilotlight_gateway.tenancy.registry_port import RegistryPort


class GatewayErasure:
    """What erases tenants, and tells nodes of it."""

    def __init__(
        self, bus: Bus, registry: RegistryPort, bindings: BindingBook, secrets: GatewaySecrets, *, region: str
    ) -> None:
        sealing = secrets.sealing
        self.eraser = TenantEraser(
            registry,
            BusTraces(bus),
            sealing.blobs,
            (secrets.vault.keys, sealing.keys),
            secrets.stopper,
            lambda: list(bindings.bound.values()),
        )
        self._answers = erased_answers(bus, registry, region=region)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer agents until the block ends; an erasure that goes on then breaks off, and can be asked for again."""
        async with self._answers.running():
            try:
                yield
            finally:
                await self.eraser.aclose()
