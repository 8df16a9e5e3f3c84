"""What a home of limits hands over with a shard, so that no tenant loses its burst.

Lengths are picoseconds; instants do not travel. Time on the way does not count, so the next home grants at most what
was left.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.money.budgets import HandedBudgets
from pilotlight_gateway.limits.account import EpochRange, LimitAccount
from pilotlight_gateway.limits.gcra import Rate, RateBucket

ACCOUNTS_AT_MOST = 2_000
"""Of one shard: 150 KiB. Beyond it nothing is handed over, as after a crash."""


UNKNOWN = -1


class BucketLevel(msgspec.Struct, frozen=True, array_like=True):
    ahead: int
    interval: int
    room: int
    owed: int = UNKNOWN
    """Until everything taken has returned."""


class AccountLevels(msgspec.Struct, frozen=True, array_like=True):
    """The buckets of an account; gateways report its permits."""

    tenant: str
    function: str
    requests: BucketLevel | None
    cost: BucketLevel | None
    tokens: BucketLevel | None = None


class LimitState(msgspec.Struct, frozen=True, array_like=True):
    """The accounts of a shard that differ from new ones."""

    age: int = 0
    """For how long other accounts have been filling."""
    accounts: tuple[AccountLevels, ...] = ()
    first: int = 0
    """Epoch of the first home since a crash; 0: not known."""
    budgets: tuple[HandedBudgets, ...] = ()


NOTHING = LimitState()
MOST = 2**62
"""Longest length that travels (53 days); with a longer one nothing is handed over."""
AccountsByScope = dict[tuple[str, str], LimitAccount]


def handed_over(accounts: AccountsByScope, born: int, first: int, now: int) -> LimitState:
    """The state of a shard whose first home, of epoch `first`, began at `born`."""
    if len(accounts) > ACCOUNTS_AT_MOST:
        return NOTHING
    levels = [
        AccountLevels(tenant, function, *(_level(bucket, now) for bucket in account.buckets()))
        for (tenant, function), account in accounts.items()
    ]
    if any(_is_long(level) for account in levels for level in (account.requests, account.cost, account.tokens)):
        return NOTHING
    return LimitState(min(now - born, MOST), tuple(levels), first)


def taken_over(state: LimitState, epoch: int, now: int) -> tuple[int, EpochRange, AccountsByScope]:
    """When the first home since a crash began, the epochs since, and the accounts."""
    born, epochs, accounts = now - state.age, EpochRange(state.first or epoch, epoch), {}
    for levels in state.accounts:
        account = accounts[levels.tenant, levels.function] = LimitAccount(born, epochs)
        account.restore(*(_bucket(one, now) for one in (levels.requests, levels.cost, levels.tokens)))
    return born, epochs, accounts


def _is_long(level: BucketLevel | None) -> bool:
    return level is not None and max(abs(level.ahead), level.interval, level.room, level.owed) > MOST


def _level(bucket: RateBucket | None, now: int) -> BucketLevel | None:
    if bucket is None:
        return None
    owed = UNKNOWN if bucket.paid_at is None else max(0, bucket.paid_at - now)
    return BucketLevel(bucket.full_at - now, bucket.rate.interval, bucket.rate.room, owed)


def _bucket(level: BucketLevel | None, now: int) -> RateBucket | None:
    if level is None:
        return None
    bucket = RateBucket(Rate(level.interval, level.room), now + level.ahead, known=level.owed != UNKNOWN)
    if bucket.paid_at is not None:
        bucket.paid_at = now + level.owed
    return bucket
