"""The audit log over HTTP."""

from __future__ import annotations

import time
from typing import Any

from pilotlight_core.model.api.audit_api import AuditEntry
from tests.gateway.world import World


def entry(number: int, tenant: str = "acme", **more: Any) -> AuditEntry:
    fields: dict[str, Any] = {"by": tenant, "key": "k1", "operation": "setLimits", "status": 200, "at": time.time()}
    return AuditEntry(id=f"req_{number}", tenant=tenant, **fields | more)


async def test_a_tenant_sees_its_own_and_an_operator_all(world: World) -> None:
    """What was asked for by an operator too."""
    world.audit.records += [entry(1), entry(2, "beta"), entry(3, by="platform")]
    async with world.client() as client:
        own = await client.get("/v1/audit")
        others = [await client.get(f"/v1/audit?{asked}") for asked in ("tenant=beta", "all=true")]
    async with world.client(world.operator) as client:
        beta = await client.get("/v1/audit?tenant=beta")
        every = await client.get("/v1/audit?all=true")

    assert [one["id"] for one in own.json()["entries"]] == ["req_1", "req_3"]
    assert [answer.status_code for answer in others] == [403, 403]
    assert [one["id"] for one in beta.json()["entries"]] == ["req_2"]
    assert [one["id"] for one in every.json()["entries"]] == ["req_1", "req_2", "req_3"]


async def test_it_is_asked_by_time_operation_and_key(world: World) -> None:
    """By default of a day, and the last hundred."""
    world.audit.records += [
        entry(1, at=time.time() - 90_000.0), entry(2, operation="revokeKey"), entry(3, key="k2"), entry(4),
    ]  # fmt: skip
    asked = ("since=2d", "", "operation=revokeKey", "key=k2", "limit=1")
    async with world.client() as client:
        answers = {each: (await client.get(f"/v1/audit?{each}")).json() for each in asked}

    assert {each: [one["id"] for one in found["entries"]] for each, found in answers.items()} == {
        "since=2d": ["req_1", "req_2", "req_3", "req_4"], "": ["req_2", "req_3", "req_4"],
        "operation=revokeKey": ["req_2"], "key=k2": ["req_3"], "limit=1": ["req_4"],
    }  # fmt: skip
    assert [each for each, found in answers.items() if found["more"]] == ["limit=1"]


async def test_nonsense_is_refused_by_name(world: World) -> None:
    """Time, number and tenant."""
    async with world.client(world.operator) as client:
        refused = [await client.get(f"/v1/audit?{asked}") for asked in ("since=soon", "limit=0", "tenant=A b", "all=x")]

    assert [(answer.status_code, answer.json()["field"]) for answer in refused] == [
        (422, "since"), (422, "limit"), (422, "tenant"), (422, "all"),
    ]  # fmt: skip


async def test_a_key_that_only_calls_does_not_see_it(world: World) -> None:
    """Nor one that deploys."""
    async with world.client(world.add_key("acme", "invoke", "deploy", "read")) as client:
        assert (await client.get("/v1/audit")).status_code == 403
