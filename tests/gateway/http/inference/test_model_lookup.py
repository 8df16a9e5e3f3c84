"""Which function a model's name stands for."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import EMBED, GENERATE, EngineKind, EngineSpec
from pilotlight_core.model.errors import TooMuch, UnknownFunction
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.http.inference.model_lookup import ModelLookup
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from tests.gateway.served_models import model
from tests.gateway.world import World, function


def lookup(world: World) -> ModelLookup:
    return ModelLookup(Resolver(world.registry), VersionSchemas(world.blobs))


async def test_a_function_is_a_model(world: World) -> None:
    """With its version, or without; of a class each method is one."""
    one, two = (MethodSpec(name=name, attribute=name) for name in ("embed", "rank"))
    stream = MethodSpec(name="tokens", attribute="tokens", mode=Mode.GENERATOR)
    world.deploy(model(), function("Models", one, two, stream, is_class=True))
    models = lookup(world)

    found = await models.find("acme", "shop.double", "1")
    assert (found.name, found.number, found.streams) == ("shop.double", "1", False)
    assert (await models.find("acme", "shop.double@v1")).name == "shop.double"
    method = await models.find("acme", "shop.Models.rank")
    assert (method.name, method.method.name) == ("shop.Models.rank", "rank")
    assert (await models.find("acme", "shop.Models.tokens")).streams


async def test_what_is_no_model_is_unknown(world: World) -> None:
    """Another tenant's function too."""
    world.deploy(model())
    models = lookup(world)
    for name in ("shop.none", "beta:shop.double", "shop", "", "shop.double.other", "x" * 600):
        with pytest.raises(UnknownFunction):
            await models.find("acme", name)
    with pytest.raises(UnknownFunction):
        await models.find("other", "shop.double")


async def test_a_name_that_a_function_serves_is_a_model(world: World) -> None:
    """What is a ref too is that ref; the version is of the function's."""
    names = ("acme/doubler", "tiny-1.5")
    world.deploy(msgspec.structs.replace(model(), serves=names))
    for name in names:
        world.registry.model_records["acme", name] = ModelRecord(
            tenant="acme", name=name, app="shop", function="double", created_at=0.0, claimed_at=0.0
        )
    models = ModelLookup(Resolver(world.registry), VersionSchemas(world.blobs), ServedModels(world.registry))
    for name in names:
        found = await models.find("acme", name)
        assert (found.name, found.version.function) == (name, "double")
    assert (await models.find("acme", "shop.double")).version.function == "double"
    for name in ("acme/none", "shop.none"):
        with pytest.raises(UnknownFunction):
            await models.find("acme", name)


ENGINE = EngineSpec(kind=EngineKind.TORCH, weights="tiny", adapters=("french",))
GENERATOR = MethodSpec(name=GENERATE, attribute=GENERATE, mode=Mode.GENERATOR)


def serving_engine(world: World, *names: str) -> ModelLookup:
    """An engine that is served under names."""
    methods = (GENERATOR, MethodSpec(name=EMBED, attribute=EMBED))
    world.deploy(msgspec.structs.replace(function("Chat", *methods, is_class=True), serves=names, engine=ENGINE))
    for name in names:
        world.registry.model_records["acme", name] = ModelRecord(
            tenant="acme", name=name, app="shop", function="Chat", created_at=0.0, claimed_at=0.0
        )
    return ModelLookup(Resolver(world.registry), VersionSchemas(world.blobs), ServedModels(world.registry))


async def test_an_engine_generates_unless_another_method_is_named(world: World) -> None:
    """Under any name: the points of one that is served name no method."""
    models = serving_engine(world, "tiny", "acme/tiny-1.5.2")
    for name in ("tiny", "acme/tiny-1.5.2", "shop.Chat"):
        found = await models.find("acme", name)
        assert (found.name, found.method.name, found.adapter) == (name, GENERATE, "")
    assert (await models.find("acme", "shop.Chat.embed")).method.name == EMBED


async def test_an_adapter_is_its_model_with_its_name(world: World) -> None:
    """One that the engine has not is unknown."""
    models = serving_engine(world, "tiny")
    found = await models.find("acme", "tiny:french")
    assert (found.name, found.version.function, found.adapter) == ("tiny:french", "Chat", "french")
    with pytest.raises(UnknownFunction):
        await models.find("acme", "tiny:german")


async def test_guesses_are_counted(world: World) -> None:
    """Of any kind, until the bus is not asked for more of them; what is in memory is found all the same."""
    rates = ApiRates(lambda _: Limits(api_requests_per_s=0.3), lambda: 0.0)
    served = serving_engine(world, "tiny")
    asked: list[str] = []
    find = world.registry.model

    async def counted(tenant: str, name: str) -> ModelRecord | None:
        asked.append(name)
        return await find(tenant, name)

    world.registry.model = counted  # type: ignore[method-assign]
    models = ModelLookup(Resolver(world.registry), VersionSchemas(world.blobs), ServedModels(world.registry), rates)
    for name in ("acme/none", "shop.none", "tiny:german"):
        with pytest.raises(UnknownFunction):
            await models.find("acme", name)
    before = list(asked)
    for name in ("acme/other", "shop.other", "other"):
        with pytest.raises(TooMuch, match="calls a second of what there is not"):
            await models.find("acme", name)
    assert asked == before
    for name in ("tiny", "tiny:french", "shop.Chat"):
        assert await models.find("acme", name)
    assert await served.find("acme", "tiny")
