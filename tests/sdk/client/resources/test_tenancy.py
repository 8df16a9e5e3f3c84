"""Tenants, keys, limits and shares over HTTP: whose they are stands in the path, and names are no paths."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.tenancy import TenancyClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import Conflict, NotFound
from pilotlight_core.model.api.call_api import KeyRequest
from pilotlight_core.model.api.tenancy_api import RotateRequest, TenantChange
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem


@pytest.fixture
def tenancy(connection: PlatformConnection) -> TenancyClient:
    return TenancyClient(PlatformClient(connection))


async def test_the_last_key_that_manages_keys_is_kept(platform: ScriptedPlatform, tenancy: TenancyClient) -> None:
    """Only `force` revokes it."""
    platform.will("DELETE", "/v1/keys/k9", problem("conflict", "k9 is the last key."), answer({"revoked": True}))
    with pytest.raises(Conflict, match="the last key"):
        await tenancy.revoke_key("k9", None)
    assert await tenancy.revoke_key("k9", None, force=True) == {"revoked": True}
    assert [request.query for request in platform.requests] == ["", "force=true"]


async def test_a_name_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, tenancy: TenancyClient
) -> None:
    """No other resource is reached."""
    platform.will("GET", "/v1/tiers", answer({"name": "acme"}))
    with pytest.raises(NotFound):
        await tenancy.get_tenant("../tiers")
    assert not platform.asked("/v1/tiers")


@pytest.mark.parametrize(("tenant", "prefix"), [(None, "/v1/keys"), ("acme", "/v1/tenants/acme/keys")])
async def test_keys_are_the_callers_or_a_tenants(
    platform: ScriptedPlatform, tenancy: TenancyClient, tenant: str | None, prefix: str
) -> None:
    """The path of each request has the tenant, if one is given."""
    platform.will("GET", prefix, answer({"keys": [{"id": "k1"}]}))
    platform.will("POST", prefix, answer({"id": "k2", "key": "secret"}, 201))
    platform.will("POST", f"{prefix}/k2/rotate", answer({"id": "k3", "key": "other"}, 201))
    platform.will("DELETE", f"{prefix}/k3", answer({"id": "k3", "revoked": True}))
    assert await tenancy.list_keys(tenant) == [{"id": "k1"}]
    assert (await tenancy.create_key(KeyRequest(scopes=("invoke",)), tenant))["key"] == "secret"
    assert (await tenancy.rotate_key("k2", RotateRequest(overlap_s=60.0), tenant))["id"] == "k3"
    assert (await tenancy.revoke_key("k3", tenant))["revoked"]
    assert platform.requests[2].json["overlap_s"] == 60.0


async def test_limits_are_of_a_tenant_or_of_its_calls_to_a_function(
    platform: ScriptedPlatform, tenancy: TenancyClient
) -> None:
    """A function of another owner keeps its colon in the path."""
    one = "/v1/tenants/acme/limits/zoo:llm.chat"
    platform.will("PUT", "/v1/tenants/acme/limits", answer({}))
    platform.will("PUT", one, problem("unknown_function"), answer({"function": "zoo:llm.chat"}))
    platform.will("DELETE", one, Answer(status=204))
    await tenancy.set_limits("acme", None, {"burst": 3})
    with pytest.raises(NotFound):
        await tenancy.set_limits("acme", "zoo:llm.chat", {"burst": 3})
    assert await tenancy.set_limits("acme", "zoo:llm.chat", {"burst": 3}, ahead=True)
    await tenancy.clear_limits("acme", "zoo:llm.chat")
    assert [request.query for request in platform.requests] == ["", "", "ahead=true", ""]


async def test_a_share_may_be_for_everybody(platform: ScriptedPlatform, tenancy: TenancyClient) -> None:
    """The star stands in the path as it is."""
    platform.will("PUT", "/v1/apps/llm/shares/*", answer({"tenant": "*"}))
    platform.will("DELETE", "/v1/apps/llm/shares/*", Answer(status=204))
    assert await tenancy.share_app("llm", "*", ("chat",)) == {"tenant": "*"}
    await tenancy.unshare_app("llm", "*")
    assert platform.requests[0].json == {"functions": ["chat"]}


async def test_a_change_of_a_tenant_and_a_tier(platform: ScriptedPlatform, tenancy: TenancyClient) -> None:
    """A tenant's fields are changed one by one, a tier is replaced whole."""
    platform.will("PATCH", "/v1/tenants/acme", answer({"name": "acme"}))
    platform.will("PUT", "/v1/tiers/gold", answer({"name": "gold"}))
    platform.will("DELETE", "/v1/tiers/gold", problem("not_found", "There is no tier gold."))
    await tenancy.update_tenant("acme", TenantChange(weight=2.0))
    assert platform.requests[0].json == {"tier": None, "weight": 2.0, "disabled": None, "network": None}
    assert await tenancy.set_tier("gold", {"rank": 5}) == {"name": "gold"}
    with pytest.raises(NotFound, match="no tier gold"):
        await tenancy.delete_tier("gold")
