"""What a home of limits hands over with a shard when it leaves in order, so that nobody's burst is lost.

Lengths are picoseconds, never instants. The time on the way does not count, so what arrives is at most what was left.
"""

from __future__ import annotations

import msgspec

from pilotlight_gateway.limits.account import Account
from pilotlight_gateway.limits.gcra import Bucket, Rate

ACCOUNTS_AT_MOST = 2_000
"""Of one shard: 150 KiB. Beyond it nothing is handed over, as after a death."""


class Level(msgspec.Struct, frozen=True, array_like=True):
    """A bucket."""

    ahead: int
    """Until it is full."""
    interval: int
    room: int


class AccountLevels(msgspec.Struct, frozen=True, array_like=True):
    """The buckets of an account; its permits are told by those who hold them."""

    tenant: str
    function: str
    requests: Level | None
    cost: Level | None


class LimitState(msgspec.Struct, frozen=True, array_like=True):
    """All accounts of a shard that are not as new."""

    age: int = 0
    """Since when accounts would have filled that are not among them."""
    accounts: tuple[AccountLevels, ...] = ()


NOTHING = LimitState()
MOST = 2**62
"""Picoseconds (53 days) that travel at most: what is longer is forgotten, and the buckets begin empty."""
Accounts = dict[tuple[str, str], Account]


def handed_over(accounts: Accounts, born: int, now: int) -> LimitState:
    """What the next home should know of a shard whose home began at `born`."""
    if len(accounts) > ACCOUNTS_AT_MOST:
        return NOTHING
    levels = [
        AccountLevels(tenant, function, _level(account.requests, now), _level(account.cost, now))
        for (tenant, function), account in accounts.items()
    ]
    if any(_is_long(level) for account in levels for level in (account.requests, account.cost)):
        return NOTHING
    return LimitState(min(now - born, MOST), tuple(levels))


def taken_over(state: LimitState, now: int) -> tuple[int, Accounts]:
    """When the shard's first home since its last death began, and the accounts."""
    born, accounts = now - state.age, {}
    for levels in state.accounts:
        account = accounts[levels.tenant, levels.function] = Account(born)
        account.requests, account.cost = _bucket(levels.requests, now), _bucket(levels.cost, now)
    return born, accounts


def _is_long(level: Level | None) -> bool:
    return level is not None and max(abs(level.ahead), level.interval, level.room) > MOST


def _level(bucket: Bucket | None, now: int) -> Level | None:
    return Level(bucket.full_at - now, bucket.rate.interval, bucket.rate.room) if bucket is not None else None


def _bucket(level: Level | None, now: int) -> Bucket | None:
    return Bucket(Rate(level.interval, level.room), now + level.ahead) if level is not None else None
