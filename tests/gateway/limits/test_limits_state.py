"""What is handed over with a shard gives the next home no more than the former one had left."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits, RateLimitStart
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.limits.account import EpochRange, LimitAccount
from pilotlight_gateway.limits.gcra import PS, instant
from pilotlight_gateway.limits.limit_policy import LimitScope, policy_of
from pilotlight_gateway.limits.limits_state import (
    ACCOUNTS_AT_MOST,
    MOST,
    NOTHING,
    AccountsByScope,
    LimitState,
    handed_over,
    taken_over,
)

CALL, TOKENS = LimitAskKind.CALL, LimitAskKind.TOKENS
LIMITS = Limits(requests_per_s=2.0, burst=4.0, cost_per_s=100.0, cost_burst=50.0, tokens_per_s=5.0, tokens_burst=90.0)


def scope_of(limits: Limits = LIMITS) -> LimitScope:
    begun = RateLimitStart(requests=3, cost=3, tokens=3)
    (scope,) = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS, tenant_begun=begun), "acme:a.f").scopes
    return scope


SCOPE = scope_of()


def account_of(scope: LimitScope = SCOPE) -> LimitAccount:
    """A full account of a home of the epoch 3."""
    account = LimitAccount(0, EpochRange(3, 3))
    account.follow(scope, 0)
    return account


def sent(state: LimitState) -> LimitState:
    """As it arrives."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=LimitState)


@given(
    takes=st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 60.0)), max_size=8),
    corrections=st.lists(st.floats(-60.0, 60.0), max_size=3),
    pause=st.floats(0.0, 5.0),
    other_clock=st.floats(0.0, 1e6),
)
def test_the_next_home_says_the_same_on_its_own_clock(
    takes: list[tuple[float, float]], corrections: list[float], pause: float, other_clock: float
) -> None:
    """Whatever was taken, owed and given back, each scope has as much left and is full as soon."""
    account, at = account_of(), 0.0
    for number, (after, cost) in enumerate(takes):
        at += after
        account.take(SCOPE, ("g1", number), cost, instant(at), CALL)
        account.take(SCOPE, ("g1", -number), cost, instant(at), TOKENS)
    for correction in corrections:
        account.correct(correction, instant(at), correction)
    now, then = instant(at + pause), instant(other_clock)

    state = sent(handed_over({("acme", ""): account}, 0, 3, now))
    born, epochs, accounts = taken_over(state, 4, then)
    heir = accounts["acme", ""]
    heir.follow(SCOPE, then)

    assert (born, epochs) == (then - now, (3, 4))
    assert heir.standing(SCOPE, then) == account.standing(SCOPE, now)
    for later in (0, PS // 3, 2 * PS):
        for kind in (CALL, TOKENS):
            assert heir.wait(SCOPE, 20.0, then + later, kind) == account.wait(SCOPE, 20.0, now + later, kind)
        assert heir.idle(then + later) == account.idle(now + later) or len(account.permits)


def test_permits_are_not_handed_over() -> None:
    """The gateways that hold them report them."""
    scope = scope_of(Limits(concurrency=1))
    account = account_of(scope)
    account.take(scope, ("g1", 1), 0.0, 0, CALL)

    _, _, accounts = taken_over(sent(handed_over({("acme", ""): account}, 0, 3, PS)), 4, 0)

    assert len(accounts["acme", ""].permits) == 0


def test_of_more_accounts_than_travel_none_does() -> None:
    """As after a crash, the next home counts everything as spent."""
    accounts: AccountsByScope = {(f"t{number}", ""): account_of() for number in range(ACCOUNTS_AT_MOST)}
    assert len(handed_over(accounts, 0, 3, PS).accounts) == ACCOUNTS_AT_MOST

    accounts["one more", ""] = account_of()

    assert handed_over(accounts, 0, 3, PS) == NOTHING


def test_a_debt_is_never_too_long_to_travel() -> None:
    """One tenant's would cost all tenants of the shard what was counted for them."""
    account = account_of()
    account.correct(1e12, 0, 2.0**53)

    assert [levels.tenant for levels in handed_over({("acme", ""): account}, 0, 3, PS).accounts] == ["acme"]


def test_a_length_that_is_too_long_to_travel_empties_the_state() -> None:
    """The message must not be lost because one number does not fit."""
    account = account_of()
    account.correct(-1e12, 0)

    assert handed_over({("acme", ""): account}, 0, 3, PS) == NOTHING


def test_an_empty_state_begins_anew() -> None:
    """The own epoch is the first, from the takeover on; the age of an old home is bounded."""
    assert taken_over(NOTHING, 7, 5 * PS) == (5 * PS, (7, 7), {})
    assert sent(handed_over({}, -2 * MOST, 3, 0)) == LimitState(MOST, (), 3)
