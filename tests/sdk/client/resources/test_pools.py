"""Pools over HTTP."""

from __future__ import annotations

from msgspec import convert

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.pools import PoolsClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolTerms
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


async def test_a_pool_is_a_path(platform: ScriptedPlatform, connection: PlatformConnection) -> None:
    """A request for each word."""
    pools = PoolsClient(PlatformClient(connection))
    terms = PoolTerms(types=(MachineType(name="local"),))
    platform.will("GET", "/v1/pools", answer({"pools": [{"pool": "here"}]}))
    platform.will("GET", "/v1/pools/here", answer({"pool": "here"}))
    platform.will("PUT", "/v1/pools/here", answer({"pool": "here"}))
    platform.will("POST", "/v1/pools/here/drain", answer({"pool": "here"}))
    platform.will("DELETE", "/v1/pools/here", Answer(status=204))

    assert await pools.list_pools() == [{"pool": "here"}]
    assert await pools.get_pool("here") == {"pool": "here"}
    assert await pools.set_pool("here", terms) == {"pool": "here"}
    assert await pools.drain_pool("here") == {"pool": "here"}
    await pools.delete_pool("here")
    assert convert(platform.requests[2].json, PoolTerms) == terms
