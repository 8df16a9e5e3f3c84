"""What a gateway's process has of jobs: all of the real `GatewayJobs` over a simulated bus, and a sweeper beside it.

Clients of jobs, and the parts of HTTP between them and the service, stand in here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.ids import base36
from pilotlight_core.model.messages.job_messages import JobsStored
from pilotlight_core.model.messages.limiting import LimitAsk, LimitAskKind
from pilotlight_core.model.messages.wire import encode
from pilotlight_core.model.records.jobs import RunnerIdentity
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.duties.job_sweeper import JobWatchlist, WatchedJob
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.jobs.gateway_jobs import GatewayJobs, JobStorage
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_service import JobOptions
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.limits.limit_driver import LimitDriver
from pilotlight_gateway.limits.limit_policy import LimitPolicy
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.limits.limits_port import Limiter, MemoryLimiter
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.gateway.body_codecs import small_codec
from tests.simulation.sim_bus import SimBus
from tests.simulation.sim_loop import SimLoop
from tests.simulation.stream_server import UNIX, StreamServer
from tests.simulation.world import REGION, Mail, Process, World

if TYPE_CHECKING:
    from tests.simulation.gateway_process import GatewayProcess

SWEEP_S = 2.0
KEEP_S = 3_600.0


class SimCallService(CallService):
    """The real one, which numbers its calls in order, since a seed is a history, and says which of them are jobs."""

    def __init__(self, process: GatewayProcess, bus: SimBus) -> None:
        drivers, budget = process.drivers, ByteBudget(limit=10**6)
        super().__init__(
            bus, drivers.origins, process.table, FleetView(), drivers.homes.statistics,
            region=REGION, budget=budget,
        )  # fmt: skip
        self._process = process

    def new_id(self) -> str:
        super().new_id()  # raises where there is no lease
        return f"call_{REGION}_{base36(self._process.table.epoch)}_{self._process.next_number():020d}"

    async def run(self, call: PreparedCall) -> CallResult:
        self._process.world.promises.jobs.called(call.call_id, call.input)
        return await super().run(call)


class SimLimiter(HomeLimiter):
    """The real one, over the driver that there is already."""

    def __init__(self, process: GatewayProcess, loop: SimLoop, driver: LimitDriver, policy: LimitPolicy) -> None:
        self._process = process
        self._loop = loop
        self._ownership = process.table
        self.policy = lambda *_: policy
        self.driver = driver

    async def admit(
        self, tenant: str, function: str, policy: LimitPolicy, cost: float, part: LimitAskKind = LimitAskKind.CALL
    ) -> Admission:
        admission = await super().admit(tenant, function, policy, cost, part)
        if admission.error is None and (answer := admission.answer) is not None and answer.holds:
            self._process.world.promises.holds(tenant, (self._process.instance, answer.number))
        return admission

    def _ended(self, admission: Admission, cost: float | None) -> None:
        super()._ended(admission, cost)
        if (answer := admission.answer) is not None:
            self._process.gave_back(LimitAsk(0, admission.tenant, admission.function), answer)


class JobSide:
    """The jobs of one life of a gateway."""

    def __init__(
        self, process: GatewayProcess, server: StreamServer, registry: MemoryRegistry, policy: LimitPolicy | None
    ) -> None:
        self._process = process
        loop = self.loop = SimLoop(process)
        process.world.loops.append(loop)
        self.bus = SimBus(process, server, loop)
        self._calls = SimCallService(process, self.bus)
        limits: Limiter = MemoryLimiter()
        if process.limits is not None and policy is not None:
            limits = SimLimiter(process, loop, process.limits, policy)
        self.jobs = GatewayJobs(
            self.bus,
            process.table,
            JobStorage(MemoryBlobs(), KEEP_S, 10**9),
            JobCalls(
                calls=self._calls,
                registry=registry,
                schemas=VersionSchemas(MemoryBlobs()),
                codec=small_codec(),
                budget=ByteBudget(limit=10**6),
                clock=loop.time,
            ),
            JobPermits(limits=limits, costs=Estimates()),
            region=REGION,
            runner=RunnerIdentity(process.name, process.instance),
            wall=lambda: UNIX + process.world.now,
        )
        self._leaving = asyncio.Event()
        self._serving = loop.create_task(self._serve())

    def leave(self) -> None:
        """Start no more jobs, and give those that run a little time."""
        self._leaving.set()
        self._serving.add_done_callback(lambda _: self._process.later(0.0, self._process.begin_anew))

    def submit(self, version: VersionRecord, tenant: str, name: str, options: JobOptions) -> None:
        """A client wants a job."""
        self.loop.create_task(self._submit(version, tenant, name, options))

    def cancel(self, tenant: str, job: str) -> None:
        """A client does not want its job any more."""
        self.loop.create_task(self._cancel(tenant, job))

    async def _serve(self) -> None:
        async with self.jobs.running():
            await self._leaving.wait()

    async def _submit(self, version: VersionRecord, tenant: str, name: str, options: JobOptions) -> None:
        try:
            call = PreparedCall(
                call_id=self._calls.new_id(), client_id=None, tenant=tenant, version=version,
                method=version.spec.methods[0], input=msgspec.msgpack.encode(name), priority=version.spec.priority,
                deadline_at=0.0, arrived_at=0.0, stream=False,
            )  # fmt: skip
            submitted = await self.jobs.service.submit(call, options)
        except PilotlightError as error:
            self._process.world.note("NOT ACCEPTED", name, error)
            return
        self._process.world.note("ACCEPTED", name, submitted.job.id)
        self._process.world.promises.jobs.was_accepted(name, submitted.job.id)

    async def _cancel(self, tenant: str, job: str) -> None:
        try:
            await self.jobs.service.cancel(tenant, job)
        except PilotlightError as error:
            self._process.world.note("NOT CANCELLED", job, error)


class Sweeper(Process):
    """The duty that publishes again what no message names: the real watchlist, over the records themselves."""

    def __init__(self, world: World, server: StreamServer) -> None:
        super().__init__(world, "duty")
        self._server = server
        self._watchlist = JobWatchlist(REGION)
        self._seen = 0
        self._swept = 0

    def boot(self) -> None:
        self.every(SWEEP_S, self._sweep)

    def listens(self, subject: str) -> bool:
        return False

    def receive(self, mail: Mail) -> None:
        pass

    def _sweep(self) -> None:
        for record in self._server.jobs():
            if record.seq > self._seen:
                self._seen = record.seq
                self._watchlist.see(record.subject, _watched(record.data), record.at)
        at = UNIX + self.world.now
        if self._watchlist.old(at):
            for flow, jobs in self._watchlist.missing(self._server.told(), at).items():
                self._swept += 1
                message = encode(JobsStored(jobs=tuple(note for _, note in jobs)))
                self._server.store(flow, message, f"sweep {self._swept}", {})


_watched = msgspec.msgpack.Decoder(WatchedJob).decode
