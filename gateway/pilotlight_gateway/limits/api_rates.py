"""How often, and how many at a time, a tenant may ask for other things than calls. Each gateway counts its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cachetools import LRUCache

from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.limits import Limits, ReachedLimit
from pilotlight_gateway.limits.gcra import PS, Rate, RateBucket, instant, rate

REMEMBERED = 8_192
"""Tenants and limits that are counted; who is forgotten has a full burst."""
REQUEST_BURST_S = 10.0
HOUR_S = 3_600.0
BURSTS_AN_HOUR = 10.0
API_REQUESTS, DEPLOYS, OPEN = "api_requests_per_s", "deploys_per_hour", "open_requests"
OPEN_RETRY_S = 1.0
GUESSES = "?"
"""In the place of who asks, which is the name of a tenant."""


class ApiRates:
    """Counts requests by tenant. `limits_of` has the limits of a tenant, and `clock` is monotonic seconds."""

    def __init__(self, limits_of: Callable[[str], Limits], clock: Callable[[], float]) -> None:
        self._limits_of = limits_of
        self._clock = clock
        self._open: Counter[str] = Counter()
        self._buckets: LRUCache[tuple[str, str, str], tuple[float, RateBucket]] = LRUCache(REMEMBERED)

    def take_request(self, tenant: str, asker: str = "") -> None:
        """Count a request.

        Args:
            asker: the tenant whose function asks in that one's name, if it is another: it is counted by itself, so
                that neither takes what the other's own requests need.

        Raises:
            TooMuch: names the limit, and says when to come again.
        """
        per_second = self._limits_of(tenant).api_requests_per_s
        if per_second is not None:
            self._take(tenant, API_REQUESTS, per_second, _of_requests(per_second), asker if asker != tenant else "")

    def check_guess(self, tenant: str) -> None:
        """Before looking further for what a call names, which is not in memory.

        Raises:
            TooMuch: so many calls of the tenant lately named what there is not that it has to wait.
        """
        if (found := self._guesses(tenant)) is not None:
            self._check(tenant, API_REQUESTS, found[0], found[1], GUESSES)

    def take_guess(self, tenant: str) -> None:
        """Count a call that named what there is not: at the rate of requests, and apart from them, so that neither
        takes what the other needs; as `take_request`.
        """
        if (found := self._guesses(tenant)) is not None:
            self._take(tenant, API_REQUESTS, found[0], found[1], GUESSES)

    def take_deploy(self, tenant: str) -> None:
        """Count a deploy; as `take_request`."""
        per_hour = self._limits_of(tenant).deploys_per_hour
        if per_hour is not None:
            self._take(tenant, DEPLOYS, per_hour, rate(per_hour / HOUR_S, max(1.0, per_hour / BURSTS_AN_HOUR)))

    @contextmanager
    def holding(self, tenant: str) -> Iterator[None]:
        """Count a request as open until the block ends.

        Raises:
            TooMuch: names the limit.
        """
        allowed, held = self._limits_of(tenant).open_requests, self._open[tenant]
        if allowed is not None and held >= allowed:
            raise TooMuch(
                f"{tenant} may have {allowed} requests other than calls open at a time (the limit {OPEN}), and has "
                f"{held} at this gateway: end readers of logs, or wait for fewer jobs.",
                retry_after=OPEN_RETRY_S,
                limits=(ReachedLimit(limit=OPEN, tenant=tenant, allowed=allowed, current=held),),
            )
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
            if not self._open[tenant]:
                del self._open[tenant]

    def _guesses(self, tenant: str) -> tuple[float, Rate] | None:
        per_second = self._limits_of(tenant).api_requests_per_s
        return (per_second, _of_requests(per_second)) if per_second is not None else None

    def _take(self, tenant: str, limit: str, allowed: float, wanted: Rate, asker: str = "") -> None:
        bucket, at = self._check(tenant, limit, allowed, wanted, asker)
        bucket.take(wanted.interval, at)

    def _check(self, tenant: str, limit: str, allowed: float, wanted: Rate, asker: str) -> tuple[RateBucket, int]:
        at = instant(self._clock())
        known = self._buckets.get((tenant, limit, asker))
        if known is None or known[0] != allowed:
            known = self._buckets[tenant, limit, asker] = (allowed, RateBucket(wanted, at))
        bucket = known[1]
        if wait := bucket.wait(wanted.interval, at):
            what = _GUESSED if asker == GUESSES else _WHAT[limit]
            raise TooMuch(
                f"{tenant} may make {allowed:g} {what} (the limit {limit}): none is left now.",
                retry_after=wait / PS,
                limits=(ReachedLimit(limit=limit, tenant=tenant, allowed=allowed, left=0.0),),
            )
        return bucket, at


def _of_requests(per_second: float) -> Rate:
    return rate(per_second, max(1.0, per_second * REQUEST_BURST_S))


_WHAT = {API_REQUESTS: "requests to the API a second", DEPLOYS: "deploys an hour"}
_GUESSED = "calls a second of what there is not"
