"""A job that no budget has money for is not queued at its function's home: a container would be started for it."""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.records.jobs import JobState
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.jobs.job_permit import LONGEST_WAIT_S
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.gateway.budgets.stored_tranches import NOON, Settings, StoredTranches, budget
from tests.gateway.jobs.test_job_runner import FUNCTION, Bench
from tests.gateway.world import World


@pytest.fixture
def settings() -> Settings:
    return Settings(budget(0))


@pytest.fixture
def bench(world: World, settings: Settings) -> Bench:
    budgets = BudgetHome(settings, lambda: NOON)
    StoredTranches().serve(budgets)
    policy = policy_of(
        EffectiveLimits(tenant=NO_LIMITS, function=NO_LIMITS), FUNCTION, settings.records["acme"].budgets
    )
    limits = MemoryLimiter(lambda *_: policy, budgets=budgets)
    return Bench(world=world, limits=limits, prices=CallPrices(load_prices()))


async def test_a_job_without_money_asks_for_no_container(bench: Bench, settings: Settings) -> None:
    """Each look at it is one question; with a higher budget it runs."""
    await bench.put()
    for _ in range(3):
        assert await bench.run() == bench.wall + LONGEST_WAIT_S
        assert (bench.held, bench.lacks_money) == (LONGEST_WAIT_S, True)
    assert not bench.calls.seen

    settings.set(budget(10**12))
    assert await bench.run() is None
    assert (await bench.now()).state is JobState.SUCCEEDED
    assert not bench.lacks_money
