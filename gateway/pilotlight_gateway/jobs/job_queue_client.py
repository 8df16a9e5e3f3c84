"""The work queue as the accepting side reaches it, over the bus."""

from __future__ import annotations

import contextlib

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.job_messages import AskJob, JobNote, JobPlace
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.jobs.job_publisher import JobPublisher

REQUEST_TIMEOUT_S = 1.0


class JobQueueClient:
    """The real `JobQueue`."""

    def __init__(self, bus: Bus, publisher: JobPublisher, shards: ShardOwnership, *, region: str) -> None:
        self._bus = bus
        self._publisher = publisher
        self._shards = shards
        self._region = region

    def publish(self, flow: str, note: JobNote) -> None:
        self._publisher.publish(flow, note)

    async def locate(self, job: JobRecord, flow: str) -> JobPlace:
        home = self._shards.owner(subjects.shard_of(job.function))
        if home is not None:
            with contextlib.suppress(BusError):
                subject = subjects.jobs_asked(self._region, home.gateway)
                answer = await self._bus.request(subject, AskJob(flow=flow, job=job.id), timeout=REQUEST_TIMEOUT_S)
                if isinstance(answer, JobPlace):
                    return answer
        return JobPlace()

    async def stop(self, job: JobRecord) -> None:
        if job.runner is not None:
            with contextlib.suppress(BusError):
                subject = subjects.ask(self._region, job.runner.instance)
                asked = AskCall(tenant=job.tenant, call_id=job.run, cancel=True)
                await self._bus.request(subject, asked, timeout=REQUEST_TIMEOUT_S)
