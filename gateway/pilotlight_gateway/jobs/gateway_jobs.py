"""A gateway's part in jobs, put together: it accepts any tenant's, and runs those whose functions it is the home of."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import BlobStore
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.http.protocol.http_services import HttpServices
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_dispatcher import JobDispatcher
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_rpc import JobRpc
from pilotlight_gateway.jobs.job_runner import JobDependencies
from pilotlight_gateway.jobs.job_service import JobService


class GatewayJobs:
    """`desk` is for the HTTP side; `running` is what goes on beside it."""

    def __init__(
        self, bus: Bus, calls: CallService, blobs: BlobStore, *, region: str, keep_s: float, share_bytes: int
    ) -> None:
        self._bus = bus
        self._calls = calls
        self._region = region
        self._store = BusJobs(bus)
        self._announcer = JobPublisher(bus)
        asking = JobRpc(bus, calls.shards, region=region)
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

    @asynccontextmanager
    async def running(self, services: HttpServices, me: RunnerIdentity) -> AsyncIterator[JobDispatcher]:
        """Run calls, and jobs as calls among them, until the block ends: shards are taken with their jobs."""
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
        feeder = JobDispatcher(self._bus, ground, region=self._region, gateway=me.instance)
        self._calls.shards.lodgers["jobs"] = feeder
        async with self._calls.running(), self._announcer.running(), feeder.running():
            yield feeder
