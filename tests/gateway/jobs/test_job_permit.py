"""What a run takes of its tenant's limits, and gives back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_gateway.jobs.job_permit import LONGEST_WAIT_S, SHORTEST_WAIT_S, JobPermit, JobPermits
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.builders.jobs import job

FUNCTION = job().function


def limiter(limits: Limits) -> MemoryLimiter:
    """Limits of the job's tenant."""
    policy = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), FUNCTION)
    return MemoryLimiter(lambda *_: policy)


def permit(limits: MemoryLimiter) -> JobPermit:
    return JobPermits(limits=limits, costs=Estimates()).of(job())


async def test_one_run_at_a_time_where_one_is_allowed() -> None:
    """The second may begin once the first is settled; whoever has a permit need not ask again."""
    limits = limiter(Limits(concurrency=1))
    first, second = permit(limits), permit(limits)
    assert [await first.take(), await first.take()] == [0.0, 0.0]
    assert SHORTEST_WAIT_S <= await second.take() <= LONGEST_WAIT_S

    first.settle(CallUsage())
    assert await second.take() == 0.0


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
    ("retry_after", "wait"), [(None, SHORTEST_WAIT_S), (0.0, SHORTEST_WAIT_S), (7.0, 7.0), (1e6, LONGEST_WAIT_S)]
)
async def test_a_refusal_says_when_to_ask_again(retry_after: float | None, wait: float) -> None:
    """Within bounds: a limit may be raised meanwhile."""
    limits = limiter(Limits(concurrency=1))
    limits.refusal = refusing(retry_after)

    assert await permit(limits).take() == wait


def refusing(retry_after: float | None) -> Callable[[LimitPolicy], Admission]:
    """A limiter's refusal of everything."""

    def refusal(policy: LimitPolicy) -> Admission:
        return Admission("acme", FUNCTION, policy, error=TooMuch("no", retry_after=retry_after))

    return refusal
