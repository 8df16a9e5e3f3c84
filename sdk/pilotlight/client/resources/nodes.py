"""Nodes, for operators."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pilotlight.client.resources.platform import PlatformClient
from pilotlight_core.model.api.node_api import JoinTokenRequest

Json = dict[str, Any]


class NodesClient:
    """Requests of `/v1/nodes`."""

    def __init__(self, platform: PlatformClient) -> None:
        self._platform = platform

    async def list_nodes(self) -> list[Json]:
        """Return the nodes that report, and those on record."""
        return list((await self._platform.request("GET", "/v1/nodes", answer_type=Json))["nodes"])

    async def get_node(self, node: str) -> Json:
        """Return one node."""
        return await self._platform.request("GET", _path(node), answer_type=Json)

    async def create_join_token(self, request: JoinTokenRequest) -> Json:
        """Make a token by which one node may join, once."""
        return await self._platform.request("POST", "/v1/nodes/tokens", body=request, answer_type=Json)

    async def cordon_node(self, node: str) -> Json:
        """Start nothing new on a node."""
        return await self._change(node, "cordon")

    async def uncordon_node(self, node: str) -> Json:
        """Let a node take containers again."""
        return await self._change(node, "uncordon")

    async def drain_node(self, node: str) -> Json:
        """End a node's containers once their calls are done, and start nothing new there."""
        return await self._change(node, "drain")

    async def revoke_node(self, node: str) -> Json:
        """End a node's identity on the bus."""
        return await self._change(node, "revoke")

    async def _change(self, node: str, verb: str) -> Json:
        return await self._platform.request("POST", f"{_path(node)}/{verb}", answer_type=Json)


def _path(node: str) -> str:
    return f"/v1/nodes/{quote(node, safe='')}"
