"""What a job's run takes of its tenant's limits: cost and a place among what runs, from its start to its end.

Its submission was counted under the rates of requests. A run that would be too much is not refused but waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission, end_admission
from pilotlight_gateway.limits.limits_port import Limiter

SHORTEST_WAIT_S = 0.02
LONGEST_WAIT_S = 30.0
"""Then it is asked again, whatever was said: a limit may have been raised."""


@dataclass(frozen=True, kw_only=True)
class JobPermits:
    """Makes the permits of runs."""

    limits: Limiter
    costs: Estimates

    def of(self, job: JobRecord) -> JobPermit:
        """The permit of the job's next run."""
        return JobPermit(self, tenant=job.tenant, function=job.function, version=job.version)


class JobPermit:
    """Of one run: taken before its first sending, and settled whatever became of it."""

    def __init__(self, permits: JobPermits, *, tenant: str, function: str, version: str) -> None:
        self._limits = permits.limits
        self._costs = permits.costs
        self._tenant = tenant
        self._function = function
        self._version = version
        self._admission: Admission | None = None

    async def take(self) -> float:
        """Seconds until the run may be let in; 0.0: it is."""
        policy = self._limits.policy(self._tenant, self._function)
        if self._admission is not None or not (policy.holds or policy.most_cost):
            return 0.0
        cost = self._costs.of(self._version) if policy.most_cost else 0.0
        admission = await self._limits.admit(self._tenant, self._function, policy, cost, LimitAskKind.START)
        if admission.error is not None:
            return min(max(admission.error.retry_after or 0.0, SHORTEST_WAIT_S), LONGEST_WAIT_S)
        self._admission = admission
        return 0.0

    def settle(self, usage: CallUsage) -> None:
        """The run is over; once nothing of it runs any more, its place is free and what it took is counted."""
        admission, self._admission = self._admission, None
        if admission is not None:
            usage.settle(partial(end_admission, admission=admission, costs=self._costs, version=self._version))
