"""Secrets over HTTP: a value goes in, and nothing that is answered or logged has it."""

from __future__ import annotations

import pytest

from pilotlight_gateway.secrets.platform_keys import MemoryPlatformKey
from pilotlight_gateway.secrets.secret_store import MemorySecrets
from tests.gateway.secrets.vaults import vault_over
from tests.gateway.world import World, function

VALUE = "a value that nobody sees"


async def test_a_secret_is_set_listed_and_removed(world: World) -> None:
    """Its number counts up, and no answer has the value."""
    async with world.client() as client:
        made = await client.put("/v1/secrets/token", json={"value": VALUE})
        again = await client.put("/v1/secrets/token", json={"value": f"{VALUE} again"})
        listed = await client.get("/v1/secrets")
        removed = await client.delete("/v1/secrets/token")
        gone = await client.delete("/v1/secrets/token")

    assert (made.status_code, made.json()["number"], again.json()["number"]) == (200, 1, 2)
    assert made.json()["changed_by"] == world.key.id
    assert [one["name"] for one in listed.json()["secrets"]] == ["token"]
    assert (removed.status_code, gone.status_code) == (204, 404)
    assert not [answer for answer in (made, again, listed, removed, gone) if VALUE in answer.text]


@pytest.mark.parametrize(
    ("body", "field"), [({"value": "tooless"}, "value"), ({"value": 12345678}, None), ({"value": VALUE, "x": 1}, None)]
)
async def test_what_is_no_value_is_refused_without_repeating_it(world: World, body: object, field: str | None) -> None:
    """Whatever is wrong with it."""
    async with world.client() as client:
        answer = await client.put("/v1/secrets/token", json=body)

    assert answer.status_code in (400, 422)
    assert field is None or answer.json()["field"] == field
    assert not [value for value in ("tooless", "12345678", VALUE) if value in answer.text]


async def test_what_uses_it_keeps_it(world: World) -> None:
    """The list shows it, and a removal is refused."""
    world.deploy(function("hello", secrets={"TOKEN": "token"}))
    async with world.client() as client:
        made = await client.put("/v1/secrets/token", json={"value": VALUE})
        refused = await client.delete("/v1/secrets/token")

    assert made.json()["functions"] == ["shop.hello"]
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("scopes", "sets", "lists"), [(("deploy",), 200, 200), (("read",), 403, 200), (("invoke",), 403, 403)]
)
async def test_who_deploys_sets(world: World, scopes: tuple[str, ...], sets: int, lists: int) -> None:
    """Who reads sees names."""
    async with world.client(world.add_key("acme", *scopes)) as client:
        assert (await client.put("/v1/secrets/token", json={"value": VALUE})).status_code == sets
        assert (await client.get("/v1/secrets")).status_code == lists
        assert (await client.delete("/v1/secrets/token")).status_code == (204 if sets == 200 else 403)


async def test_the_audit_log_has_who_and_what_and_no_value(world: World) -> None:
    """Set and removed, also if it was refused."""
    async with world.client() as client:
        await client.put("/v1/secrets/token", json={"value": VALUE})
        await client.put("/v1/secrets/token", json={"value": "short"})
        await client.delete("/v1/secrets/token")
    records = world.audit.records  # before each change, and after it

    assert [(one.operation, one.target, one.status) for one in records if one.status] == [
        ("setSecret", {"name": "token"}, 200), ("setSecret", {"name": "token"}, 422),
        ("removeSecret", {"name": "token"}, 204),
    ]  # fmt: skip
    assert not [one for one in records if one.told]


async def test_without_the_platforms_key_the_caller_hears_it(world: World) -> None:
    """As the platform's fault."""
    world.services.vault = vault_over(MemorySecrets(), MemoryPlatformKey(refused=True))
    async with world.client() as client:
        answer = await client.put("/v1/secrets/token", json={"value": VALUE})

    assert (answer.status_code, answer.json()["code"]) == (503, "misconfigured")
