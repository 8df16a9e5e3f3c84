"""What a gateway asks others about a job: where it is in its queue, and whoever runs it to stop."""

from __future__ import annotations

import contextlib

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.job_messages import AskJob, JobPlace
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership

PATIENCE_S = 1.0


class JobRpc:
    """Asks the home of a job's function, and the gateway that runs it."""

    def __init__(self, bus: Bus, shards: ShardOwnership, *, region: str) -> None:
        self._bus = bus
        self._shards = shards
        self._region = region

    async def place(self, job: JobRecord, flow: str) -> JobPlace:
        """Where a job is in its queue; nothing, if its home does not say."""
        home = self._shards.owner(subjects.shard_of(job.function))
        if home is not None:
            with contextlib.suppress(BusError):
                subject = subjects.jobs_asked(self._region, home.gateway)
                answer = await self._bus.request(subject, AskJob(flow=flow, job=job.id), timeout=PATIENCE_S)
                if isinstance(answer, JobPlace):
                    return answer
        return JobPlace()

    async def stop(self, job: JobRecord) -> None:
        """Its record says that its end is wanted; whoever runs it need not wait until it ends by itself."""
        if job.runner is not None:
            with contextlib.suppress(BusError):
                subject = subjects.ask(self._region, job.runner.instance)
                asked = AskCall(tenant=job.tenant, id=job.run, cancel=True)
                await self._bus.request(subject, asked, timeout=PATIENCE_S)
