"""Pools of nodes, for operators."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.pools.pool_terms import PoolTerms

Json = dict[str, Any]


class PoolsClient:
    """Requests of `/v1/pools`."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_pools(self) -> list[Json]:
        """Return the pools, each with its machines."""
        return list((await self._platform.request("GET", "/v1/pools", answer_type=Json))["pools"])

    async def get_pool(self, pool: str) -> Json:
        """Return one pool."""
        return await self._platform.request("GET", _path(pool), answer_type=Json)

    async def set_pool(self, pool: str, terms: PoolTerms) -> Json:
        """Make a pool, or replace what is said of it."""
        return await self._platform.request("PUT", _path(pool), body=terms, answer_type=Json)

    async def delete_pool(self, pool: str) -> None:
        """Remove a pool that has no machine."""
        await self._platform.send("DELETE", _path(pool))

    async def drain_pool(self, pool: str) -> Json:
        """Let all nodes of a pool go."""
        return await self._platform.request("POST", f"{_path(pool)}/drain", answer_type=Json)


def _path(pool: str) -> str:
    return f"/v1/pools/{quote(pool, safe='')}"
