"""Tenants, limits and tiers over HTTP: the operator's, and each tenant's own to read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.world import World, function


async def test_a_tenant_is_made_changed_and_disabled(world: World) -> None:
    """The operator does it all over HTTP; a disabled tenant's keys open nothing at once."""
    async with world.client(world.operator) as operator:
        made = await operator.post("/v1/tenants", json={"name": "zoo"})
        assert (made.status_code, made.json()["tier"], made.json()["weight"]) == (201, "free", 1.0)
        assert (await operator.post("/v1/tenants", json={"name": "zoo"})).status_code == 409
        key = (await operator.post("/v1/tenants/zoo/keys", json={"scopes": ["read"]})).json()

        changed = await operator.patch("/v1/tenants/zoo", json={"tier": "paid", "weight": 2})
        assert world.registry.tenant_records["zoo"].moved
        assert world.registry.tenant_records["zoo"].home == world.services.limits.epoch("zoo")
        assert (changed.json()["tier"], changed.json()["weight"], changed.json()["disabled"]) == ("paid", 2.0, False)
        assert "zoo" in [tenant["name"] for tenant in (await operator.get("/v1/tenants")).json()["tenants"]]
        async with world.client(key["key"]) as tenant:
            assert (await tenant.get("/v1/tenants/zoo")).json() == changed.json()
            await operator.patch("/v1/tenants/zoo", json={"disabled": True})
            assert (await tenant.get("/v1/tenants/zoo")).status_code == 401


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [({"name": "a.b"}, 422, "name"), ({"name": "operator"}, 409, "name"), ({"name": "x", "tier": "gold"}, 404, "tier"),
     ({"name": "x", "weight": 0}, 422, "weight"), ({"name": "x", "color": 1}, 422, "color"), ({}, 422, "body")],
)  # fmt: skip
async def test_a_wrong_tenant_names_its_field(world: World, body: dict[str, Any], status: int, field: str) -> None:
    """And nothing is made."""
    async with world.client(world.operator) as operator:
        answer = await operator.post("/v1/tenants", json=body)

    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert "x" not in world.registry.tenant_records


async def test_what_its_functions_may_connect_to(world: World) -> None:
    """It is all that is named, and stays when something else is changed."""
    async with world.client(world.operator) as operator:
        wide = await operator.patch("/v1/tenants/acme", json={"network": ["*.example.com:443"]})
        assert (wide.status_code, wide.json()["network"]) == (200, ["*.example.com:443"])
        assert (await operator.patch("/v1/tenants/acme", json={"weight": 2})).json()["network"] == ["*.example.com:443"]
        assert (await operator.patch("/v1/tenants/acme", json={"network": []})).json()["network"] == []
        wrong = await operator.patch("/v1/tenants/acme", json={"network": ["10.0.0.1:443"]})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "network")


async def test_an_operator_does_not_lock_itself_out(world: World) -> None:
    """Its own tenant cannot be disabled with its own key; what is unknown cannot be changed."""
    async with world.client(world.operator) as operator:
        assert (await operator.patch("/v1/tenants/platform", json={"disabled": True})).status_code == 409
        assert (await operator.patch("/v1/tenants/nobody", json={"weight": 2})).status_code == 404
        assert (await operator.patch("/v1/tenants/a.b", json={"weight": 2})).status_code == 404
        assert (await operator.patch("/v1/tenants/acme", json={"tier": "gold"})).json()["field"] == "tier"


async def test_limits_are_set_over_the_tiers_and_removed(world: World) -> None:
    """Of all calls and of those to one function; the tenant reads them, the operator writes them."""
    world.deploy(function())
    world.deploy(function(), tenant="zoo")
    async with world.client(world.operator) as operator, world.client() as tenant:
        await operator.patch("/v1/tenants/acme", json={"tier": "free"})
        path = "/v1/tenants/acme/limits"
        assert (await tenant.get(path)).json()["effective"]["concurrency"] == 10

        answer = await operator.put(path, json={"concurrency": 3})
        assert answer.json()["limits"] == {"concurrency": 3}
        assert (await operator.put(path, json={"concurrency": 3.0, "burst": 2})).status_code == 200
        assert (await operator.put(path, json={"concurrency": 3.5})).json()["field"] == "concurrency"
        assert (await operator.put(path, json={"concurrency": 1e300})).json()["field"] == "concurrency"
        await operator.put(path, json={"concurrency": 3})
        await operator.put(f"{path}/shop.hello", json={"requests_per_s": 2})
        await operator.put(f"{path}/zoo:shop.hello", json={"burst": 5})
        found = (await tenant.get(path)).json()
        assert found["functions"] == {"acme:shop.hello": {"requests_per_s": 2.0}, "zoo:shop.hello": {"burst": 5.0}}
        assert (found["tier"], found["effective"]["concurrency"]) == ("free", 3)
        one = (await tenant.get(f"{path}/acme:shop.hello")).json()
        assert one["effective"] == {
            "requests_per_s": 2.0, "payload_bytes": 10_000_000, "queue_calls": 100, "queue_seconds": 60.0,
            "timeout_s": 900.0,
        }  # fmt: skip

        assert (await tenant.put(path, json={})).status_code == 403
        assert (await operator.delete(f"{path}/shop.hello")).status_code == 204
        assert (await operator.delete(f"{path}/shop.hello")).status_code == 404
        assert (await tenant.get(f"{path}/shop.hello")).status_code == 404
        assert (await operator.delete(path)).status_code == 204
        assert (await tenant.get(path)).json()["limits"] == {}


async def test_a_limit_of_a_function_that_is_not_there_is_refused(world: World) -> None:
    """It would hold for nothing. Whoever deploys the function later says so."""
    world.deploy(function())
    async with world.client(world.operator) as operator:
        path = "/v1/tenants/acme/limits"
        refused = await operator.put(f"{path}/shop.helo", json={"burst": 2})
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_function")
        assert refused.json()["suggestion"] == "acme:shop.hello"
        assert (await operator.put(f"{path}/shpo.hello", json={"burst": 2})).json()["suggestion"] == "acme:shop.hello"
        assert (await operator.put(f"{path}/shop.helo?ahead=maybe", json={"burst": 2})).json()["field"] == "ahead"
        assert (await operator.put(f"{path}/shop.helo?ahead=true", json={"burst": 2})).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [("", {"concurrency": 0}, "concurrency"), ("", {"speed": 1}, "speed"), ("/shop", {}, "ref"),
     ("/shop.hello@v1", {}, "function"), ("/shop.hello?ahead=true", {"burst": "x"}, "burst"),
     ("/shop.hello?ahead=true", {"containers": 1}, "containers"), ("/shop.hello?ahead=true", {"gpus": 1}, "gpus"),
     ("/shop.hello?ahead=true", {"floor_containers": 0}, "floor_containers")],
)  # fmt: skip
async def test_wrong_limits_name_their_field(world: World, path: str, body: dict[str, Any], field: str) -> None:
    """422."""
    async with world.client(world.operator) as operator:
        answer = await operator.put(f"/v1/tenants/acme/limits{path}", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_tier_is_put_over_the_configured_one_and_dropped(world: World) -> None:
    """Dropping it returns to the configured one; a tier of the registry alone goes only when nobody is in it."""
    async with world.client(world.operator) as operator:
        before = (await operator.get("/v1/tiers/free")).json()
        put = await operator.put("/v1/tiers/free", json={"weight": 3, "priority_ceiling": "batch"})
        assert (put.json()["weight"], put.json()["source"]) == (3.0, "registry")
        assert (await operator.delete("/v1/tiers/free")).status_code == 204
        assert (await operator.get("/v1/tiers/free")).json() == before
        assert before["source"] == "configuration"

        await operator.put("/v1/tiers/gold", json={"rank": 9, "limits": {"concurrency": 2}})
        assert [tier["name"] for tier in (await operator.get("/v1/tiers")).json()["tiers"]][-1] == "gold"
        await operator.patch("/v1/tenants/acme", json={"tier": "gold"})
        assert (await operator.delete("/v1/tiers/gold")).status_code == 409
        await operator.patch("/v1/tenants/acme", json={"tier": "paid"})
        assert (await operator.delete("/v1/tiers/gold")).status_code == 204
        for missing in ("gold", "a.b"):
            assert (await operator.delete(f"/v1/tiers/{missing}")).status_code == 404
            assert (await operator.get(f"/v1/tiers/{missing}")).status_code == 404
        assert (await operator.put("/v1/tiers/gold", json={"weight": -1})).json()["field"] == "weight"


async def test_there_is_a_bounded_number_of_tiers(world: World) -> None:
    """The 33rd is refused; those that are there can still be changed."""
    async with world.client(world.operator) as operator:
        answers = [await operator.put(f"/v1/tiers/t{number}", json={}) for number in range(30)]
        assert [answer.status_code for answer in answers] == [200] * 29 + [409]
        assert (await operator.put("/v1/tiers/free", json={})).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/tenants"), ("POST", "/v1/tenants"), ("PATCH", "/v1/tenants/acme"), ("GET", "/v1/nodes"),
     ("GET", "/v1/tiers"), ("PUT", "/v1/tiers/free"), ("POST", "/v1/tenants/acme/keys")],
)  # fmt: skip
async def test_an_admin_is_no_operator(world: World, method: str, path: str) -> None:
    """A tenant's admin may do everything in its tenant, and nothing with the platform."""
    async with world.client() as admin:
        answer = await admin.request(method, path, json={})

    assert (answer.status_code, answer.json()["scope"]) == (403, "operator")


async def test_an_operator_alone_is_no_admin(world: World) -> None:
    """It runs the platform, and neither calls nor deploys in its own tenant."""
    async with world.client(world.add_key("platform", "operator")) as operator:
        assert (await operator.get("/v1/tenants/acme")).status_code == 200
        assert (await operator.get("/v1/apps")).status_code == 403
        assert (await operator.get("/v1/keys")).status_code == 403
        assert (await operator.post("/v1/functions/shop.hello/calls", json={})).status_code == 403
