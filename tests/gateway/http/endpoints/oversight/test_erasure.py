"""Erasing a tenant over HTTP: for operators, in two steps, and in the audit log."""

from __future__ import annotations

from collections import Counter

from pilotlight_core.host.registry import TenantRecord
from pilotlight_gateway.audit.audit_log import MemoryAuditLog
from tests.gateway.world import World

PATH = "/v1/tenants/acme/erasure"


async def test_it_takes_a_plan_and_its_word(world: World) -> None:
    """The plan says what goes; the second step what went. A wrong word does nothing."""
    world.registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=1.0)
    world.services.traces.kept["acme"] = Counter(apps=2)
    async with world.client(world.operator) as client:
        planned = await client.post(PATH)
        refused = await client.put(PATH, json={"confirmation": "guessed"})
        done = await client.put(PATH, json={"confirmation": planned.json()["confirmation"]})

    assert (planned.status_code, planned.json()["state"], planned.json()["found"]) == (200, "planned", {"apps": 2})
    assert (refused.status_code, refused.json()["field"]) == (422, "confirmation")
    assert (done.status_code, done.json()["state"], done.json()["found"]) == (200, "erased", {"apps": 2})
    assert world.registry.tenant_records["acme"].erased_at > 0


async def test_each_step_is_audited_without_the_word(world: World) -> None:
    """Before it is made."""
    world.registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=1.0)
    async with world.client(world.operator) as client:
        word = (await client.post(PATH)).json()["confirmation"]
        await client.put(PATH, json={"confirmation": word})

    assert isinstance(world.services.audit, MemoryAuditLog)
    records = world.services.audit.records
    assert [(one.operation, one.target) for one in records if one.status] == [
        ("planErasure", {"tenant": "acme"}), ("eraseTenant", {"tenant": "acme"}),
    ]  # fmt: skip
    assert word not in str(records)


async def test_others_may_not(world: World) -> None:
    """An admin of any tenant, its own too."""
    async with world.client() as client:
        assert (await client.post(PATH)).status_code == 403
        assert (await client.put(PATH, json={"confirmation": "x"})).status_code == 403
