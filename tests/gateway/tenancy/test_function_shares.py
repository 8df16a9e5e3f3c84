"""Functions that others may call: who may, and who sees it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_gateway.tenancy import function_shares
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.function_shares import share_app, shared_with, shares_of, unshare_app
from tests.gateway.world import World, function

ALL = FunctionShareRequest()
ADMIN = Principal(tenant="acme", key_id="k", scopes=frozenset({"admin"}))


@pytest.fixture(autouse=True)
def app(world: World) -> None:
    """The app `shop` of the tenant `acme`."""
    world.deploy(function("hello"), function("bye"))


async def test_a_shared_app_is_seen_by_its_grantee_alone(world: World) -> None:
    """Under the owner's name; the owner is not shown its own."""
    await share_app(world.registry, "acme", "shop", "rival", ALL)

    assert [one.ref for one in shared_with(world.registry, "rival")] == ["acme:shop.bye", "acme:shop.hello"]
    assert shared_with(world.registry, "zoo") == shared_with(world.registry, "acme") == []


async def test_some_functions_may_be_shared_and_with_everybody(world: World) -> None:
    """The last word on a grantee counts."""
    await share_app(world.registry, "acme", "shop", "rival", ALL)
    await share_app(world.registry, "acme", "shop", "rival", FunctionShareRequest(functions=("bye", "bye")))
    assert [one.function for one in shared_with(world.registry, "rival")] == ["bye"]
    await share_app(world.registry, "acme", "shop", "*", FunctionShareRequest(functions=("hello",)))

    assert [one.function for one in shared_with(world.registry, "zoo")] == ["hello"]
    shares = await shares_of(world.registry, "acme", "shop")
    assert [(one.grantee, one.functions) for one in shares] == [("*", ("hello",)), ("rival", ("bye",))]


async def test_a_share_ends(world: World) -> None:
    """Once; others stay."""
    for grantee in ("rival", "zoo"):
        await share_app(world.registry, "acme", "shop", grantee, ALL)
    await unshare_app(world.registry, "acme", "shop", "rival")
    with pytest.raises(NotFound, match="not shared with rival"):
        await unshare_app(world.registry, "acme", "shop", "rival")

    assert shared_with(world.registry, "rival") == []
    assert len(shared_with(world.registry, "zoo")) == 2


async def test_what_is_stopped_is_not_called_by_others_either(world: World) -> None:
    """It comes back with its next deploy."""
    await share_app(world.registry, "acme", "shop", "rival", ALL)
    await world.services.deployer.stop(ADMIN, "shop")

    assert shared_with(world.registry, "rival") == []


async def test_what_makes_no_sense_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another app or function, no name, oneself, and too many."""
    monkeypatch.setattr(function_shares, "TENANTS_AT_MOST", 1)
    with pytest.raises(NotFound):
        await share_app(world.registry, "acme", "shpo", "rival", ALL)
    with pytest.raises(NotFound):
        await share_app(world.registry, "acme", "shop", "rival", FunctionShareRequest(functions=("helo",)))
    with pytest.raises(BadInput):
        await share_app(world.registry, "acme", "shop", "no name", ALL)
    with pytest.raises(Conflict, match="anyway"):
        await share_app(world.registry, "acme", "shop", "acme", ALL)
    await share_app(world.registry, "acme", "shop", "rival", ALL)
    with pytest.raises(Conflict, match="already"):
        await share_app(world.registry, "acme", "shop", "zoo", ALL)

    with pytest.raises(NotFound):
        await shares_of(world.registry, "rival", "shop")
