"""What one tenant has left in one scope: rates, cost, and permits of running calls."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.limits.gcra import PS, Rate, RateBucket
from pilotlight_gateway.limits.limit_policy import LimitScope

SUBMISSION: Final = LimitAskKind.SUBMISSION
START: Final = LimitAskKind.START
TOKENS: Final = LimitAskKind.TOKENS

SMOOTHING = 0.1
"""Weight of the newest call in the mean time that the wait is estimated by."""
UNKNOWN_S = 1.0
"""Taken for that mean while no call has ended."""

PermitKey = tuple[str, int]
"""A call: its gateway, and its number there."""


class Permits:
    """The running calls of one scope, counted by identity: no permit is returned twice or never."""

    __slots__ = ("_held", "_mean")

    def __init__(self) -> None:
        self._held: dict[PermitKey, float] = {}
        """Permit -> seconds at which it was given, in that order."""
        self._mean = 0.0
        """Seconds; 0: unknown."""

    def __len__(self) -> int:
        return len(self._held)

    def keys(self) -> set[PermitKey]:
        return set(self._held)

    def enter(self, key: PermitKey, at: float) -> None:
        self._held[key] = at

    def leave(self, key: PermitKey, at: float) -> None:
        """The call has ended; unknown calls are ignored."""
        since = self._held.pop(key, None)
        if since is not None:
            took = at - since
            self._mean = self._mean + SMOOTHING * (took - self._mean) if self._mean else took

    def drop(self, key: PermitKey) -> None:
        """The call is gone, without an end to learn from."""
        self._held.pop(key, None)

    def wait(self, at: float) -> float:
        """Seconds until a permit is expected to be free: the oldest call ends first, or is overdue."""
        mean = self._mean or UNKNOWN_S
        oldest = next(iter(self._held.values()), at)
        return max(oldest + mean - at, mean / (len(self._held) + 1))


class EpochRange(NamedTuple):
    """The epochs of successive homes of a shard that handed over in order, up to the present one."""

    first: int
    last: int


class LimitAccount:
    """Counts what a scope limits. Instants are picoseconds (`gcra.instant`), except those of permits."""

    __slots__ = ("_born", "_epochs", "_fresh", "_kept", "_scope", "cost", "permits", "requests", "tokens")

    def __init__(self, born: int, epochs: EpochRange) -> None:
        self._born = born
        """When the first home of `_epochs` began: what an earlier one may have granted counts as spent."""
        self._epochs = epochs
        self.requests: RateBucket | None = None
        self.cost: RateBucket | None = None
        self.tokens: RateBucket | None = None
        self.permits = Permits()
        self._kept: list[RateBucket | None] = [None, None, None]
        """All buckets, also while their limit is not set."""
        self._scope: LimitScope | None = None
        self._fresh = True
        """Nothing was limited yet: a first limit may have held since `_born`; a later one holds from its change on."""

    def buckets(self) -> tuple[RateBucket | None, ...]:
        """Of requests, cost and tokens."""
        return tuple(self._kept)

    def restore(self, requests: RateBucket | None, cost: RateBucket | None, tokens: RateBucket | None = None) -> None:
        self._kept, self._fresh = [requests, cost, tokens], False

    def follow(self, scope: LimitScope, at: int) -> None:
        if scope is self._scope:
            return
        self._scope = scope
        self.requests = self._bucket(0, scope.requests, scope.begun.requests, at)
        self.cost = self._bucket(1, scope.cost, scope.begun.cost, at)
        self.tokens = self._bucket(2, scope.tokens, scope.begun.tokens, at)
        self._fresh = False

    def _bucket(self, kind: int, rate: Rate | None, begun: int, at: int) -> RateBucket | None:
        if rate is None:
            return None
        bucket = self._kept[kind]
        if bucket is None:
            # No former home can have counted under a limit that is newer than it: the burst is available at once.
            known = self._epochs.first <= begun <= self._epochs.last
            since = self._born if self._fresh else at
            full_at = since if known else since + rate.room
            bucket = self._kept[kind] = RateBucket(rate, full_at, known=known)
        else:
            bucket.change(rate, at)
        return bucket

    def wait(self, scope: LimitScope, cost: float, at: int, part: LimitAskKind) -> tuple[float, tuple[str, ...]]:
        """Seconds until a call may begin, and the limits that delay it; (0.0, ()) if none does."""
        if part is TOKENS:
            short = self.tokens.wait(self.tokens.rate.length(cost), at) if self.tokens is not None else 0
            return short / PS, (scope.names[3],) if short else ()
        longest = 0.0
        violated: tuple[str, ...] = ()
        requests = self.requests if part is not START else None
        if requests is not None and (wait := requests.wait(requests.rate.interval, at)):
            longest, violated = wait / PS, (*violated, scope.names[0])
        if part is SUBMISSION:
            return longest, violated
        if self.cost is not None and (wait := self.cost.wait(self.cost.rate.length(cost), at)):
            longest, violated = max(longest, wait / PS), (*violated, scope.names[1])
        if scope.concurrency and len(self.permits) >= scope.concurrency:
            longest, violated = max(longest, self.permits.wait(at / PS)), (*violated, scope.names[2])
        return longest, violated

    def take(self, scope: LimitScope, key: PermitKey, cost: float, at: int, part: LimitAskKind) -> None:
        if part is TOKENS:
            if self.tokens is not None:
                self.tokens.take(self.tokens.rate.length(cost), at)
            return
        if part is not START and self.requests is not None:
            self.requests.take(self.requests.rate.interval, at)
        if part is SUBMISSION:
            return
        if self.cost is not None:
            self.cost.take(self.cost.rate.length(cost), at)
        if scope.concurrency:
            self.permits.enter(key, at / PS)

    def correct(self, cost: float, at: int, tokens: float = 0.0) -> None:
        """Count the difference between what a call took and its estimate."""
        if self.cost is not None and cost:
            self.cost.correct(self.cost.rate.length(cost), at)
        if self.tokens is not None and tokens:
            self.tokens.correct(self.tokens.rate.length(tokens), at)

    def standing(self, scope: LimitScope, at: int) -> str:
        """What is left, as items of the RateLimit header."""
        names, items = scope.names, ""
        if self.requests is not None:
            items = _item(names[0], self.requests, at)
        if self.cost is not None:
            items += _item(names[1], self.cost, at)
        if scope.concurrency:
            items += f',"{names[2]}";r={max(0, scope.concurrency - len(self.permits))}'
        if self.tokens is not None:
            items += _item(names[3], self.tokens, at)
        return items[1:]

    def idle(self, at: int) -> bool:
        """Whether a new account would decide the same after any change: no call runs and nothing is owed."""
        paid = all(bucket is None or (bucket.paid_at is not None and bucket.paid_at <= at) for bucket in self._kept)
        return paid and not len(self.permits)


def _item(name: str, bucket: RateBucket, at: int) -> str:
    left, more = bucket.standing(at)
    return f',"{name}";r={left};t={-(-more // PS)}' if more else f',"{name}";r={left}'
