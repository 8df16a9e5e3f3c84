"""An app that is deployed again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest, DeployResponse
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.tenancy.auth import Principal
from tests.gateway.world import World, entry, function

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))
Deploying = Callable[..., Awaitable[DeployResponse]]


@pytest.fixture
def deploying(world: World) -> Deploying:
    """Deploys the app `shop` of acme with a content of its own."""

    async def deploy(content: bytes, *specs: FunctionSpec, **more: Any) -> DeployResponse:
        await world.blobs.put("acme", entry(content).sha256, content)
        functions = tuple(DeployFunction(spec=spec) for spec in specs or (function(),))
        request = DeployRequest(functions=functions, files=(entry(content),), **more)
        return await world.services.deployer.deploy(ACME, "shop", request)

    return deploy
