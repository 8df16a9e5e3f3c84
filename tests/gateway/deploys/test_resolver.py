"""A ref stands for a version of the caller's own tenant, or for nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, UnknownFunction
from pilotlight_core.model.ids import Ref
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.deploys.resolver import version_wanted
from tests.gateway.world import World, function


def app(functions: dict[str, str], **more: Any) -> AppRecord:
    return AppRecord(tenant="acme", app="shop", revision=1, functions=functions, **more)


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


@pytest.mark.parametrize(
    ("pin", "found"),
    [(None, "ver_2"), ("v1", "ver_1"), (f"ver_{'a' * 32}", f"ver_{'a' * 32}"), ("v2", "ver_2"), ("prod", "ver_1")],
)
def test_a_pin_names_a_version(pin: str | None, found: str) -> None:
    """By number, id or alias; without a pin it is the deployed one."""
    record = app({"a": "ver_2"}, versions={"a": ("ver_1", "ver_2")})
    rollouts = RolloutRecord(tenant="acme", app="shop", revision=1, aliases={"a": {"prod": "ver_1"}})

    assert version_wanted(record, Ref("shop", "a", pin=pin), rollouts) == found


async def test_an_alias_leads_where_it_was_set_to(world: World) -> None:
    """One that was never set is unknown, and those that there are are named."""
    (version,) = world.deploy(function())
    aliases = {"hello": {"prod": version.id}}
    world.registry.rollout_records["acme", "shop"] = RolloutRecord(
        tenant="acme", app="shop", revision=1, aliases=aliases
    )
    assert await world.services.resolver.resolve("acme", "shop.hello@prod") == version
    with pytest.raises(UnknownFunction, match="its aliases are prod"):
        await world.services.resolver.resolve("acme", "shop.hello@beta")


def test_what_is_not_there_is_unknown() -> None:
    """An app, a function, a pin, a withdrawn function and a stopped app, each with its code."""
    versions = {"a": ("ver_1",), "b": ("ver_2",)}
    record = app({"a": "ver_1", "b": "ver_2"}, versions=versions)
    after = app({"a": "ver_1"}, versions=versions)
    stopped = app(record.functions, versions=versions, stopped=True)
    cases = (
        (None, "a", None, "unknown_function"),
        (record, "c", None, "unknown_function"),
        (after, "b", None, "unknown_function"),
        (stopped, "a", None, "unknown_function"),
        (record, "a", "v2", "unknown_version"),
        (record, "a", "live", "unknown_version"),
    )
    for known, name, pin, code in cases:
        with pytest.raises(UnknownFunction) as caught:
            version_wanted(known, Ref("shop", name, pin=pin))
        assert caught.value.wire_code == code
