"""How much each tenant may log on this node: bytes an hour, a tenth of them at once. Pure.

Who has used them up is silent until a tenth of that is there again, so that its log says so a few times an hour instead
of at every line.
"""

from __future__ import annotations

from dataclasses import dataclass

HOUR_S = 3_600.0
AT_ONCE = 0.1
"""The part of an hour's bytes that may come at once."""
OPENS_AT = 0.1
"""The part of these that must be there before lines pass again."""
LINE_BYTES = 100
"""What a line counts besides its text: it is kept with its time and container."""


@dataclass
class _Bucket:
    per_hour: int
    left: float
    at: float
    closed: bool = False

    def advance(self, at: float) -> None:
        most = self.per_hour * AT_ONCE
        self.left = min(most, self.left + max(0.0, at - self.at) * self.per_hour / HOUR_S)
        self.at = at
        if self.closed and self.left >= most * OPENS_AT:
            self.closed = False


class TenantLogRates:
    """Counts the lines of tenants that have a limit. `at` is monotonic seconds."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def set_limit(self, tenant: str, per_hour: int | None, at: float) -> None:
        """Hold the tenant to `per_hour` bytes; None: to nothing. What it has used stays used."""
        if per_hour is None:
            self._buckets.pop(tenant, None)
            return
        bucket = self._buckets.get(tenant)
        if bucket is None:
            self._buckets[tenant] = _Bucket(per_hour, per_hour * AT_ONCE, at)
        else:
            bucket.advance(at)
            bucket.per_hour, bucket.left = per_hour, min(bucket.left, per_hour * AT_ONCE)

    def admit(self, tenant: str, size: int, at: float) -> bool:
        """Whether a line of `size` bytes may pass, which counts then."""
        bucket = self._buckets.get(tenant)
        if bucket is None:
            return True
        bucket.advance(at)
        if bucket.closed:
            return False
        bucket.left -= size + LINE_BYTES
        bucket.closed = bucket.left <= 0.0
        return True

    def is_closed(self, tenant: str, at: float) -> bool:
        """Whether the tenant's lines are dropped now."""
        bucket = self._buckets.get(tenant)
        if bucket is None:
            return False
        bucket.advance(at)
        return bucket.closed

    def limit_text(self, tenant: str) -> str:
        """The limit of a tenant that has one, in words."""
        allowed = f"{self._buckets[tenant].per_hour / 1e6:g} MB"
        return f"{tenant} may log {allowed} an hour on a node, a tenth of it at once (the limit log_bytes_per_hour)"
