"""Tells nodes which of the tenants whose files they keep were erased."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import ErasedTenants, ErasedWanted
from pilotlight_gateway.fleet.node_questions import NodeQuestions
from pilotlight_gateway.tenancy.registry_port import TenantRegistry

QUEUE = "erased-tenants"
"""One gateway answers each question."""


def erased_of(registry: TenantRegistry, wanted: ErasedWanted) -> ErasedTenants:
    """Those of the tenants in a question that were erased. A name that this platform does not know is left alone."""
    return ErasedTenants(tenants=tuple(name for name in wanted.tenants if registry.is_erased(name)))


def erased_answers(bus: Bus, registry: TenantRegistry, *, region: str) -> NodeQuestions[ErasedWanted]:
    """What answers agents' questions for erased tenants over the bus."""

    async def answer(_node: str, wanted: ErasedWanted) -> ErasedTenants:
        return erased_of(registry, wanted)

    return NodeQuestions(bus, subjects.erased(region), ErasedWanted, answer, queue=QUEUE, busy=ErasedTenants())
