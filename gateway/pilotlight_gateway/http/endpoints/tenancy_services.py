"""The ports that the endpoints of tenants, keys and shares use."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.tenancy.registry_port import RegistryPort


@dataclass(frozen=True, kw_only=True)
class TenancyServices:
    """The ports of these endpoints."""

    registry: RegistryPort
    limits: Limiter
    budget: ByteBudget
