"""Calls of what there is not are counted, on each front."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import TooMuch, UnknownFunction
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.deploys.called_versions import CalledVersions
from pilotlight_gateway.limits.api_rates import ApiRates
from tests.gateway.world import World, function

FRONTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("/v1/functions/shop.none{}/calls", {"input": {}}),
    "openai": ("/v1/chat/completions", {"model": "acme/none{}", "messages": [{"role": "user", "content": "Hello"}]}),
    "openai, by ref": ("/v1/completions", {"model": "shop.none{}", "prompt": "Hello"}),
    "v2": ("/v2/models/shop.none{}/infer", {"inputs": []}),
    "fixed": ("/v1/inference", {"model": "none{}", "input": "Hello"}),
}


async def test_what_there_is_not_is_looked_for_so_often(world: World) -> None:
    """Then it is refused before anybody is asked; what is in memory is found."""
    (version,) = world.deploy(function())
    rates = ApiRates(lambda _: Limits(api_requests_per_s=0.2), lambda: 0.0)
    versions = CalledVersions(world.services.resolver, rates)
    for ref in ("shop.none", "shop.hello@v9"):
        with pytest.raises(UnknownFunction):
            await versions.find("acme", ref)
    with pytest.raises(TooMuch):
        await versions.find("acme", "shelf.none")

    assert await versions.find("acme", "shop.hello") == version
    with pytest.raises(UnknownFunction):
        await versions.find("rival", "shop.hello")


@pytest.mark.parametrize("front", FRONTS)
async def test_each_front_counts_them(world: World, front: str) -> None:
    """By the tenant's `api_requests_per_s`, which its known functions do not need."""
    world.deploy(function())
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(api_requests_per_s=0.2))
    path, body = FRONTS[front]
    async with world.client() as client:
        said = [
            await client.post(path.format(number), json={k: _named(v, number) for k, v in body.items()})
            for number in range(4)
        ]
        known = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})

    assert [answer.status_code for answer in said] == [404, 404, 429, 429]
    assert "api_requests_per_s" in said[-1].text
    assert float(said[-1].headers["retry-after"]) > 0
    assert known.status_code == 200


def _named(value: object, number: int) -> object:
    return value.format(number) if isinstance(value, str) else value
