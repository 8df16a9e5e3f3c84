"""The money of a stream is reserved step by step, and its end is told when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.http.calls.stream_money import StreamSteps
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.gateway.budgets.stored_tranches import StoredTranches, budget
from tests.gateway.world import HELLO, World, function
from tests.waiting import until

STEP_S = 0.02


class Stream:
    """Notes why it ended."""

    def __init__(self) -> None:
        self.ended: list[PilotlightError] = []

    def revoke(self, error: PilotlightError) -> None:
        self.ended.append(error)


class Ground:
    """A call of a stream under a budget for so many steps."""

    def __init__(self, world: World, steps: float, seconds: float, **options: Any) -> None:
        (version,) = world.deploy(function(timeout=seconds, **options))
        services, self.stream, self.book = world.services, Stream(), load_prices()
        prices = CallPrices(self.book)
        step = prices.worst_of(version, STEP_S)
        amount = int(step * steps)
        world.registry.budget_records["acme"] = BudgetsRecord(tenant="acme", budgets=(budget(amount),))
        self.home = BudgetHome(world.registry.budgets, world.wall)
        StoredTranches().serve(self.home)
        limiter = MemoryLimiter(LimitPolicies(world.registry.limits, world.registry.budgets), budgets=self.home)
        self.limits = CallLimits(limiter, services.costs, services.recorder, prices)
        name = "acme:shop.hello"
        self.call = PreparedCall(
            call_id="call_a_1_b", client_id=None, tenant="acme", version=version, method=HELLO, input=b"",
            priority=Priority.STANDARD, deadline_at=1e6, arrived_at=0.0, stream=True,
        )  # fmt: skip
        self.admission = Admission("acme", name, limiter.policy("acme", name))
        self.steps = StreamSteps(self.limits, self.admission, self.call, self.stream, step_s=STEP_S, lead_s=STEP_S / 2)

    @property
    def reserved(self) -> int:
        return self.home.purses("acme")["month"].reserved


async def test_a_stream_reserves_as_long_as_it_lasts(world: World) -> None:
    """No more than it can last."""
    ground = Ground(world, steps=100, seconds=3.5 * STEP_S)
    await ground.limits.reserve(ground.admission, ground.call, STEP_S)
    first = ground.reserved
    ground.steps.start()
    await until(lambda: len(ground.admission.money) == 4)
    ground.steps.stop()
    assert 3.4 * first < ground.reserved < 3.6 * first
    assert ground.stream.ended == []


async def test_what_a_stream_may_count_is_reserved_once(world: World) -> None:
    """With its first step."""
    ground = Ground(world, steps=1e6, seconds=3.0 * STEP_S, max_units={"images": 10_000})
    ground.book.put("images", [DatedRate(nano_usd_per_hour=10**9)])
    ground.book.refresh(0.0)
    for _ in range(3):
        await ground.limits.reserve(ground.admission, ground.call, STEP_S)
        step = ground.reserved - 10_000 * 1_000
        assert 0 < step < 1_000_000


@pytest.mark.parametrize("steps", [1.5, 3.5])
async def test_a_stream_without_money_for_its_next_step_ends(world: World, steps: float) -> None:
    """With the budget, and where its receipt will be."""
    ground = Ground(world, steps=steps, seconds=60.0)
    await ground.limits.reserve(ground.admission, ground.call, STEP_S)
    ground.steps.start()
    await until(lambda: ground.stream.ended)
    (why,) = ground.stream.ended
    assert (why.wire_code, why.more["receipt"]) == ("budget_exhausted", "/v1/calls/call_a_1_b/receipt")
    assert len(ground.admission.money) == int(steps)
    ground.steps.stop()
