"""What a run takes of its tenant's limits, and gives back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput, TooMuch
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.money.budgets import BudgetPeriod
from pilotlight_core.model.price_book import load_prices
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.jobs.job_permit import LONGEST_WAIT_S, SHORTEST_WAIT_S, JobPermit, JobPermits
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.builders.calls import prepared_call
from tests.builders.jobs import job
from tests.builders.specs import function_spec, method, version_record
from tests.gateway.budgets.stored_tranches import NOON, Settings, StoredTranches, budget

FUNCTION = job().function


def limiter(limits: Limits, of_one: Limits = NO_LIMITS) -> MemoryLimiter:
    """Limits of the job's tenant, and of one of its calls."""
    policy = policy_of(EffectiveLimits(tenant=limits, function=of_one), FUNCTION)
    return MemoryLimiter(lambda *_: policy)


def permit(limits: MemoryLimiter) -> JobPermit:
    return JobPermits(limits=limits, costs=Estimates()).of(job(), version_record())


async def test_one_run_at_a_time_where_one_is_allowed() -> None:
    """The second may begin once the first is settled; whoever has a permit need not ask again."""
    limits = limiter(Limits(concurrency=1))
    first, second = permit(limits), permit(limits)
    assert [await first.take(), await first.take()] == [0.0, 0.0]
    assert SHORTEST_WAIT_S <= await second.take() <= LONGEST_WAIT_S

    first.settle(CallUsage())
    assert await second.take() == 0.0


def generation(**document: object) -> PreparedCall:
    """The call of a job to a function that generates."""
    schema: dict[str, Any] = {"properties": {"prompt": {}, "max_tokens": {}}}
    version = version_record(function_spec("f", method(attribute="f", input_schema=schema)))
    return prepared_call(version=version, method=version.spec.methods[0], input=values.encode(document))


async def test_a_run_takes_the_tokens_that_it_asks_for() -> None:
    """And no more than one may have: what says nothing of its answer is bounded, what asks for more never runs."""
    limits = limiter(Limits(tokens_per_s=0.001, tokens_burst=100.0), Limits(output_tokens=60))
    first, second = permit(limits), permit(limits)
    first.read(call := generation(prompt="x" * 39))
    assert values.decode(call.input)["max_tokens"] == 60
    assert await first.take() == 0.0
    second.read(generation(prompt="x", max_tokens=31))
    assert await second.take() == LONGEST_WAIT_S
    second.read(generation(prompt="x", max_tokens=28))
    assert await second.take() == 0.0
    with pytest.raises(BadInput, match="61 tokens are asked for, and the limit output_tokens of acme allows 60"):
        second.read(generation(prompt="x", max_tokens=61))


async def test_a_permit_is_held_while_its_run_may_run_on() -> None:
    """Though the call has ended: an agent may not have heard of it."""
    limits, usage = limiter(Limits(concurrency=1)), CallUsage()
    first, second = permit(limits), permit(limits)
    assert await first.take() == 0.0
    usage.keep_open()
    first.settle(usage)
    assert await second.take() > 0.0

    usage.close(1.0)
    assert await second.take() == 0.0


async def test_without_limits_that_hold_nobody_is_asked() -> None:
    """A rate of requests was counted when the job was submitted."""
    limits = limiter(Limits(requests_per_s=1.0))

    def never(_: LimitPolicy) -> Admission:
        raise AssertionError("it was asked")

    limits.refusal = never
    assert await permit(limits).take() == 0.0


@pytest.mark.parametrize(
    ("retry_after", "wait"), [(None, LONGEST_WAIT_S), (0.0, SHORTEST_WAIT_S), (7.0, 7.0), (1e6, LONGEST_WAIT_S)]
)
async def test_a_refusal_says_when_to_ask_again(retry_after: float | None, wait: float) -> None:
    """Within bounds: a limit may be raised meanwhile."""
    limits = limiter(Limits(concurrency=1))
    limits.refusal = refusing(retry_after)

    assert await permit(limits).take() == wait


WORST = CallPrices(load_prices()).worst_of(version_record(), job().timeout)


def budgeted(amount: int, limits: Limits = NO_LIMITS) -> MemoryLimiter:
    """Limits of the job's tenant, and a budget since ever."""
    settings = Settings(budget(amount, period=BudgetPeriod.LIFETIME))
    budgets = BudgetHome(settings, lambda: NOON)
    StoredTranches().serve(budgets)
    policy = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), FUNCTION, settings.records["acme"].budgets)
    return MemoryLimiter(lambda *_: policy, budgets=budgets)


def paid_permit(limits: MemoryLimiter, costs: Estimates) -> JobPermit:
    return JobPermits(limits=limits, costs=costs, prices=CallPrices(load_prices())).of(job(), version_record())


async def test_money_is_looked_for_before_and_taken_at_the_start() -> None:
    """Looking takes nothing, so as many runs may be queued as want to be; of two only one can pay."""
    limits = budgeted(WORST * 3 // 2)
    first, second = paid_permit(limits, Estimates()), paid_permit(limits, Estimates())
    assert [await first.lack_s(), await second.lack_s()] == [0.0, 0.0]
    assert await first.take() == 0.0
    assert [await second.lack_s(), await second.take()] == [LONGEST_WAIT_S, LONGEST_WAIT_S]

    first.settle(CallUsage())
    assert [await second.lack_s(), await second.take()] == [0.0, 0.0]


async def test_what_waits_for_a_budget_that_never_begins_anew_does_not_poll() -> None:
    """No instant is known at which there is money again."""
    assert await paid_permit(budgeted(WORST - 1), Estimates()).take() == LONGEST_WAIT_S


async def test_a_run_without_money_takes_no_tokens_and_no_place() -> None:
    """However often it tries."""
    costs = Estimates()
    costs.learn_tokens("ver_1", FUNCTION, 40.0)
    limits = budgeted(0, Limits(concurrency=1, tokens_per_s=0.001, tokens_burst=100.0))
    run = paid_permit(limits, costs)
    for _ in range(5):
        assert await run.take() == LONGEST_WAIT_S
    policy = limits.policy("acme", FUNCTION)
    for part, amount in ((LimitAskKind.START, 0.0), (LimitAskKind.TOKENS, 99.0)):
        assert (await limits.admit("acme", FUNCTION, policy, amount, part)).error is None


def refusing(retry_after: float | None) -> Callable[[LimitPolicy], Admission]:
    """A limiter's refusal of everything."""

    def refusal(policy: LimitPolicy) -> Admission:
        return Admission("acme", FUNCTION, policy, error=TooMuch("no", retry_after=retry_after))

    return refusal
