"""The ports that the endpoints of tenants, keys and shares use."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.fleet.container_stopper import ContainerStopper
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class TenancyServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    limits: Limiter
    calls: CallPort
    stopper: ContainerStopper
    budget: ByteBudget
