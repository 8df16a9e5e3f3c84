"""Routes of calls in memory."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.pipelines.pipeline import CallHook, Pipeline
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, CallLimits
from pilotlight_gateway.http.calls.call_routes import CallRoutes
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.builders.specs import method
from tests.gateway.world import World, function, generator


def routes_of(world: World) -> CallRoutes:
    services = world.services
    limiter = MemoryLimiter(LimitPolicies(services.registry.limits))
    limits = CallLimits(limiter, services.costs, services.recorder, services.prices)
    return CallRoutes(services.registry, services.resolver, limits)


async def limit(world: World, **limits: Any) -> None:
    await world.registry.change_limits("acme", lambda _: LimitsRecord(tenant="acme", limits=Limits(**limits)))


async def test_a_route_is_found_once_until_a_record_changes(world: World) -> None:
    """Keys change all the time, and decide nothing here."""
    (version,) = world.deploy(function())
    routes = routes_of(world)
    route = routes.find("acme", "shop.hello")
    assert route is not None
    assert (route.version, route.function, route.body) == (version, "acme:shop.hello", CALL_BODY)
    world.add_key("acme", "invoke")
    assert routes.find("acme", "shop.hello") is route
    await limit(world, payload_bytes=7, requests_per_s=1.0)
    found = routes.find("acme", "shop.hello")
    assert found is not None
    assert (found.body.size, found.policy.most_tokens) == (7, 0.0)


@pytest.mark.parametrize("ref", ["shop.nothing", "other:shop.hello", "no ref", "shop.hello@v7"])
def test_a_ref_that_leads_nowhere_is_left_to_those_who_look_further(world: World, ref: str) -> None:
    world.deploy(function())
    assert routes_of(world).find("acme", ref) is None


async def test_calls_with_more_to_them_have_no_route(world: World) -> None:
    """Generators, versions whose schemas are apart, runs that end by themselves, tokens that are counted later."""
    (version, *_) = world.deploy(function(), function("tokens", generator()))
    routes = routes_of(world)
    assert routes.find("acme", "shop.tokens") is None
    world.registry.versions[version.id] = msgspec.structs.replace(version, schemas_apart=True)
    assert routes.find("acme", "shop.hello") is None
    world.registry.versions[version.id] = version
    app = world.registry.apps["acme", "shop"]
    world.registry.apps["acme", "shop"] = msgspec.structs.replace(app, ends_at=4e9)
    assert routes.find("acme", "shop.hello") is None
    world.registry.apps["acme", "shop"] = app
    await limit(world, tokens_per_s=5.0)
    assert routes.find("acme", "shop.hello") is None


async def test_a_class_with_hooks_is_no_warm_call(world: World) -> None:
    """Its values between stages have to have room; a function beside it has its route as ever."""
    hook = CallHook(attribute="read", version="ver_pre")
    spec = function("Words", method("add", "add"), is_class=True, pipeline=Pipeline(preprocess=hook, takes={"add": ""}))
    world.deploy(function(), spec)
    routes = routes_of(world)
    assert routes.find("acme", "shop.Words") is None
    assert routes.find("acme", "shop.hello") is not None
