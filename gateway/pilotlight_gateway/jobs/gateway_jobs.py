"""A gateway's part in jobs, put together: it accepts any tenant's, and runs those whose functions it is the home of."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.cluster.shard_ownership import ShardOwnership
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_dispatcher import JobDispatcher
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_rpc import JobRpc
from pilotlight_gateway.jobs.job_runner import JobDependencies
from pilotlight_gateway.jobs.job_service import JobService


class GatewayJobs:
    """`desk` is for the HTTP side; `dispatcher` for shards; `running` is what goes on beside them."""

    def __init__(
        self,
        bus: Bus,
        calls: CallPort,
        ownership: ShardOwnership,
        blobs: BlobStore,
        *,
        region: str,
        keep_s: float,
        share_bytes: int,
    ) -> None:
        self._bus = bus
        self._calls = calls
        self._region = region
        self._store = BusJobs(bus)
        self._announcer = JobPublisher(bus)
        asking = JobRpc(bus, ownership, region=region)
        self.desk = JobService(
            self._store,
            region=region,
            blobs=blobs,
            tell=self._announcer.tell,
            place=asking.place,
            stop=asking.stop,
            keep_s=keep_s,
            share_bytes=share_bytes,
        )

    def dispatcher(self, services: HttpServices, me: RunnerIdentity) -> JobDispatcher:
        """What takes part in shards, and runs their jobs as calls among calls."""
        ground = JobDependencies(
            store=self._store,
            calls=self._calls,
            registry=services.registry,
            blobs=services.blobs,
            budget=services.budget,
            validators=services.validators,
            limits=services.limits,
            costs=services.costs,
            room=self.desk.room,
            me=me,
            clock=time.monotonic,
            wall=time.time,
        )
        return JobDispatcher(self._bus, ground, region=self._region, gateway=me.instance)

    @asynccontextmanager
    async def running(self, dispatcher: JobDispatcher) -> AsyncIterator[None]:
        """Take jobs, and run those of our shards, until the block ends."""
        async with self._announcer.running(), dispatcher.running():
            yield
