"""What a home's answer means for a call: its error, its headers, and a single report of its end."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BudgetExhausted, TooMuch
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import (
    BudgetShortage,
    LimitAnswer,
    LimitAsk,
    LimitAskKind,
    LimitEnd,
    LimitVerdict,
)
from pilotlight_gateway.budgets.call_money import CallMoney
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import FIRST, Estimates
from pilotlight_gateway.limits.limit_admission import Admission, admission_of, end_admission, refuse_money, unreachable
from pilotlight_gateway.limits.limit_policy import LimitPolicy, policy_of

FUNCTION = "acme:shop.hello"
ASKED = LimitAsk(1, "acme", FUNCTION)
GRANTED = LimitAnswer(1, LimitVerdict.GRANTED, standing='"requests";r=4', charged=30.0)


def policy(**limits: Any) -> LimitPolicy:
    """A tenant's policy."""
    return policy_of(EffectiveLimits(tenant=Limits(**limits), function=NO_LIMITS), FUNCTION)


REQUESTS, COST = policy(requests_per_s=1.0, burst=5.0), policy(cost_per_s=100.0, cost_burst=50.0)
TOKENS = policy(tokens_per_s=10.0, tokens_burst=100.0)


class Ends:
    """The ends that were reported."""

    def __init__(self) -> None:
        self.told: list[float | None] = []

    def __call__(self, admission: Admission, cost: float | None) -> None:
        self.told.append(cost)


def test_a_granted_call_may_begin_and_its_end_is_reported_once() -> None:
    """Calling `end` again does nothing."""
    ends = Ends()
    admission = admission_of(ASKED, REQUESTS, GRANTED, ends)
    assert admission.error is None

    admission.end(12.0)
    admission.end(None)

    assert ends.told == [12.0]


def test_a_refused_call_has_its_error_and_no_end() -> None:
    """The error names the limit and the wait; nothing was counted, so nothing is given back."""
    ends = Ends()
    answer = LimitAnswer(1, LimitVerdict.REFUSED, wait_s=2.0, violated=("requests",), standing='"requests";r=0;t=2')
    admission = admission_of(ASKED, REQUESTS, answer, ends)

    assert isinstance(admission.error, TooMuch)
    assert (admission.error.retry_after, admission.error.more["violated-policies"]) == (2.0, ["requests"])
    admission.end(1.0)
    assert ends.told == []


def test_money_that_is_refused_has_its_error_and_no_end() -> None:
    """It names the budget."""
    short = BudgetShortage(budget="month", amount=50, spent=0, reserved=0, left=50, asked=100, period="month")
    answer = LimitAnswer(1, LimitVerdict.REFUSED, violated=("budget",), shortage=short)
    money = CallMoney("acme", FUNCTION, "k1", 100, 10, 60.0)
    granted = LimitAnswer(7, LimitVerdict.GRANTED, holds=True)

    assert [refuse_money(money, REQUESTS, each) for each in (granted, answer)] == [False, True]
    assert isinstance(money.error, BudgetExhausted)
    money.end(0)


@pytest.mark.parametrize(
    ("part", "counted", "amount", "told"),
    [
        (LimitAskKind.CALL, COST, 50.0, (20.0, 0.0)),
        (LimitAskKind.CALL, COST, None, (0.0, 0.0)),
        (LimitAskKind.CALL, TOKENS, 50.0, (0.0, 0.0)),
        (LimitAskKind.TOKENS, TOKENS, 50.0, (0.0, 20.0)),
        (LimitAskKind.TOKENS, TOKENS, None, (0.0, 0.0)),
        (LimitAskKind.TOKENS, COST, 50.0, (0.0, 0.0)),
    ],
)
def test_its_home_is_told_by_how_much_the_estimate_was_wrong(
    part: LimitAskKind, counted: LimitPolicy, amount: float | None, told: tuple[float, float]
) -> None:
    """Of cost or of tokens, whichever was asked for, if it is limited."""
    admission = admission_of(LimitAsk(1, "acme", FUNCTION, 30.0, part), counted, GRANTED, Ends())
    assert admission.end_with(amount) == LimitEnd(1, "acme", FUNCTION, *told)


def test_headers_have_the_policy_and_what_is_left_if_known() -> None:
    """Without an answer of the home there is no RateLimit header."""
    assert admission_of(ASKED, REQUESTS, GRANTED, Ends()).headers() == (
        (b"ratelimit-policy", b'"requests";q=5;w=5'),
        (b"ratelimit", b'"requests";r=4'),
    )
    unasked = Admission("acme", FUNCTION, REQUESTS, error=unreachable(1.5))
    assert unasked.headers() == ((b"ratelimit-policy", b'"requests";q=5;w=5'),)
    assert unasked.error is not None
    assert (unasked.error.wire_code, unasked.error.retry_after) == ("starting", 1.5)


@pytest.mark.parametrize(
    ("counts", "told", "learnt"),
    [
        ((20.0, 1, 0), 20.0, 20.0),
        ((20.0, 1, 1), 50.0, None),  # for the start of which nobody can say what it took, the estimate stands
        ((0.0, 0, 2), 60.0, None),
        ((0.0, 0, 0), 0.0, None),  # it never started
    ],
)
def test_the_end_of_a_call_counts_its_usage(counts: tuple[float, int, int], told: float, learnt: float | None) -> None:
    """The estimate of its version follows if all of the usage is known."""
    usage, ends, costs = CallUsage(), Ends(), Estimates()
    usage.count(*counts)

    end_admission(usage, admission_of(ASKED, COST, GRANTED, ends), costs, "ver_1")

    assert ends.told == [told]
    assert costs.of("ver_1", FUNCTION) == (FIRST if learnt is None else learnt)


def test_the_second_ask_ends_with_what_the_function_counted() -> None:
    """And its version's next call asks for as much; of a start that was lost the estimate stands."""
    ends, costs, usage = Ends(), Estimates(), CallUsage()
    assert costs.tokens_of("ver_1", FUNCTION) == 0.0
    for counts, told in (((5.0, 1, 0, 40), 40), ((5.0, 1, 1, 40), 40 + GRANTED.charged)):
        first = admission_of(ASKED, TOKENS, GRANTED, Ends())
        first.tokens = admission_of(LimitAsk(2, "acme", FUNCTION, 30.0, LimitAskKind.TOKENS), TOKENS, GRANTED, ends)
        usage.count(*counts)
        end_admission(usage, first, costs, "ver_1")
        assert ends.told[-1] == told
    assert costs.tokens_of("ver_1", FUNCTION) == 40.0


def test_the_headers_are_those_of_the_later_word() -> None:
    """What is left after the second ask."""
    later = LimitAnswer(2, LimitVerdict.GRANTED, standing='"tokens";r=7')
    first = admission_of(ASKED, TOKENS, GRANTED, Ends())
    first.tokens = admission_of(LimitAsk(2, "acme", FUNCTION, 30.0, LimitAskKind.TOKENS), TOKENS, later, Ends())
    headers = dict(first.headers())
    assert headers[b"ratelimit"] == b'"tokens";r=7'
    assert headers[b"x-ratelimit-remaining-tokens"] == b"7"


def test_without_a_limit_on_cost_nothing_is_learnt() -> None:
    """No estimate is needed there."""
    usage, costs = CallUsage(), Estimates()
    usage.count(20.0, 1, 0)

    end_admission(usage, admission_of(ASKED, REQUESTS, GRANTED, Ends()), costs, "ver_1")

    assert costs.of("ver_1", FUNCTION) == FIRST
