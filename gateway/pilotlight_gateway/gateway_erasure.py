"""A gateway's part in erasing tenants, over a bus."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_gateway.erasure.bus_traces import BusTraces
from pilotlight_gateway.erasure.tenant_eraser import TenantEraser
from pilotlight_gateway.gateway_secrets import GatewaySecrets
from pilotlight_gateway.tenancy.registry_port import RegistryPort


def tenant_eraser(bus: Bus, registry: RegistryPort, bindings: BindingBook, secrets: GatewaySecrets) -> TenantEraser:
    """What erases the tenants of this gateway's platform."""
    sealing = secrets.sealing
    return TenantEraser(
        registry,
        BusTraces(bus),
        sealing.blobs,
        (secrets.vault.keys, sealing.keys),
        secrets.stopper,
        lambda: list(bindings.bound.values()),
    )
