"""Which function a model's name stands for."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.errors import UnknownFunction
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.http.inference.model_lookup import ModelLookup
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


async def test_an_adapter_is_not_answered_by_its_model(world: World) -> None:
    """These APIs have no way to say which: so they say where there is one."""
    engine = EngineSpec(kind=EngineKind.TORCH, weights="tiny", adapters=("french",))
    world.deploy(msgspec.structs.replace(model(), serves=("tiny",), engine=engine))
    world.registry.model_records["acme", "tiny"] = ModelRecord(
        tenant="acme", name="tiny", app="shop", function="double", created_at=0.0, claimed_at=0.0
    )
    models = ModelLookup(Resolver(world.registry), VersionSchemas(world.blobs), ServedModels(world.registry))

    assert (await models.find("acme", "tiny")).version.function == "double"
    with pytest.raises(UnknownFunction, match="it is an adapter"):
        await models.find("acme", "tiny:french")
