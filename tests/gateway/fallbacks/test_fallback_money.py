"""Whose money is enough for a fallback."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.limits import EffectiveLimits, Limits
from pilotlight_core.model.money.budgets import Budget
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.fallbacks.fallback_finder import Fallbacks
from pilotlight_gateway.fallbacks.fallback_money import FallbackMoney
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method
from tests.gateway.world import World

METHOD = method()
CHEAP = function_spec("cheap", METHOD, gpu=(GpuAsk("L4"),))
DEAR = function_spec("dear", METHOD, gpu=(GpuAsk("H100"),))
ALL = Budget(id="all", amount=10**9)
OF_CHEAP = Budget(id="cheap", amount=10**9, function="acme:shop.cheap")


def falls_back(world: World, asked: FunctionSpec, other: FunctionSpec, *budgets: Budget) -> bool:
    """Whether a call of a tenant with these budgets runs at the other function."""

    def policy(tenant: str, function: str) -> LimitPolicy:
        return policy_of(EffectiveLimits(tenant=Limits(), function=Limits()), function, budgets)

    money = FallbackMoney(policy, CallPrices(load_prices()))
    versions = world.deploy(asked, other)
    at = world.clock.at
    call = prepared_call(version=versions[0], method=METHOD, arrived_at=at, deadline_at=at + 60.0)
    fallbacks = Fallbacks(world.registry, world.clock, money.covers)
    return fallbacks.instead_of(call, TooMuch("no", code="queue_full", retry_after=1.0)) is not None


@pytest.mark.parametrize(
    ("asked", "other", "budgets", "covered"),
    [
        (CHEAP, DEAR, (), True),
        (CHEAP, DEAR, (ALL,), False),
        (DEAR, CHEAP, (ALL,), True),
        (DEAR, CHEAP, (ALL, OF_CHEAP), False),
        (DEAR, CHEAP, (OF_CHEAP,), False),
    ],
)
def test_a_budget_is_not_passed_by_a_fallback(
    world: World, asked: FunctionSpec, other: FunctionSpec, budgets: tuple[Budget, ...], *, covered: bool
) -> None:
    """Neither by one that costs more than was reserved, nor by one whose own budget knows nothing of the call."""

    asked = msgspec.structs.replace(asked, fallback=Fallback(other.name))
    assert falls_back(world, asked, other, *budgets) is covered
