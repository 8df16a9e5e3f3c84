"""Requests about the supply chain: refs and names are quoted, answers are typed."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.supply import SupplyClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.supply.supply_api import TrustedKeyRequest
from pilotlight_core.model.supply.policies import Policy
from tests.sdk.cli.supply_commands import POLICY, TRUSTED, VERDICT
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


@pytest.fixture
def supply(connection: PlatformConnection) -> SupplyClient:
    return SupplyClient(PlatformClient(connection))


async def test_documents_and_verdicts_are_asked_for_by_ref(platform: ScriptedPlatform, supply: SupplyClient) -> None:
    """Of a version too."""
    platform.will("GET", "/v1/functions/acme:shop.rank@v3/provenance", answer({"payload": "x"}))
    platform.will("GET", "/v1/functions/shop.rank/verdict", answer(VERDICT))

    assert await supply.get_document("acme:shop.rank@v3", "provenance") == {"payload": "x"}
    assert (await supply.get_verdict("shop.rank")).allowed


async def test_a_policy_is_the_tenants_or_the_platforms(platform: ScriptedPlatform, supply: SupplyClient) -> None:
    """At addresses of their own."""
    platform.will("PUT", "/v1/policy", answer(POLICY))
    platform.will("GET", "/v1/platform-policy", answer(POLICY))
    platform.will("DELETE", "/v1/platform-policy", Answer(status=204))

    assert (await supply.set_policy(Policy(signed=True))).revision == 3
    assert (await supply.get_policy(platform=True)).policy.signed
    await supply.remove_policy(platform=True)
    assert platform.requests[0].json == {"signed": True}


async def test_keys_are_put_on_record_and_revoked_by_name(platform: ScriptedPlatform, supply: SupplyClient) -> None:
    """Whatever the name is."""
    platform.will("PUT", "/v1/trusted-keys/a/b", answer(TRUSTED))
    platform.will("POST", "/v1/trusted-keys/a/b/revoke", answer(TRUSTED))

    await supply.trust("a/b", TrustedKeyRequest(pem="x"))
    await supply.revoke("a/b", "lost")
    put, revoked = [request.json for request in platform.requests]
    assert (put["pem"], revoked) == ("x", {"reason": "lost"})
