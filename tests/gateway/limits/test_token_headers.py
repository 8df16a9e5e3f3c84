"""How limits stand, in the words of OpenAI's API."""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_gateway.limits.account import EpochRange, LimitAccount
from pilotlight_gateway.limits.gcra import PS, instant
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.token_headers import duration, openai_headers

FUNCTION = "acme:llm.chat"
BOTH = Limits(requests_per_s=2.0, burst=10.0, tokens_per_s=100.0, tokens_burst=6_000.0)


def headers(standing: str, tenant: Limits = BOTH, function: Limits = NO_LIMITS) -> dict[str, str]:
    policy = policy_of(EffectiveLimits(tenant=tenant, function=function), FUNCTION)
    return {name.decode(): value.decode() for name, value in openai_headers(policy, standing)}


def test_they_tell_limit_rest_and_when_all_is_there_again() -> None:
    """Of requests and of tokens."""
    assert headers('"requests";r=7;t=1,"tokens";r=4500;t=1') == {
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "7",
        "x-ratelimit-reset-requests": "1.5s",
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": "4500",
        "x-ratelimit-reset-tokens": "15s",
    }


def test_what_is_full_is_reset_and_what_is_owed_comes_first() -> None:
    """A debt is not among what is left."""
    assert headers('"tokens";r=6000')["x-ratelimit-reset-tokens"] == "0ms"
    assert headers('"tokens";r=0;t=1')["x-ratelimit-reset-tokens"] == "1m0.99s"
    assert headers('"tokens";r=0;t=30')["x-ratelimit-reset-tokens"] == "1m29.99s"


def test_of_two_limits_they_tell_the_one_with_less_left() -> None:
    """That is the one to mind."""
    function = Limits(tokens_per_s=10.0, tokens_burst=50.0)
    found = headers('"tokens";r=5000;t=1,"function-tokens";r=20;t=1', function=function)
    assert (found["x-ratelimit-limit-tokens"], found["x-ratelimit-remaining-tokens"]) == ("50", "20")


def test_what_is_not_limited_has_none() -> None:
    """Nor what nobody knows."""
    assert headers("", BOTH) == {}
    assert headers('"concurrency";r=3', Limits(concurrency=4)) == {}
    assert headers('"requests";r=3', Limits(requests_per_s=1.0, burst=4.0)).keys() == {
        "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
    }  # fmt: skip


def test_they_follow_an_account() -> None:
    """What it writes is what is read."""
    policy = policy_of(EffectiveLimits(tenant=BOTH, function=NO_LIMITS), FUNCTION)
    account, at = LimitAccount(0, EpochRange(1, 1)), instant(1_000.0)
    account.follow(policy.scopes[0], at)
    assert account.tokens is not None
    account.tokens.take(account.tokens.rate.length(1_000), at)

    told = dict(openai_headers(policy, account.standing(policy.scopes[0], at)))
    assert (told[b"x-ratelimit-remaining-tokens"], told[b"x-ratelimit-reset-tokens"]) == (b"5000", b"10s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.0001, "1ms"), (0.12, "120ms"), (1, "1s"), (8.64, "8.64s"), (360, "6m0s"), (3_601.5, "1h0m1.5s")],
)
def test_durations_are_written_as_its_clients_read_them(seconds: float, text: str) -> None:
    """Rounded up to milliseconds."""
    assert duration(round(seconds * PS)) == text
