"""Nodes over HTTP."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.nodes import NodesClient
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight_core.model.api.node_api import JoinTokenRequest
from pilotlight_core.model.placing import Purchase
from tests.sdk.scripted import ScriptedPlatform, answer


@pytest.fixture
def nodes(connection: PlatformConnection) -> NodesClient:
    return NodesClient(PlatformClient(connection))


async def test_what_is_said_of_a_node_is_a_path(platform: ScriptedPlatform, nodes: NodesClient) -> None:
    """A request for each word."""
    platform.will("GET", "/v1/nodes", answer({"nodes": [{"node": "n1"}]}))
    platform.will("GET", "/v1/nodes/n1", answer({"node": "n1"}))
    words = {
        "cordon": nodes.cordon_node, "uncordon": nodes.uncordon_node, "drain": nodes.drain_node,
        "revoke": nodes.revoke_node,
    }  # fmt: skip
    for word in words:
        platform.will("POST", f"/v1/nodes/n1/{word}", answer({"node": "n1", "state": word}))

    assert await nodes.list_nodes() == [{"node": "n1"}]
    assert await nodes.get_node("n1") == {"node": "n1"}
    for word, say in words.items():
        assert (await say("n1"))["state"] == word


async def test_a_token_has_labels(platform: ScriptedPlatform, nodes: NodesClient) -> None:
    """As they are asked for."""
    platform.will("POST", "/v1/nodes/tokens", answer({"token": "pl_join_x"}))
    assert await nodes.create_join_token(JoinTokenRequest(pool="h100", purchase=Purchase.SPOT)) == {
        "token": "pl_join_x"
    }
    sent = platform.requests[0].json
    assert (sent["pool"], sent["purchase"], sent["node"]) == ("h100", "spot", "")
