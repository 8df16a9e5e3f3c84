"""Nodes over HTTP: tokens, joining, and operators' words."""

from __future__ import annotations

import pytest

from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.model.records.nodes import LIFE_S
from pilotlight_gateway.nodes.node_identities import JoiningTerms
from tests.gateway.world import World

KEY = Nkey.generate(NkeyKind.USER).public


async def joined(world: World, node: str = "n1", **labels: str) -> dict[str, object]:
    async with world.client(world.add_key("ops", "operator")) as operator, world.client("") as host:
        made = await operator.post("/v1/nodes/tokens", json=labels)
        assert made.status_code == 201, made.text
        answer = await host.post("/v1/nodes/join", json={"token": made.json()["token"], "node": node, "key": KEY})
        assert answer.status_code == 201, answer.text
        found: dict[str, object] = answer.json()
        return found


async def test_a_host_joins_by_a_token_and_no_key(world: World) -> None:
    """It is told its labels and where the bus is, and nothing secret."""
    found = await joined(world, zone="eu-2", pool="h100", purchase="spot")
    assert found.pop("expires_at") > LIFE_S  # type: ignore[operator]
    assert found == {
        "node": "n1", "region": "local", "zone": "eu-2", "pool": "h100", "purchase": "spot",
        "bus_url": "nats://bus:4222",
    }  # fmt: skip


async def test_nodes_are_listed_and_shown(world: World) -> None:
    """Those that report and those on record."""
    await joined(world)
    async with world.client(world.add_key("ops", "operator")) as operator:
        nodes = (await operator.get("/v1/nodes")).json()["nodes"]
        one = (await operator.get("/v1/nodes/n1")).json()
        assert [(node["node"], node["status"], node["joined"]) for node in nodes] == [
            ("fake", "up", False), ("n1", "silent", True),
        ]  # fmt: skip
        assert one == nodes[1]
        assert (await operator.get("/v1/nodes/n2")).status_code == 404
        assert (await operator.get("/v1/nodes/a.b")).status_code == 422


async def test_operators_say_what_becomes_of_a_node(world: World) -> None:
    """One after the other, each answered with the node as it is then."""
    await joined(world)
    async with world.client(world.add_key("ops", "operator")) as operator:
        for verb, state in (("cordon", "cordoned"), ("drain", "draining"), ("uncordon", "open")):
            assert (await operator.post(f"/v1/nodes/n1/{verb}")).json()["state"] == state
        assert (await operator.post("/v1/nodes/fake/cordon")).json()["state"] == "cordoned"
        assert (await operator.post("/v1/nodes/fake/revoke")).status_code == 409
        revoked = (await operator.post("/v1/nodes/n1/revoke")).json()
        assert (revoked["status"], revoked["expires_at"]) == ("revoked", None)
        for verb in ("cordon", "revoke"):
            assert (await operator.post(f"/v1/nodes/n2/{verb}")).status_code == 404


@pytest.mark.parametrize("scope", ["admin", "deploy"])
async def test_tenants_say_nothing_of_nodes(world: World, scope: str) -> None:
    """Not even their admins."""
    async with world.client(world.add_key("acme", scope)) as client:
        assert (await client.get("/v1/nodes")).status_code == 403
        assert (await client.post("/v1/nodes/tokens")).status_code == 403
        assert (await client.post("/v1/nodes/n1/revoke")).status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422), ({"token": "x", "node": "n1", "key": KEY}, 401), ({"token": "x", "node": "a.b", "key": KEY}, 422),
        ({"token": f"pl_join_{8 * '0'}_{40 * '0'}", "node": "n1", "key": "none"}, 422),
        ({"token": "x", "node": "n1", "key": KEY, "more": 1}, 422),
    ],
)  # fmt: skip
async def test_a_wrong_join_is_refused(world: World, body: dict[str, object], status: int) -> None:
    """And holds no memory of the gateway."""
    async with world.client("") as host:
        assert (await host.post("/v1/nodes/join", json=body)).status_code == status
        assert (await host.post("/v1/nodes/join", content=b"x" * 100_000)).status_code in (413, 415)
    assert world.services.budget.used == 0


async def test_a_gateway_without_keys_lets_none_in(world: World) -> None:
    """It says what it was started without."""
    world.services.terms = JoiningTerms()
    async with world.client(world.add_key("ops", "operator")) as operator:
        answer = await operator.post("/v1/nodes/tokens")
    assert answer.json()["code"] == "misconfigured"
    assert "--node-issuer" in answer.json()["detail"]
