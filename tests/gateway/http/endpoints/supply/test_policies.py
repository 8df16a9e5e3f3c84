"""Policies over HTTP: a tenant's own, and the operator's, which every tenant reads."""

from __future__ import annotations

from tests.gateway.world import World

RULES = {"mode": "enforce", "signed": True, "deny_licences": ["AGPL-*"], "vulnerabilities": "high"}


async def test_a_policy_is_set_shown_and_removed(world: World) -> None:
    """Without one, nothing is looked for."""
    async with world.client() as client:
        assert (await client.get("/v1/policy")).json() == {
            "policy": {}, "revision": 0, "changed_at": 0.0, "changed_by": "",
        }  # fmt: skip
        made = (await client.put("/v1/policy", json=RULES)).json()
        assert (made["policy"], made["revision"], made["changed_by"]) == (RULES, 1, world.key.id)
        assert (await client.get("/v1/policy")).json() == made
        for _ in range(2):
            assert (await client.delete("/v1/policy")).status_code == 204
        assert (await client.get("/v1/policy")).json()["revision"] == 0


async def test_the_operators_policy_is_the_operators_to_change(world: World) -> None:
    """And everybody's to read."""
    async with world.client() as client, world.client(world.operator) as operator:
        assert (await client.put("/v1/platform-policy", json=RULES)).status_code == 403
        assert (await operator.put("/v1/platform-policy", json=RULES)).json()["revision"] == 1
        assert (await client.get("/v1/platform-policy")).json()["policy"] == RULES
        assert (await client.get("/v1/policy")).json()["revision"] == 0
        assert (await client.delete("/v1/platform-policy")).status_code == 403
        assert (await operator.delete("/v1/platform-policy")).status_code == 204


async def test_a_wrong_policy_names_its_field(world: World) -> None:
    """Also one that a later release may know."""
    async with world.client() as client:
        for body, said in (
            ({"deny_packages": ["a b"]}, "deny_packages"),
            ({"deny_licences": ["MIT OR"]}, "deny_licences"),
            ({"vulnerabilities": "dreadful"}, "vulnerabilities"),
            ({"no_cats": True}, "no_cats"),
        ):
            answer = await client.put("/v1/policy", json=body)
            assert (answer.status_code, said in answer.text) == (422, True)
        viewer = world.add_key("acme", "deploy")
    async with world.client(viewer) as client:
        assert (await client.put("/v1/policy", json=RULES)).status_code == 403
