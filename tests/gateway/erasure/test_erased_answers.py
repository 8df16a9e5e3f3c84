"""Nodes hear which tenants were erased, and nothing of others."""

from __future__ import annotations

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import ErasedTenants, ErasedWanted
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.erasure.erased_answers import erased_answers
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry


async def test_a_node_hears_of_those_that_it_asked_about(bus: Bus, server_url: str) -> None:
    """One that is disabled, planned for, or unknown is not erased."""
    registry, region = MemoryRegistry(), f"r{token(8)}"
    for record in (
        TenantRecord(name="gone", created_at=1.0, disabled=True, erasing="x", erased_at=2.0),
        TenantRecord(name="planned", created_at=1.0, disabled=True, erasing="x"),
        TenantRecord(name="also-gone", created_at=1.0, disabled=True, erasing="x", erased_at=2.0),
    ):
        registry.tenant_records[record.name] = record
    inbox = bus_users.agent("n1").inbox
    async with (
        erased_answers(bus, registry, region=region).running(),
        connect(server_url, name="n1", inbox=inbox, makes_streams=False) as agent,
    ):
        await bus.flush()
        wanted = ErasedWanted(tenants=("gone", "planned", "nobody"))
        assert await agent.request(subjects.erased(region, "n1"), wanted, 10.0) == ErasedTenants(tenants=("gone",))
