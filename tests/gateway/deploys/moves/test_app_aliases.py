"""Words for versions."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput, NotFound, UnknownFunction
from pilotlight_gateway.deploys.moves.app_aliases import AppAliases
from tests.gateway.deploys.deploying import Deploying
from tests.gateway.world import World


async def test_an_alias_leads_to_the_version_that_it_was_set_to(world: World, deploying: Deploying) -> None:
    """A deploy does not move it, and moving it moves all who name it."""
    first, second = await deploying(b"one"), await deploying(b"two")
    aliases, resolver = AppAliases(registry=world.registry), world.services.resolver
    set_to = await aliases.put("acme", "shop", "hello", "prod", "v1")

    assert (set_to.ref, set_to.version) == ("shop.hello@prod", "shop.hello@v1")
    assert (await resolver.resolve("acme", "shop.hello@prod")).id == first.functions[0].version_id
    await aliases.put("acme", "shop", "hello", "prod", second.functions[0].version_id)
    assert (await resolver.resolve("acme", "shop.hello@prod")).id == second.functions[0].version_id
    assert [one.alias for one in await aliases.list("acme", "shop")] == ["prod"]
    assert (await aliases.find("acme", "shop", "hello", "prod")).version == "shop.hello@v2"


async def test_an_alias_may_be_deleted(world: World, deploying: Deploying) -> None:
    """Who names it then is told what there is."""
    await deploying(b"one")
    aliases = AppAliases(registry=world.registry)
    await aliases.put("acme", "shop", "hello", "prod", "v1")
    await aliases.put("acme", "shop", "hello", "beta", "v1")
    await aliases.delete("acme", "shop", "hello", "prod")

    with pytest.raises(UnknownFunction, match="its aliases are beta"):
        await world.services.resolver.resolve("acme", "shop.hello@prod")
    with pytest.raises(NotFound, match="no alias 'prod'"):
        await aliases.delete("acme", "shop", "hello", "prod")
    with pytest.raises(NotFound, match="no app"):
        await aliases.list("acme", "nada")


@pytest.mark.parametrize("name", ["v7", "V7", "ver_" + "0" * 32, "ver_x", "", "a b", "x" * 200])
async def test_an_alias_is_no_version(world: World, deploying: Deploying, name: str) -> None:
    """`@v7` means the seventh version, for ever."""
    await deploying(b"one")

    with pytest.raises(BadInput, match="alias"):
        await AppAliases(registry=world.registry).put("acme", "shop", "hello", name, "v1")


@pytest.mark.parametrize(
    ("function", "version", "error"),
    [
        ("hello", "v2", UnknownFunction), ("hello", "ver_" + "0" * 32, UnknownFunction), ("hello", "beta", BadInput),
        ("hello", "v0", BadInput), ("nada", "v1", UnknownFunction),
    ],
)  # fmt: skip
async def test_an_alias_stands_for_a_version_that_there_is(
    world: World, deploying: Deploying, function: str, version: str, error: type[Exception]
) -> None:
    """Not for another alias, nor for what nobody deployed."""
    await deploying(b"one")

    with pytest.raises(error):
        await AppAliases(registry=world.registry).put("acme", "shop", function, "prod", version)
