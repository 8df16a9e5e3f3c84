"""A gateway's part in jobs, put together: it accepts any tenant's, and runs those whose functions it is the home of."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_dispatcher import DispatcherStatistics, JobDispatcher
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_queue_client import JobQueueClient
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.jobs.job_runner import JobDependencies
from pilotlight_gateway.jobs.job_service import JobService
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.schemas.schema_validators import Validators
from pilotlight_gateway.storage_quota.bus_quota import BusQuotaRecords
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.tenancy.registry_port import RegistryPort


class GatewayJobs:
    """Jobs on a bus: `service` accepts them; `dispatcher`, a participant of shards, runs them."""

    def __init__(
        self,
        bus: Bus,
        blobs: BlobStore,
        calls: CallPort,
        ownership: ShardOwnership,
        *,
        region: str,
        keep_s: float,
        tenant_bytes: int,
        runner: RunnerIdentity,
        registry: RegistryPort,
        budget: ByteBudget,
        validators: Validators,
        limits: Limiter,
        costs: Estimates,
    ) -> None:
        """`tenant_bytes` is what one tenant may store, over all gateways, for `keep_s` seconds after a job's end."""
        store, self._publisher = BusJobs(bus), JobPublisher(bus)
        quota = JobStorageQuota(
            BusQuotaRecords(bus.kv(JOB_BUCKET), stored="jobs"), limit=tenant_bytes, life=keep_s, wall=time.time
        )
        self.service = JobService(
            store,
            queue=JobQueueClient(bus, self._publisher, ownership, region=region),
            quota=quota,
            blobs=blobs,
            region=region,
            keep_s=keep_s,
        )
        ground = JobDependencies(
            store=store,
            calls=JobCalls(calls=calls, registry=registry, validators=validators, budget=budget, clock=time.monotonic),
            permits=JobPermits(limits=limits, costs=costs),
            results=JobResults(blobs=blobs, quota=quota, wall=time.time),
            me=runner,
            wall=time.time,
        )
        self.dispatcher = JobDispatcher(bus, ground, region=region, gateway=runner.instance)

    def statistics(self) -> DispatcherStatistics:
        """How the jobs are whose home this gateway is."""
        return self.dispatcher.statistics()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take jobs, and run those of our shards, until the block ends."""
        async with self._publisher.running(), self.dispatcher.running():
            yield
