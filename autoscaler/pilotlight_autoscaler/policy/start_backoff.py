"""When versions whose last start failed are started again. Pure: time is an argument (seconds).

    version   each failure in a row doubles its delay, up to half a minute; a success forgets them, but for those of
              containers that were ready and failed a check later: these are forgotten with time
    tenant    its failing versions share one delay, that of the last one that was tried: however many there are, they
              take no more starts from others than one would

A version that never failed is not delayed, so what was mended and deployed again starts at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
MOST_FAILURES = 16
"""More failures in a row do not lengthen the delay."""
REMEMBERED_S = 300.0
"""After its delay a version without further failures counts as new."""


@dataclass(frozen=True, kw_only=True)
class FailedStarts:
    """The last failures of one version, in a row."""

    tenant: str
    count: int
    retry_at: float
    """No further start before this instant."""
    were_ready: bool = False
    """Whether any of them had become ready, and failed a check later: that others become ready says nothing then."""

    @property
    def delay_s(self) -> float:
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (self.count - 1))


@dataclass(kw_only=True)
class StartBackoff:
    _failing: dict[str, FailedStarts] = field(default_factory=dict)
    """By version."""
    _tenants: dict[str, float] = field(default_factory=dict)
    """tenant -> no start of any of its failing versions before this instant."""

    def failed(self, version: str, tenant: str, at: float, *, was_ready: bool = False) -> None:
        """A start has failed, or what it had started fails a check: so long as its next ones do, they wait longer."""
        known = self._failing.get(version)
        count = min(MOST_FAILURES, known.count + 1 if known is not None else 1)
        were_ready = was_ready or (known is not None and known.were_ready)
        failure = FailedStarts(tenant=tenant, count=count, retry_at=at, were_ready=were_ready)
        self._failing[version] = replace(failure, retry_at=at + failure.delay_s)
        self._delay(tenant, at + failure.delay_s)

    def succeeded(self, version: str) -> None:
        """A container is ready: forget its version's failures, unless others were ready before they failed."""
        if (failure := self._failing.get(version)) is not None and not failure.were_ready:
            del self._failing[version]

    @property
    def has_failures(self) -> bool:
        """Whether any version is failing."""
        return bool(self._failing)

    def is_failing(self, version: str) -> bool:
        return version in self._failing

    def refused(self, versions: Iterable[str], at: float) -> set[str]:
        """Those of the versions that must not start now: of a tenant's failing ones all but the one due longest."""
        failing = {version: self._failing[version] for version in versions if version in self._failing}
        chosen: dict[str, str] = {}
        for version, failure in sorted(failing.items(), key=lambda item: (item[1].retry_at, item[0])):
            if max(failure.retry_at, self._tenants.get(failure.tenant, 0.0)) <= at:
                chosen.setdefault(failure.tenant, version)
        return failing.keys() - set(chosen.values())

    def tried(self, version: str, at: float) -> None:
        """A version is started; if it is a failing one, its tenant's others wait."""
        if (failure := self._failing.get(version)) is not None:
            self._delay(failure.tenant, at + failure.delay_s)

    def forget(self, at: float) -> None:
        """Drop what has passed."""
        self._failing = {v: f for v, f in self._failing.items() if at - f.retry_at <= REMEMBERED_S}
        self._tenants = {tenant: until for tenant, until in self._tenants.items() if until > at}

    def _delay(self, tenant: str, ends_at: float) -> None:
        self._tenants[tenant] = max(ends_at, self._tenants.get(tenant, 0.0))
