"""The jobs room of one gateway, put together."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from pilotlight_core.bus import Bus
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.jobs.bucket_headroom import Headroom
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics, JobDispatcher
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_queue_client import JobQueueClient
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.jobs.job_runner import JobDependencies
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.storage_quota.bus_quota import BusQuotaRecords
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota


class JobStorage(NamedTuple):
    """Where large inputs and results go, and the bounds of storage."""

    blobs: BlobStore
    keep_s: float
    """How long a job is kept after its end, at most."""
    tenant_bytes: int
    """What one tenant may store, over all gateways."""


class GatewayJobs:
    """`service` accepts jobs; `dispatcher`, a shard participant, runs those of its shards."""

    def __init__(
        self,
        bus: Bus,
        ownership: ShardOwnership,
        storage: JobStorage,
        calls: JobCalls,
        permits: JobPermits,
        *,
        region: str,
        runner: RunnerIdentity,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`wall` gives unix seconds; `calls` has the monotonic clock."""
        headroom = Headroom(partial(bus.jetstream.filled, bucket_stream(JOB_BUCKET)), clock=calls.clock)
        store, self._publisher = BusJobs(bus, headroom=headroom), JobPublisher(bus)
        shares = BusQuotaRecords(bus.kv(JOB_BUCKET), stored="jobs")
        quota = JobStorageQuota(shares, limit=storage.tenant_bytes, life=storage.keep_s, wall=wall)
        self.service = JobService(
            store,
            queue=JobQueueClient(bus, self._publisher, ownership, region=region),
            quota=quota,
            blobs=storage.blobs,
            region=region,
            keep_s=storage.keep_s,
            wall=wall,
            clock=calls.clock,
        )
        ground = JobDependencies(
            store=store,
            calls=calls,
            permits=permits,
            results=JobResults(blobs=storage.blobs, quota=quota, wall=wall),
            me=runner,
            wall=wall,
        )
        self.dispatcher = JobDispatcher(bus, ground, region=region, gateway=runner.instance, clock=calls.clock)

    def statistics(self) -> DispatcherStatistics:
        return self.dispatcher.statistics()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Publish and run jobs until the block ends."""
        async with self._publisher.running(), self.dispatcher.running():
            yield
