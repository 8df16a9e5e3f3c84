"""What one tenant has left in one scope: a call takes all or nothing, and no change of a limit gives more."""

from __future__ import annotations

import pytest

from pilotlight_core.model.limits import LONG_AGO, NO_LIMITS, EffectiveLimits, Limits, RateLimitStart
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.limits.account import UNKNOWN_S, EpochRange, LimitAccount, Permits
from pilotlight_gateway.limits.gcra import PS
from pilotlight_gateway.limits.limit_policy import LimitScope, policy_of

CALL, SUBMISSION, START, TOKENS, _ = LimitAskKind
EPOCHS = EpochRange(3, 5)
LIMITS = Limits(requests_per_s=1.0, burst=2.0, cost_per_s=100.0, cost_burst=50.0, concurrency=1)


def scope_of(limits: Limits, *, requests_since: int = 4, cost_since: int = 4) -> LimitScope:
    """What is counted of all calls of a tenant, whose rates were first limited under these homes."""
    begun = RateLimitStart(requests=requests_since, cost=cost_since, tokens=cost_since)
    (scope,) = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS, tenant_begun=begun), "acme:a.f").scopes
    return scope


def account_of(scope: LimitScope, *, born: int = 0, at: int = 0) -> LimitAccount:
    """A new account that follows the scope."""
    account = LimitAccount(born, EPOCHS)
    account.follow(scope, at)
    return account


def test_all_limits_that_delay_a_call_are_named_with_the_longest_wait() -> None:
    """A call that comes back after that wait is let in."""
    scope = scope_of(LIMITS)
    account = account_of(scope)
    assert account.wait(scope, 50.0, 0, CALL) == (0.0, ())
    for number in (1, 2):
        account.take(scope, ("g1", number), 50.0 if number == 1 else 0.0, 0, CALL)

    assert account.wait(scope, 20.0, 0, CALL) == (1.0, ("requests", "cost", "concurrency"))
    assert account.wait(scope, 20.0, 0, SUBMISSION) == (1.0, ("requests",))
    assert account.wait(scope, 20.0, 0, START)[1] == ("cost", "concurrency")
    for number in (1, 2):
        account.permits.leave(("g1", number), 1.0)
    assert account.wait(scope, 20.0, PS, CALL) == (0.0, ())


def test_tokens_are_asked_for_by_themselves() -> None:
    """A call that was let in has been read: its tokens alone count then, at its end what it really took."""
    limits = Limits(requests_per_s=1.0, burst=1.0, tokens_per_s=10.0, tokens_burst=100.0)
    scope = scope_of(limits)
    account = account_of(scope)
    account.take(scope, ("g1", 1), 0.0, 0, CALL)

    assert account.wait(scope, 60.0, 0, TOKENS) == (0.0, ())
    account.take(scope, ("g1", 2), 60.0, 0, TOKENS)
    assert account.wait(scope, 60.0, 0, TOKENS) == (2.0, ("tokens",))
    assert account.wait(scope, 0.0, 0, CALL)[1] == ("requests",)
    assert account.standing(scope, 0) == '"requests";r=0;t=1,"tokens";r=40;t=1'
    account.correct(0.0, 0, -40.0)
    assert account.wait(scope, 60.0, 0, TOKENS) == (0.0, ())
    account.correct(0.0, 0, 200.0)
    assert account.wait(scope, 0.0, 0, TOKENS)[1] == ("tokens",)  # in debt: not even none


@pytest.mark.parametrize(
    ("part", "standing"),
    [
        (CALL, '"requests";r=1;t=1,"cost";r=0;t=1,"concurrency";r=0'),
        (SUBMISSION, '"requests";r=1;t=1,"cost";r=50,"concurrency";r=1'),
        (START, '"requests";r=2,"cost";r=0;t=1,"concurrency";r=0'),
    ],
)
def test_a_part_of_a_job_takes_what_it_is_asked_for(part: LimitAskKind, standing: str) -> None:
    """Its submission takes a request, its start cost and a permit; `standing` has the form of the RateLimit header."""
    scope = scope_of(LIMITS)
    account = account_of(scope)
    account.take(scope, ("g1", 1), 50.0, 0, part)

    assert account.standing(scope, 0) == standing


def test_what_a_call_cost_beyond_its_estimate_is_owed_and_the_rest_comes_back() -> None:
    """An account without a limit on cost ignores the correction."""
    scope = scope_of(LIMITS)
    account = account_of(scope)
    account.take(scope, ("g1", 1), 10.0, 0, START)

    account.correct(90.0, 0)
    account.permits.leave(("g1", 1), 0.0)
    assert account.wait(scope, 50.0, 0, START) == (1.0, ("cost",))
    account.correct(-100.0, 0)
    assert account.wait(scope, 50.0, 0, START) == (0.0, ())

    unlimited = scope_of(Limits(concurrency=1))
    free = account_of(unlimited)
    free.correct(1e9, 0)
    assert free.buckets() == (None, None, None)


@pytest.mark.parametrize(
    ("since", "wait"),
    [
        (4, 0.0),  # one of the homes that handed over: it would have told
        (2, 2.0),  # one before them, which died: whatever it may have granted counts as spent
        (LONG_AGO, 2.0),
    ],
)
def test_grants_of_an_unknown_former_home_count_as_spent(since: int, wait: float) -> None:
    """The bucket is full a whole burst after the first known home began."""
    scope = scope_of(Limits(requests_per_s=1.0, burst=2.0), requests_since=since)
    account = account_of(scope, born=0, at=0)

    assert account.wait(scope, 0.0, 0, CALL)[0] == pytest.approx(max(0.0, wait - 1.0))
    assert account.idle(0) == (wait == 0.0)
    later = account_of(scope, born=0, at=2 * PS)
    assert later.standing(scope, 2 * PS) == '"requests";r=2'


def test_a_limit_that_is_lifted_and_set_again_forgets_nothing() -> None:
    """Changing a limit back and forth gives no second burst."""
    scope, lifted = scope_of(Limits(requests_per_s=1.0, burst=2.0)), scope_of(Limits(concurrency=9))
    account = account_of(scope)
    for number in (1, 2):
        account.take(scope, ("g1", number), 0.0, 0, CALL)

    account.follow(lifted, 0)
    assert account.wait(lifted, 0.0, 0, CALL) == (0.0, ())
    again = scope_of(Limits(requests_per_s=1.0, burst=2.0))
    account.follow(again, 0)

    assert account.wait(again, 0.0, 0, CALL) == (1.0, ("requests",))


def test_a_limit_that_is_set_later_counts_from_then_on() -> None:
    """In an account with a limit, a new rate is as old as the change, not as the home."""
    first = scope_of(Limits(concurrency=1))
    account = account_of(first, born=0, at=0)
    second = scope_of(Limits(requests_per_s=1.0, burst=2.0), requests_since=LONG_AGO)

    account.follow(second, 100 * PS)

    assert account.wait(second, 0.0, 100 * PS, CALL) == (1.0, ("requests",))


def test_an_account_is_idle_when_a_new_one_would_decide_the_same() -> None:
    """No call runs and everything taken has returned, without the cut-off of a smaller burst."""
    scope = scope_of(LIMITS)
    account = account_of(scope)
    assert account.idle(0)
    account.take(scope, ("g1", 1), 50.0, 0, CALL)

    assert not account.idle(0)
    assert not account.idle(PS)
    account.permits.leave(("g1", 1), 1.0)
    assert account.idle(PS)


def test_restored_buckets_continue() -> None:
    """What another home had left is available, and nothing counts as spent in between."""
    scope = scope_of(Limits(requests_per_s=1.0, burst=2.0), requests_since=LONG_AGO)
    giver = account_of(scope, born=-100 * PS)
    giver.take(scope, ("g1", 1), 0.0, 0, CALL)

    heir = LimitAccount(0, EPOCHS)
    heir.restore(*giver.buckets())
    heir.follow(scope, 0)

    assert heir.standing(scope, 0) == giver.standing(scope, 0) == '"requests";r=1;t=1'


def test_a_permit_comes_back_once() -> None:
    """A second end of a call, or the end of an unknown one, frees nothing."""
    permits = Permits()
    permits.enter(("g1", 1), 0.0)
    permits.enter(("g2", 1), 0.0)

    permits.leave(("g1", 1), 1.0)
    permits.leave(("g1", 1), 1.0)
    permits.drop(("g3", 1))

    assert permits.keys() == {("g2", 1)}


def test_the_wait_is_until_the_oldest_ends() -> None:
    """It follows the mean of earlier calls; an overdue call may end at any moment, one of many sooner than one."""
    permits = Permits()
    permits.enter(("g1", 1), 0.0)
    assert permits.wait(0.0) == UNKNOWN_S
    permits.leave(("g1", 1), 4.0)

    permits.enter(("g1", 2), 10.0)
    permits.enter(("g1", 3), 11.0)
    assert permits.wait(11.0) == 3.0
    assert permits.wait(100.0) == pytest.approx(4.0 / 3)


def test_the_mean_follows_slowly_and_the_dropped_do_not_count() -> None:
    """One long call hardly changes the wait, and a lost one does not."""
    permits = Permits()
    for number, seconds in enumerate((2.0, 2.0, 12.0)):
        permits.enter(("g1", number), 0.0)
        permits.leave(("g1", number), seconds)
    permits.enter(("g1", 9), 0.0)
    permits.drop(("g1", 9))
    permits.enter(("g1", 10), 0.0)

    assert permits.wait(0.0) == pytest.approx(3.0)
