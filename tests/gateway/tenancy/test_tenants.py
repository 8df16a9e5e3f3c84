"""Tenants: made and changed by the operator, each visible to itself only."""

from __future__ import annotations

import pytest

from pilotlight_core.host.registry import TenantRecord
from pilotlight_core.model.api.tenancy_api import TenantChange, TenantRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.tenants import change_tenant, create_tenant, tenant_info, visible_tenant

OPERATOR = Principal(tenant="platform", key_id="k", scopes=frozenset({"operator"}))
ACME = Principal(tenant="acme", key_id="k", scopes=frozenset({"admin"}))


@pytest.fixture
def registry() -> MemoryRegistry:
    made = MemoryRegistry()
    for name in ("platform", "acme", "rival"):
        made.tenant_records[name] = TenantRecord(name=name, created_at=1.0)
    return made


async def test_a_tenant_is_made_once(registry: MemoryRegistry) -> None:
    """Under a name that stands for nothing else, with the epoch of the home of its limits."""
    made = await create_tenant(registry, TenantRequest(name="zoo"), 7.0, 3)

    assert (made.name, made.created_at, made.home) == ("zoo", 7.0, 3)
    assert tenant_info(made).name == "zoo"
    for name in ("zoo", "operator", "store-id"):
        with pytest.raises(Conflict, match=name):
            await create_tenant(registry, TenantRequest(name=name), 8.0, 3)


@pytest.mark.parametrize("name", ["rival", "nobody", "no name"])
async def test_a_tenant_sees_itself_only(registry: MemoryRegistry, name: str) -> None:
    """Another one is as if it were not there."""
    assert (await visible_tenant(registry, ACME, "acme")).name == "acme"
    with pytest.raises(NotFound, match="There is no tenant"):
        await visible_tenant(registry, ACME, name)


async def test_an_operator_sees_every_tenant(registry: MemoryRegistry) -> None:
    """And those that are not there no more than others do."""
    assert (await visible_tenant(registry, OPERATOR, "rival")).name == "rival"
    with pytest.raises(NotFound):
        await visible_tenant(registry, OPERATOR, "nobody")


async def test_a_network_is_all_that_is_given(registry: MemoryRegistry) -> None:
    """It replaces the one before, also by nothing; what names no target is refused."""
    given = await change_tenant(registry, OPERATOR, "acme", TenantChange(network=("*.example.com:443",)))
    weighed = await change_tenant(registry, OPERATOR, "acme", TenantChange(weight=2.0))
    with pytest.raises(BadInput, match=r"network: 'example\.com': expected a host and a port"):
        await change_tenant(registry, OPERATOR, "acme", TenantChange(network=("example.com",)))
    none = await change_tenant(registry, OPERATOR, "acme", TenantChange(network=()))

    assert given.network == weighed.network == tenant_info(given).network == ("*.example.com:443",)
    assert none.network == ()


async def test_a_change_gives_what_it_names(registry: MemoryRegistry) -> None:
    """A tenant that changes its tier has moved, once and for all."""
    tier = next(iter(registry.tiers())).name
    weighed = await change_tenant(registry, OPERATOR, "acme", TenantChange(weight=2.0))
    moved = await change_tenant(registry, OPERATOR, "acme", TenantChange(tier=tier))
    still = await change_tenant(registry, OPERATOR, "acme", TenantChange(weight=3.0))

    assert (weighed.weight, weighed.moved) == (2.0, False)
    assert (moved.tier, moved.weight, moved.moved) == (tier, 2.0, True)
    assert (still.tier, still.moved) == (tier, True)


async def test_what_is_not_there_is_named(registry: MemoryRegistry) -> None:
    """A tier, with those that there are, or a tenant."""
    with pytest.raises(NotFound, match="there is no tier none"):
        await change_tenant(registry, OPERATOR, "acme", TenantChange(tier="none"))
    with pytest.raises(NotFound, match="there is no tier none"):
        await create_tenant(registry, TenantRequest(name="zoo", tier="none"), 1.0, 0)
    for name in ("nobody", "no name"):
        with pytest.raises(NotFound, match="There is no tenant"):
            await change_tenant(registry, OPERATOR, name, TenantChange(weight=2.0))


async def test_an_operator_does_not_lock_itself_out(registry: MemoryRegistry) -> None:
    """It may disable any tenant but the one of its own key."""
    with pytest.raises(Conflict, match="another tenant"):
        await change_tenant(registry, OPERATOR, "platform", TenantChange(disabled=True))

    assert (await change_tenant(registry, OPERATOR, "acme", TenantChange(disabled=True))).disabled
