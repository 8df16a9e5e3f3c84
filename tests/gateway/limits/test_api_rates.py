"""How often a tenant may manage what it has."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_gateway.limits.api_rates import ApiRates

LIMITS = Limits(api_requests_per_s=2.0, deploys_per_hour=20)


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_requests_beyond_the_rate_are_refused_until_some_have_returned() -> None:
    """Ten seconds' worth at once, then the rate; each tenant for itself."""
    time = Time()
    rates = ApiRates(lambda _: LIMITS, time)
    for _ in range(20):
        rates.take_request("acme")

    with pytest.raises(TooMuch, match="acme may make 2 requests to the API a second") as refused:
        rates.take_request("acme")
    rates.take_request("other")
    time.now += 0.5
    rates.take_request("acme")

    assert refused.value.retry_after == pytest.approx(0.5)
    (reached,) = refused.value.more["limits"]
    assert (reached.limit, reached.allowed) == ("api_requests_per_s", 2.0)


def test_who_asks_in_anothers_name_takes_nothing_of_its_own_requests() -> None:
    """Such as a shared function, for each tenant that calls it; one's own function is oneself."""
    time = Time()
    rates = ApiRates(lambda _: LIMITS, time)
    for _ in range(20):
        rates.take_request("acme", "owner")

    with pytest.raises(TooMuch):
        rates.take_request("acme", "owner")
    rates.take_request("acme")
    rates.take_request("owner")
    rates.take_request("guest", "owner")
    for _ in range(19):
        rates.take_request("acme", "acme")
    with pytest.raises(TooMuch):
        rates.take_request("acme")


def test_guesses_have_a_count_of_their_own() -> None:
    """Neither takes what the other needs; looking whether there may be another one counts nothing."""
    time = Time()
    rates = ApiRates(lambda _: LIMITS, time)
    for _ in range(20):
        rates.check_guess("acme")
        rates.take_guess("acme")

    for refusing in (rates.check_guess, rates.take_guess):
        with pytest.raises(TooMuch, match="acme may make 2 calls a second of what there is not") as refused:
            refusing("acme")
    (reached,) = refused.value.more["limits"]
    assert reached.limit == "api_requests_per_s"
    assert refused.value.retry_after == pytest.approx(0.5)
    rates.take_request("acme")
    rates.take_guess("other")
    time.now += 0.5
    rates.take_guess("acme")
    for _ in range(20):
        rates.take_request("acme")
    with pytest.raises(TooMuch, match="requests to the API"):
        rates.take_request("acme")


def test_deploys_have_a_rate_of_their_own() -> None:
    """A tenth of an hour's at once."""
    time = Time()
    rates = ApiRates(lambda _: LIMITS, time)
    for _ in range(2):
        rates.take_deploy("acme")

    with pytest.raises(TooMuch, match="20 deploys an hour") as refused:
        rates.take_deploy("acme")

    assert refused.value.retry_after == pytest.approx(180.0)
    rates.take_request("acme")


def test_a_changed_limit_holds_at_once_and_none_is_no_limit() -> None:
    """As it is now, not as it was when the tenant came first."""
    time, limits = Time(), [LIMITS]
    rates = ApiRates(lambda _: limits[0], time)
    for _ in range(20):
        rates.take_request("acme")
    limits[0] = Limits(api_requests_per_s=3.0)
    for _ in range(30):
        rates.take_request("acme")
    with pytest.raises(TooMuch):
        rates.take_request("acme")

    limits[0] = Limits()
    for _ in range(1_000):
        rates.take_request("acme")
        rates.take_deploy("acme")


def test_few_requests_are_open_at_a_time() -> None:
    """Who has as many as it may is refused with the limit named, until one ends; others are not concerned."""
    rates = ApiRates(lambda tenant: Limits(open_requests=2) if tenant == "acme" else NO_LIMITS, lambda: 0.0)
    with ExitStack() as stack:
        for tenant in ("acme", "zoo", "zoo", "zoo"):
            stack.enter_context(rates.holding(tenant))
        with rates.holding("acme"), pytest.raises(TooMuch, match="the limit open_requests") as refused:
            stack.enter_context(rates.holding("acme"))
        stack.enter_context(rates.holding("acme"))

    (reached,) = refused.value.more["limits"]
    assert (reached.limit, reached.allowed, reached.current) == ("open_requests", 2, 2)
