"""A refusal names the limit, its tenant, what it allows, and what is left."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitVerdict
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.refusals import refused

FUNCTION = "zoo:llm.chat"
TENANT = Limits(requests_per_s=5.0, cost_per_s=100.0, cost_burst=900.0)
ONE = Limits(requests_per_s=2.0, burst=3.0, concurrency=4)
POLICY = policy_of(EffectiveLimits(tenant=TENANT, function=ONE), FUNCTION)


def answer(*violated: str, standing: str = "") -> LimitAnswer:
    """A refusal."""
    return LimitAnswer(7, LimitVerdict.REFUSED, 3, 1.5, violated, standing)


def test_each_reached_limit_is_named_in_words_and_in_numbers() -> None:
    """They are those of the tenant and of its calls to the function, as they were set."""
    standing = '"requests";r=2,"cost";r=51;t=1,"function-requests";r=0;t=1,"function-concurrency";r=0'

    error = refused(answer("cost", "function-requests", "function-concurrency", standing=standing), POLICY, "acme")

    assert msgspec.to_builtins(list(error.more["limits"])) == [
        {"limit": "cost_per_s", "tenant": "acme", "allowed": 100.0, "burst": 900.0, "left": 51.0},
        {"limit": "requests_per_s", "tenant": "acme", "function": FUNCTION, "allowed": 2.0, "burst": 3.0, "left": 0.0},
        {"limit": "concurrency", "tenant": "acme", "function": FUNCTION, "allowed": 4, "current": 4},
    ]
    assert error.detail == (
        "acme may spend 100 GPU-milliseconds a second, 900 at once, on calls: 51 are left now. "
        "acme may make 2 calls a second to zoo:llm.chat, 3 at once: none is left now. "
        "acme may have 4 calls to zoo:llm.chat run at a time, and so many do."
    )
    assert (error.retry_after, error.wire_code) == (1.5, "rate_limited")


def test_a_limit_that_only_its_home_knows_is_named() -> None:
    """It was set a moment ago, so the gateway does not know it yet."""
    error = refused(answer("requests"), policy_of(EffectiveLimits(tenant=NO_LIMITS, function=ONE), FUNCTION), "acme")

    assert (error.detail, error.more["limits"]) == ("The limit of requests is reached.", ())
