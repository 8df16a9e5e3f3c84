"""API keys over HTTP: a tenant's own, and every tenant's for the operator."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.world import World


async def test_a_key_is_made_used_listed_and_revoked(world: World) -> None:
    """The secret is shown once; from its revocation on it opens nothing."""
    async with world.client() as client:
        made = (await client.post("/v1/keys", json={"scopes": ["read"], "label": "ci"})).json()
        async with world.client(made["key"]) as other:
            assert (await other.get("/v1/apps")).status_code == 200
            assert (await other.get("/v1/keys")).status_code == 403
            listed = (await client.get("/v1/keys")).json()["keys"]
            assert {key["id"] for key in listed} == {made["id"], world.key.id}
            assert made["key"] not in str(listed)

            for already in (False, True):
                ended = (await client.delete(f"/v1/keys/{made['id']}")).json()
                assert ended == {"id": made["id"], "revoked": True, "already": already}
            assert (await other.get("/v1/apps")).status_code == 401
        assert (await client.delete("/v1/keys/unknown0")).status_code == 404
        assert (await client.post("/v1/keys", json={"scopes": ["root"]})).json()["field"] == "scopes.0"
        assert (await client.post("/v1/keys")).json()["scopes"] == ["invoke"]


async def test_a_key_is_rotated_without_a_gap(world: World) -> None:
    """Both open while they overlap; the list says what follows what."""
    old = world.add_key("acme", "read")
    async with world.client() as admin, world.client(old) as before:
        made = (await admin.post(f"/v1/keys/{old.id}/rotate", json={"overlap_s": 60})).json()
        assert (made["replaces"], made["scopes"]) == (old.id, ["read"])
        async with world.client(made["key"]) as after:
            assert [(await each.get("/v1/apps")).status_code for each in (before, after)] == [200, 200]
            world.wall.at = made["replaced_until"]
            world.clock.at += 60.0
            assert [(await each.get("/v1/apps")).status_code for each in (before, after)] == [401, 200]
        listed = {key["id"]: key for key in (await admin.get("/v1/keys")).json()["keys"]}
        assert listed[old.id]["replaced_by"] == made["id"]
        assert (await admin.post(f"/v1/keys/{old.id}/rotate", json={})).status_code == 409
        assert (await admin.post(f"/v1/keys/{made['id']}/rotate", json={"overlap_s": -1})).json()[
            "field"
        ] == "overlap_s"
        assert (await admin.post("/v1/keys/unknown0/rotate")).status_code == 404


async def test_the_operator_has_every_tenants_keys(world: World) -> None:
    """Makes, lists, rotates and ends them; a key of one tenant is not found at another's address."""
    async with world.client(world.operator) as operator:
        made = (await operator.post("/v1/tenants/acme/keys", json={"scopes": ["invoke"]})).json()
        listed = (await operator.get("/v1/tenants/acme/keys")).json()["keys"]
        assert {key["id"] for key in listed} == {made["id"], world.key.id}
        turned = (await operator.post(f"/v1/tenants/acme/keys/{made['id']}/rotate")).json()
        assert (await operator.delete(f"/v1/tenants/platform/keys/{turned['id']}")).status_code == 404
        assert (await operator.delete(f"/v1/tenants/acme/keys/{turned['id']}")).json()["revoked"]
        assert (await operator.get("/v1/tenants/nobody/keys")).status_code == 404


async def test_nobody_is_locked_out_by_mistake(world: World) -> None:
    """The last key that may manage keys, and the last that runs the platform, end only by force."""
    async with world.client() as admin, world.client(world.operator) as operator:
        refused = await admin.delete(f"/v1/keys/{world.key.id}")
        assert (refused.status_code, refused.json()["field"]) == (409, "force")
        assert "the last key of acme with the scope admin" in refused.json()["detail"]
        world.add_key("platform", "admin")
        assert "the last key of the platform" in (await operator.delete(f"/v1/keys/{world.operator.id}")).text
        assert (await admin.delete(f"/v1/keys/{world.key.id}?force=maybe")).json()["field"] == "force"

        other = (await admin.post("/v1/keys", json={"scopes": ["admin"], "expires_in_s": 60})).json()
        assert (await admin.delete(f"/v1/keys/{world.key.id}")).json()["revoked"]
        assert (await operator.delete(f"/v1/tenants/acme/keys/{other['id']}")).status_code == 409
        assert (await operator.delete(f"/v1/tenants/acme/keys/{other['id']}?force=true")).json()["revoked"]


async def test_an_admin_cannot_become_an_operator(world: World) -> None:
    """Not by making, not by rotating a key of its own tenant that is one."""
    async with world.client(world.add_key("platform", "admin")) as admin:
        assert (await admin.post("/v1/keys", json={"scopes": ["operator"]})).status_code == 403
        assert (await admin.post(f"/v1/keys/{world.operator.id}/rotate")).status_code == 403
        assert (await admin.delete(f"/v1/keys/{world.operator.id}")).status_code == 403
    async with world.client(world.operator) as operator:
        assert (await operator.post("/v1/keys", json={"scopes": ["operator"]})).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [({"scopes": []}, "scopes"), ({"scopes": ["invoke", "x"]}, "scopes.1"), ({"expires_in_s": 0}, "expires_in_s"),
     ({"expires_in_s": 1e12}, "expires_in_s"), ({"label": "x" * 101}, "label"), ({"label": "a\nb"}, "label"),
     ({"label": "a\u202eb"}, "label"), ({"owner": "x"}, "owner")],
)  # fmt: skip
async def test_a_wrong_key_names_its_field(world: World, body: dict[str, Any], field: str) -> None:
    """422, and nothing is made."""
    async with world.client() as admin:
        answer = await admin.post("/v1/keys", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert len(world.registry.key_records) == 2
