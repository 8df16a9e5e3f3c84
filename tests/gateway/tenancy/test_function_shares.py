"""Functions that others may call: who may, and who sees it."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound, QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, LimitsRecord
from pilotlight_gateway.tenancy import function_shares
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.function_shares import (
    check_still_open,
    page_of_shared,
    share_app,
    shared_with,
    shares_of,
    unshare_app,
)
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

    assert shared_with(world.registry, "zoo") == []
    assert [one.function for one in shared_with(world.registry, "zoo", everybody=True)] == ["hello"]
    assert [one.function for one in shared_with(world.registry, "rival", everybody=True)] == ["bye", "hello"]
    assert shared_with(world.registry, "zoo", everybody=True, owner="other") == []
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


def set_open_functions(world: World, allowed: int) -> None:
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(open_functions=allowed))


@pytest.fixture
def limited(world: World) -> World:
    """Three functions may be open to everybody."""
    set_open_functions(world, 3)
    return world


async def test_few_functions_are_open_to_everybody(limited: World) -> None:
    """The refusal names the limit; by name a tenant shares on, and what ends makes room."""
    limited.deploy(function("a"), function("b"), app="other")
    await share_app(limited.registry, "acme", "shop", "*", ALL)

    with pytest.raises(QuotaExceeded, match=r"3 functions that are shared with everybody \(the limit open_functions"):
        await share_app(limited.registry, "acme", "other", "*", ALL)
    await share_app(limited.registry, "acme", "other", "*", FunctionShareRequest(functions=("a",)))
    await share_app(limited.registry, "acme", "other", "rival", ALL)
    await unshare_app(limited.registry, "acme", "shop", "*")
    await share_app(limited.registry, "acme", "other", "*", ALL)


async def test_what_is_open_beyond_a_new_limit_may_become_less(limited: World) -> None:
    """And may be shared again as it is; more is refused."""
    await share_app(limited.registry, "acme", "shop", "*", ALL)
    set_open_functions(limited, 0)

    await share_app(limited.registry, "acme", "shop", "*", ALL)
    await share_app(limited.registry, "acme", "shop", "*", FunctionShareRequest(functions=("hello",)))
    with pytest.raises(QuotaExceeded, match="open_functions"):
        await share_app(limited.registry, "acme", "shop", "*", ALL)


async def test_a_deploy_does_not_open_more_than_may_be(limited: World) -> None:
    """Functions added to an app that is open as a whole count; those of another one do not, nor does the same again."""
    await share_app(limited.registry, "acme", "shop", "*", ALL)
    present = limited.registry.app_nowait("acme", "shop")
    assert present is not None

    def with_functions(count: int) -> AppRecord:
        return msgspec.structs.replace(present, functions={f"f{number}": "v" for number in range(count)})

    check_still_open(limited.registry, with_functions(3))
    with pytest.raises(QuotaExceeded, match="open_functions"):
        check_still_open(limited.registry, with_functions(4))
    set_open_functions(limited, 1)
    check_still_open(limited.registry, with_functions(2))
    check_still_open(limited.registry, msgspec.structs.replace(with_functions(4), app="other"))


async def test_what_150_apps_share_with_everybody_is_in_nobodys_list_unasked(world: World) -> None:
    """Who asks gets it in pages, and finds one owner's among all."""
    await share_app(world.registry, "acme", "shop", "rival", ALL)
    many = [function(f"f{number}") for number in range(20)]
    for number in range(150):
        world.deploy(*many, app=f"app{number}", tenant="loud")
        world.registry.share_records["loud", f"app{number}"] = FunctionShareRecord(
            tenant="loud", app=f"app{number}", grants={"*": ()}
        )

    assert [one.owner for one in page_of_shared(world.registry, "rival").shared] == ["acme", "acme"]
    pages, after = [], ""
    while True:
        page = page_of_shared(world.registry, "rival", everybody=True, after=after, limit=1_000)
        pages.append(page.shared)
        if page.next is None:
            break
        after = page.next
    refs = [one.ref for page in pages for one in page]
    assert list(map(len, pages)) == [1_000, 1_000, 1_000, 2]
    assert refs == sorted(set(refs))
    only = page_of_shared(world.registry, "rival", everybody=True, owner="acme")
    assert [one.function for one in only.shared] == ["bye", "hello"]
    assert page_of_shared(world.registry, "rival", owner="loud").shared == ()
