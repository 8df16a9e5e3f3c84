"""A gateway's jobs put together, on a real bus: accepted by its service, run by its dispatcher, counted for both."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import TooMuch
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobPlace
from pilotlight_core.model.records.jobs import JobState, RunnerIdentity
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.jobs.gateway_jobs import GatewayJobs, JobStorage
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_service import RECORD_BYTES, JobOptions
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from tests.gateway.body_codecs import small_codec
from tests.gateway.jobs.test_job_runner import OUTPUT, Calls
from tests.gateway.world import World, function
from tests.waiting import until


def gateway(bus: Bus, world: World, calls: Calls | None = None, *, tenant_bytes: int = 10**9) -> GatewayJobs:
    """One of a region of its own, which is the home of everything."""
    name = f"gw{token(4)}"
    return GatewayJobs(
        bus,
        MemoryShardOwnership(gateway=f"{name}-a", home=ShardOwner(f"{name}-a", 1)),
        JobStorage(MemoryBlobs(), 3_600.0, tenant_bytes),
        JobCalls(
            calls=calls or Calls(),
            registry=world.registry,
            schemas=VersionSchemas(world.blobs),
            codec=small_codec(),
            budget=ByteBudget(limit=10**7),
            clock=time.monotonic,
        ),
        JobPermits(limits=MemoryLimiter(), costs=Estimates()),
        region=f"r{token(8)}",
        runner=RunnerIdentity(name, f"{name}-a"),
    )


def call_of(version: VersionRecord, tenant: str) -> PreparedCall:
    """What a submission asks for."""
    return PreparedCall(
        call_id=f"call_local_1_{token()}",
        client_id=None,
        tenant=tenant,
        version=version,
        method=version.spec.methods[0],
        input=msgspec.msgpack.encode({"name": "Ada"}),
        priority=version.spec.priority,
        deadline_at=0.0,
        arrived_at=0.0,
        stream=False,
    )


async def test_what_is_accepted_runs_at_its_home(bus: Bus, world: World) -> None:
    """It is found in its queue and counted until it has ended; then whoever waits has its result."""
    tenant, held = f"t{token(8)}", asyncio.Event()
    (version,) = world.deploy(function("hello"), tenant=tenant)
    made = gateway(bus, world, Calls(output=OUTPUT, hold=held))
    made.dispatcher.begin(subjects.shard_of(f"{tenant}:shop.hello"), 1, b"")
    async with made.running():
        submitted = await made.service.submit(call_of(version, tenant), JobOptions())
        await until(lambda: made.statistics().running == 1)
        place = await made.service.locate(submitted.job)
        held.set()
        ended = await made.service.wait(submitted.job, 30.0)

    assert place.position == 0
    assert (ended.state, ended.output) == (JobState.SUCCEEDED, OUTPUT)


async def test_before_a_home_is_known_a_job_is_stored_all_the_same(bus: Bus, world: World) -> None:
    """Nobody runs, so nobody says where it is."""
    tenant = f"t{token(8)}"
    (version,) = world.deploy(function("hello"), tenant=tenant)
    made = gateway(bus, world)
    submitted = await made.service.submit(call_of(version, tenant), JobOptions())

    assert await made.service.find(tenant, submitted.job.id) == submitted.job
    assert await made.service.locate(submitted.job) == JobPlace()


async def test_what_a_tenant_may_store_is_one_for_all_gateways(bus: Bus, world: World) -> None:
    """The quota's records are in the bucket of jobs."""
    tenant = f"t{token(8)}"
    (version,) = world.deploy(function("hello"), tenant=tenant)
    one, two = (gateway(bus, world, tenant_bytes=3 * RECORD_BYTES) for _ in range(2))
    await one.service.submit(call_of(version, tenant), JobOptions())
    await one.service.submit(call_of(version, tenant), JobOptions())
    with pytest.raises(TooMuch):
        await two.service.submit(call_of(version, tenant), JobOptions())
