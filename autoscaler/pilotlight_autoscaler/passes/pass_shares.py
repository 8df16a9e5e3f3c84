"""The shares of the tenants that hold something or wait, as a pass sees them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.shares import ShareTerms, TenantShares
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.tenant_holdings import HeldResources


def shares_of(state: PassState, waiting: Iterable[str]) -> TenantShares:
    """The shares by what is held at any time in the pass; `waiting` are tenants with something missing."""
    holdings, terms_of = state.fleet.holdings, state.given.terms_of or partial(_terms, state)
    terms = {tenant: terms_of(tenant) for tenant in {*holdings.tenants(), *waiting}}
    return TenantShares(state.fleet.capacity, holdings.of, terms)


def free_resources(fleet: Fleet) -> HeldResources:
    """What no tenant holds."""
    return fleet.capacity.plus(fleet.holdings.total, -1)


def _terms(state: PassState, tenant: str) -> ShareTerms:
    return ShareTerms.of(state.given.weight_of(tenant), state.given.limits_of(tenant))
