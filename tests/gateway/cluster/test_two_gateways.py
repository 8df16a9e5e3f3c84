"""What one gateway changes about tenants holds in the others: two HTTP sides over two registries on one bus."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.ids import token
from pilotlight_gateway.tenancy.auth import KeyAuthenticator
from pilotlight_gateway.tenancy.bootstrap import bootstrap, read_client_file
from tests.gateway.world import World, function
from tests.waiting import until


@dataclass
class Gateway:
    """One gateway's HTTP side, with a registry of its own; `late` seconds are added to its clock."""

    world: World
    registry: Registry
    late: float = 0.0

    def client(self, key: str) -> httpx.AsyncClient:
        return self.world.client(key)


@pytest.fixture
async def two(server_url: str, tmp_path: Path) -> AsyncIterator[tuple[Gateway, Gateway]]:
    async with (
        connect(server_url, name="one") as first_bus,
        connect(server_url, name="two") as second_bus,
        Registry(first_bus) as first,
        Registry(second_bus) as second,
    ):
        yield (gateway(tmp_path / "one", first), gateway(tmp_path / "two", second))


def gateway(folder: Path, registry: Registry) -> Gateway:
    folder.mkdir()
    made = Gateway(World(folder, registry), registry)
    services = made.world.services
    services.authenticator = KeyAuthenticator(registry, clock=lambda: time.monotonic() + made.late)
    return made


async def first_key(gateway: Gateway, folder: Path) -> str:
    path = folder / "client.json"
    await bootstrap(gateway.registry, path, "http://gateway", path)
    content = read_client_file(path)
    assert content is not None
    return content.api_key


async def test_a_key_revoked_at_one_gateway_stops_at_the_other(two: tuple[Gateway, Gateway], tmp_path: Path) -> None:
    """Also where it was in use a moment ago: nothing but the mirror tells the other gateway."""
    here, there = two
    operator = await first_key(here, tmp_path)
    async with here.client(operator) as asks:
        made = (await asks.post("/v1/keys", json={"scopes": ["read"]})).json()
        async with there.client(made["key"]) as uses:
            assert (await uses.get("/v1/apps")).status_code == 200  # read through, if the mirror has not heard of it

            await asks.delete(f"/v1/keys/{made['id']}")
            await until(lambda: (key := there.registry.key_nowait(made["id"])) is not None and key.revoked)
            assert (await uses.get("/v1/apps")).status_code == 401


async def test_a_tenant_made_here_works_there_and_its_limits_follow(
    two: tuple[Gateway, Gateway], tmp_path: Path
) -> None:
    """Tenant, key, tier and limits: the other gateway's synchronous look-ups have them without asking."""
    here, there = two
    name, ref = token(), "acme:shop.hello"
    async with here.client(await first_key(here, tmp_path)) as operator:
        await operator.post("/v1/tenants", json={"name": name})
        made = (await operator.post(f"/v1/tenants/{name}/keys", json={"scopes": ["read"]})).json()
        async with there.client(made["key"]) as tenant:
            assert (await tenant.get(f"/v1/tenants/{name}")).json()["tier"] == "free"
            await operator.put(f"/v1/tenants/{name}/limits/{ref}?ahead=true", json={"concurrency": 2})
            await until(lambda: there.registry.limits(name, ref).function.concurrency == 2)
            await operator.patch(f"/v1/tenants/{name}", json={"disabled": True})
            await until(lambda: (record := there.registry.tenant_nowait(name)) is not None and record.disabled)
            assert (await tenant.get("/v1/apps")).status_code == 401


async def test_a_function_shared_here_is_called_there_at_once(two: tuple[Gateway, Gateway], tmp_path: Path) -> None:
    """And not any more when that ends."""
    here, there = two
    owner, other = token(), token()
    async with here.client(await first_key(here, tmp_path)) as operator:
        keys = {}
        for name in (owner, other):
            await operator.post("/v1/tenants", json={"name": name})
            asked = {"scopes": ["admin"]}
            keys[name] = (await operator.post(f"/v1/tenants/{name}/keys", json=asked)).json()["key"]
        (version,) = here.world.deploy(function(), tenant=owner)
        await here.registry.put_version(version)
        await here.registry.deploy(here.world.registry.apps[owner, "shop"], 0)
        path = f"/v1/functions/{owner}:shop.hello/calls"
        async with here.client(keys[owner]) as owns, there.client(keys[other]) as calls:
            assert (await calls.post(path, json={"input": {"name": "x"}})).status_code == 404
            await owns.put(f"/v1/apps/shop/shares/{other}")
            assert (await calls.post(path, json={"input": {"name": "x"}})).status_code == 200
            await owns.delete(f"/v1/apps/shop/shares/{other}")
            await until(lambda: (share := there.registry.share_nowait(owner, "shop")) and not share.grants)
            assert (await calls.post(path, json={"input": {"name": "x"}})).status_code == 404


async def test_a_mirror_without_contact_for_half_a_minute_fails_closed(
    two: tuple[Gateway, Gateway], tmp_path: Path
) -> None:
    """503 for every key, known or not: it may have missed a revocation."""
    here, there = two
    key = await first_key(here, tmp_path)
    async with there.client(key) as client:
        assert (await client.get("/v1/apps")).status_code == 200
        there.late = 31.5
        answer = await client.get("/v1/apps")
        assert (answer.status_code, answer.json()["code"]) == (503, "starting")
        there.late = 0.0
        assert (await client.get("/v1/apps")).status_code == 200
