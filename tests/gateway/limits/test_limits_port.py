"""The limiter in memory, which other tests use, counts as the real home does."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.limits.limit_admission import Admission, unreachable
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of
from pilotlight_gateway.limits.limits_port import FREE, MemoryLimiter

FUNCTION = "acme:shop.hello"


class Gateway:
    """A limiter in memory under one policy, and its clock."""

    def __init__(self, **limits: Any) -> None:
        self.at = 0.0
        self.policy: LimitPolicy = policy_of(EffectiveLimits(tenant=Limits(**limits), function=NO_LIMITS), FUNCTION)
        self.limiter = MemoryLimiter(lambda *_: self.policy, lambda: self.at)

    async def admit(self, cost: float = 0.0, part: LimitAskKind = LimitAskKind.CALL) -> Admission:
        policy = self.limiter.policy("acme", FUNCTION)
        return await self.limiter.admit("acme", FUNCTION, policy, cost, part)


async def test_a_burst_is_granted_and_what_comes_back_with_time() -> None:
    """One call too many gets the time to wait."""
    gateway = Gateway(requests_per_s=1.0, burst=2.0)
    granted = [await gateway.admit() for _ in range(3)]

    assert [admission.error is None for admission in granted] == [True, True, False]
    assert isinstance(granted[2].error, TooMuch)
    assert granted[2].error.retry_after == 1.0
    gateway.at = 1.0
    assert (await gateway.admit()).error is None


async def test_a_permit_comes_back_with_the_end_of_its_call() -> None:
    """It does not come back before."""
    gateway = Gateway(concurrency=1)
    first = await gateway.admit()
    assert (await gateway.admit()).error is not None

    first.end(None)

    assert (await gateway.admit()).error is None
    gateway.limiter.home.check_integrity()


async def test_what_a_call_cost_beyond_its_estimate_is_owed() -> None:
    """Without a known cost the estimate stands."""
    gateway = Gateway(cost_per_s=100.0, cost_burst=50.0)
    (await gateway.admit(10.0)).end(None)
    assert (await gateway.admit(40.0)).error is None
    gateway.at = 10.0

    (await gateway.admit(10.0)).end(150.0)
    refused = await gateway.admit(50.0)

    assert refused.error is not None
    assert refused.error.retry_after == 1.5


async def test_a_jobs_submission_and_start_are_asked_for_apart() -> None:
    """The submission takes a request, the start the rest."""
    gateway = Gateway(requests_per_s=1.0, burst=1.0, concurrency=1)

    assert (await gateway.admit(part=LimitAskKind.SUBMISSION)).error is None
    assert (await gateway.admit(part=LimitAskKind.START)).error is None
    assert (await gateway.admit(part=LimitAskKind.SUBMISSION)).error is not None
    assert (await gateway.admit(part=LimitAskKind.START)).error is not None


async def test_tests_may_refuse_anyway() -> None:
    """Without a script there is one home, and nothing is limited."""
    limiter = MemoryLimiter()
    assert limiter.policy("acme", FUNCTION) is FREE
    assert limiter.epoch("acme") == 1

    limiter.refusal = lambda policy: Admission("acme", FUNCTION, policy, error=unreachable(1.0))

    refused = await limiter.admit("acme", FUNCTION, FREE, 0.0)
    assert refused.error is not None
    assert refused.error.wire_code == "starting"
