"""What a tenant has: usage and calls."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.api.call_api import CallStatus
from tests.gateway.ledger.metering import SECOND, busy, delivered, event, tagged
from tests.gateway.world import World, function

CALL = "call_local_1_00000000000000000001"


async def test_usage_is_told_as_json_and_csv(world: World) -> None:
    """The tenant's own lines and their total, grouped as asked."""
    rivals = event(2, SECOND, 2 * SECOND, tenant="rival")
    world.ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, "ok")), rivals]))
    world.ledger.fold("USAGE", 2, tagged({"ver_1": {"team": "search"}}))
    query = "/v1/usage?from=2026-09-01&to=2026-10-01"
    async with world.client() as client:
        report = (await client.get(query)).json()
        assert [(line["day"], line["calls"], line["ns"]) for line in report["lines"]] == [("2026-09-22", 1, SECOND)]
        assert report["total"]["cost"] == report["lines"][0]["cost"]
        assert (await client.get(f"{query}&group=app")).json()["lines"][0]["day"] == ""
        by_format = await client.get(f"{query}&format=csv")
        by_team = (await client.get(f"{query}&group=tag:team,app")).json()["lines"]
        assert [(line["app"], line["tags"]) for line in by_team] == [("shop", {"team": "search"})]
        with_tags = await client.get(f"{query}&group=tag:team&format=csv")
        assert [row.split(",")[-1] for row in with_tags.text.splitlines()] == ["tag:team", "search"]
        by_header = await client.get(query, headers={"accept": "text/csv"})
        assert by_format.text == by_header.text
        assert by_format.headers["content-type"].startswith("text/csv")
        assert (await client.get("/v1/usage")).status_code == 200


async def test_usage_names_versions_as_people_do(world: World) -> None:
    """By number where the registry has the version, else by its id."""
    (version,) = world.deploy(function())
    lines = [event(1, 0, 5, version=version.id), event(2, 5, 9, version="ver_gone")]
    world.ledger.fold("USAGE", 1, delivered(lines))
    async with world.client() as client:
        report = (await client.get("/v1/usage?from=2026-09-01&to=2026-10-01")).json()

    assert {line["version"] for line in report["lines"]} == {"shop.hello@v1", "ver_gone"}


@pytest.mark.parametrize(
    ("query", "field"),
    [("from=yesterday", "from"), ("to=2026-13-01", "to"), ("from=2026-02-01&to=2026-02-01", "to"),
     ("group=tenant", "group"), ("group=tag:a.b", "group"), ("format=xml", "format")],
)  # fmt: skip
async def test_a_wrong_usage_query_names_its_field(world: World, query: str, field: str) -> None:
    """422."""
    async with world.client() as client:
        answer = await client.get(f"/v1/usage?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, field)


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
