"""The shares of the tenants that hold something or wait, as a pass sees them."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.shares import ShareTerms, TenantShares
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.tenant_holdings import HeldResources


def shares_of(state: PassState, waiting: Iterable[str]) -> TenantShares:
    """The shares by what is held at any time in the pass; `waiting` are tenants with something missing."""
    holdings = state.fleet.holdings
    terms = {tenant: _terms(state, tenant) for tenant in {*holdings.tenants(), *waiting}}
    return TenantShares(state.fleet.capacity, holdings.of, terms)


def free_resources(fleet: Fleet) -> HeldResources:
    """What no tenant holds."""
    free = fleet.capacity
    for tenant in fleet.holdings.tenants():
        free = free.plus(fleet.holdings.of(tenant), -1)
    return free


def _terms(state: PassState, tenant: str) -> ShareTerms:
    limits = state.given.limits_of(tenant)
    return ShareTerms(weight=state.given.weight_of(tenant), guarantee=limits.guarantee or 0.0, borrow=limits.borrow)
