"""A ref stands for a version of the caller's own tenant, or for nothing."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, UnknownFunction
from tests.gateway.world import World, function


async def test_a_ref_is_found_with_and_without_its_tenant(world: World) -> None:
    """`app.function` and `own:app.function` are the same, pinned or not."""
    (version,) = world.deploy(function())
    resolve = world.services.resolver.resolve

    for ref in ("shop.hello", "acme:shop.hello", "shop.hello@v1"):
        assert await resolve("acme", ref) == version


@pytest.mark.parametrize("ref", ["rival:shop.hello", "shop.hello@v2", "shop.hello@live", "shop.bye", "shelf.hello"])
async def test_what_is_not_the_callers_does_not_exist(world: World, ref: str) -> None:
    """Another tenant's function is as unknown as none."""
    world.deploy(function())
    world.deploy(function(), tenant="rival")

    with pytest.raises(UnknownFunction):
        await world.services.resolver.resolve("acme", ref)


@pytest.mark.parametrize("ref", ["", "hello", "a.b.c", "shop.hello@", "../x.y", "shop.he*llo", "shop.hello@v1@v2"])
async def test_what_is_no_ref_is_bad_input(world: World, ref: str) -> None:
    """Separators and wildcards never reach a key or a subject."""
    with pytest.raises(BadInput):
        await world.services.resolver.resolve("acme", ref)


async def test_the_apps_record_decides_what_a_version_is_called(world: World) -> None:
    """Where two deploys of the same content raced, a version's own number may be wrong."""
    (version,) = world.deploy(function())
    world.registry.versions[version.id] = msgspec.structs.replace(version, number=9)

    assert (await world.services.resolver.resolve("acme", "shop.hello")).ref == "shop.hello@v1"
