"""Which function a model's name stands for."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.spec import MethodSpec, Mode
from pilotlight_gateway.deploys.resolver import Resolver
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
    for name, error in (("shop.none", UnknownFunction), ("beta:shop.double", UnknownFunction), ("shop", BadInput),
                        ("", BadInput), ("shop.double.other", BadInput)):  # fmt: skip
        with pytest.raises(error):
            await models.find("acme", name)
    with pytest.raises(UnknownFunction):
        await models.find("other", "shop.double")
