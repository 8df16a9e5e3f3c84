"""How limits are compiled for counting, and described in headers."""

from __future__ import annotations

from pilotlight_core.model.limits import NO_LIMITS, UNLIMITED, EffectiveLimits, Limits
from pilotlight_gateway.limits.limit_policy import LimitPolicies, policy_of

FUNCTION = "acme:shop.hello"


def test_without_limits_nothing_is_counted() -> None:
    """Payload and queue are bounds of one call and one queue, for which no home is asked."""
    only_bounds = EffectiveLimits(tenant=NO_LIMITS, function=Limits(payload_bytes=10, queue_calls=1, queue_seconds=1.0))

    assert policy_of(UNLIMITED, FUNCTION).scopes == ()
    assert policy_of(only_bounds, FUNCTION).scopes == ()
    assert policy_of(only_bounds, FUNCTION).payload == 10


def test_tokens_of_one_call_are_bounds_of_it() -> None:
    """The nearest layer decides, as of payloads; no home is asked for them."""
    policy = policy_of(
        EffectiveLimits(tenant=Limits(prompt_tokens=5), function=Limits(prompt_tokens=10, output_tokens=20)), FUNCTION
    )
    assert (policy.scopes, policy.prompt_tokens, policy.output_tokens) == ((), 10, 20)
    assert (policy.bounds_tokens, policy.counts_tokens, policy.most_tokens) == (True, True, 0.0)
    assert not policy_of(UNLIMITED, FUNCTION).counts_tokens


def test_the_header_names_quota_window_and_unit() -> None:
    """As in the draft, windows are whole seconds, and a unit is named unless it is requests."""
    policy = policy_of(
        EffectiveLimits(
            tenant=Limits(requests_per_s=10.0, burst=20.0, cost_per_s=1000.0, cost_burst=60000.0, concurrency=10),
            function=Limits(requests_per_s=0.5),
        ),
        FUNCTION,
    )

    assert policy.header == (
        '"requests";q=20;w=2,"cost";q=60000;w=60;qu="gpu-milliseconds",'
        '"concurrency";q=10;qu="concurrent-requests","function-requests";q=1;w=2'
    )
    assert (policy.holds, policy.most_cost) == (True, 60000.0)


def test_a_client_that_spreads_its_quota_over_the_window_is_never_refused() -> None:
    """Quota over window is at most the rate, however burst and rate divide."""
    for per_second, burst in ((100.0, 1.0), (3.0, 7.0), (0.3, 1.0), (10.0, 25.5)):
        policy = policy_of(
            EffectiveLimits(tenant=Limits(requests_per_s=per_second, burst=burst), function=NO_LIMITS), FUNCTION
        )
        quota, window = (int(part.partition("=")[2]) for part in policy.header.split(";")[1:])
        assert 1 <= quota <= per_second * window


def test_policies_follow_their_limits() -> None:
    """Equal limits are compiled once, changed ones anew."""
    book = {"acme": EffectiveLimits(tenant=Limits(concurrency=1), function=NO_LIMITS)}
    policies = LimitPolicies(lambda tenant, _: book.get(tenant, UNLIMITED))

    first = policies("acme", FUNCTION)
    assert policies("acme", FUNCTION) is first
    assert policies("other", FUNCTION).scopes == ()

    book["acme"] = EffectiveLimits(tenant=Limits(concurrency=2), function=NO_LIMITS)
    changed = policies("acme", FUNCTION)
    assert changed.scopes[0].concurrency == 2
