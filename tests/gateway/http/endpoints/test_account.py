"""What a tenant has: calls and their receipts."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.api.call_api import CallStatus
from tests.gateway.ledger.metering import SECOND, busy, delivered
from tests.gateway.world import World, function

CALL = "call_local_1_00000000000000000001"


async def test_a_call_is_looked_at_and_cancelled_by_either_id(world: World) -> None:
    """By the platform's id or the client's own, inside the tenant."""
    running = CallStatus(id=CALL, state="running", version="shop.hello@v1", age_ms=5.0, client_id="cid_12345678")
    world.calls.statuses = {("acme", CALL): running, ("acme", "cid_12345678"): running}
    async with world.client() as client:
        for call in (CALL, "cid_12345678"):
            assert (await client.get(f"/v1/calls/{call}")).json()["state"] == "running"
            cancelled = await client.delete(f"/v1/calls/{call}")
            assert (cancelled.status_code, cancelled.json()) == (202, {"id": call, "cancelled": True})
    async with world.client(world.add_key("rival", "invoke")) as client:
        for method in ("GET", "DELETE"):
            assert (await client.request(method, f"/v1/calls/{CALL}")).json()["code"] == "unknown_call"


@pytest.mark.parametrize("call", ["nonsense", "cid_x", "call_local_1", "call_LOCAL_1_00000000000000000001"])
async def test_what_is_no_call_id_is_unknown(world: World, call: Any) -> None:
    """404, and it is never looked up."""
    async with world.client() as client:
        answer = await client.get(f"/v1/calls/{call}")

    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_call")


async def test_a_receipt_is_the_tenants_own(world: World) -> None:
    """With the version as people name it; before there is one, and for others, there is none."""
    (version,) = world.deploy(function())
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, (CALL, SECOND, "raised"), version=version.id)]))
    async with world.client() as client, world.client(world.add_key("rival", "read")) as other:
        found = await client.get(f"/v1/calls/{CALL}/receipt")
        missing = await client.get(f"/v1/calls/{CALL[:-1]}2/receipt")
        theirs = await other.get(f"/v1/calls/{CALL}/receipt")

    receipt = found.json()
    assert (found.status_code, receipt["id"], receipt["gpu_seconds"]) == (200, CALL, 1.0)
    assert [(line["version"], line["outcome"], line["ns"]) for line in receipt["lines"]] == [
        ("shop.hello@v1", "raised", SECOND)
    ]
    assert [answer.json()["code"] for answer in (missing, theirs)] == ["not_found", "not_found"]
