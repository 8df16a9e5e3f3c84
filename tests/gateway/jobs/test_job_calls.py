"""A job as a call: with its own time, at its class, and to a whole result."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import msgspec
import pytest

from pilotlight_core.model.errors import BadOutput, ContainerDied, FunctionRaised
from pilotlight_core.model.messages.call_messages import Run
from pilotlight_core.model.spec import Priority, VersionRecord
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallResult, ChunkEvent
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import Go, PreparedCall
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.splits.splits import NAMED, Chosen
from tests.builders.jobs import job
from tests.builders.specs import method
from tests.gateway.body_codecs import small_codec
from tests.gateway.world import World, function, generator


def start_hook(run: Run, go: Go) -> None:
    """Where a start would be written."""


def calls_of(world: World, calls: FakeCalls) -> JobCalls:
    return JobCalls(
        calls=calls,
        registry=world.registry,
        schemas=VersionSchemas(world.blobs),
        codec=small_codec(),
        budget=ByteBudget(limit=10**7),
        clock=lambda: 50.0,
    )


async def prepared(calls: JobCalls, version: VersionRecord, priority: Priority = Priority.STANDARD) -> PreparedCall:
    name = next(iter(version.spec.methods)).name
    record = job(version=version.id, method=name, priority=priority)
    return await calls.prepare(record, Chosen(version, None, NAMED), b"\x80", 300.0, CallUsage(), start_hook)


async def test_a_jobs_call_waits_for_as_long_as_the_job_has_time(world: World) -> None:
    """However long the queue is; then it may run for as long as its function says."""
    (version,) = world.deploy(function("hello", timeout=10.0))
    call = await prepared(calls_of(world, FakeCalls()), version, Priority.BATCH)

    assert (call.arrived_at, call.deadline_at) == (50.0, 360.0)
    assert (call.scheduling.queue_calls, call.scheduling.queue_ms) == (0, 0.0)
    assert call.priority is Priority.BATCH
    assert call.start_hook is start_hook


async def test_a_jobs_record_decides_whether_it_runs_again(world: World) -> None:
    """Not its call: that is tried once, under an id of its own."""
    (version,) = world.deploy(function("hello", retries=3, idempotent=True))
    calls = calls_of(world, FakeCalls())
    one, two = await prepared(calls, version), await prepared(calls, version)

    assert (one.version.spec.retries, one.version.spec.idempotent) == (0, False)
    assert one.call_id != two.call_id


async def test_a_value_is_the_result(world: World) -> None:
    """Checked against what the type hints promise."""
    promising = method(attribute="hello", output_schema={"type": "integer"})
    (version,) = world.deploy(function("hello", promising))
    good, bad = FakeCalls(output=msgspec.msgpack.encode(7)), FakeCalls(output=msgspec.msgpack.encode("no"))

    result = await calls_of(world, good).run(await prepared(calls_of(world, good), version))
    assert result.output == msgspec.msgpack.encode(7)
    with pytest.raises(BadOutput):
        await calls_of(world, bad).run(await prepared(calls_of(world, bad), version))


async def test_a_generators_result_is_the_list_of_its_chunks(world: World) -> None:
    """What it raises instead is raised."""
    (version,) = world.deploy(function("tokens", generator()))
    chunks = [ChunkEvent(seq=number, data=msgspec.msgpack.encode(number)) for number in (1, 2)]
    fake = FakeCalls(events=list(chunks))
    calls = calls_of(world, fake)

    assert msgspec.msgpack.decode((await calls.run(await prepared(calls, version))).output) == [1, 2]
    fake.error = FunctionRaised("no")
    with pytest.raises(FunctionRaised):
        await calls.run(await prepared(calls, version))


class Told:
    """A `CallSink`."""

    def __init__(self) -> None:
        self.ended: list[PreparedCall] = []
        self.failed: list[FailedCall] = []

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        assert stages["respond"] >= 0.0
        assert (result.attempts, total_ms) == (1, 0.0)
        self.ended.append(call)

    def call_failed(self, failed: FailedCall) -> None:
        self.failed.append(failed)


async def test_what_becomes_of_a_run_is_told_and_so_is_its_trace(world: World) -> None:
    """It begins one of its own, linked to the request that stored the job; nothing that a function said is told."""
    (version,) = world.deploy(function("hello"))
    told, link = Told(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    for fake in (FakeCalls(), FakeCalls(error=FunctionRaised("hush"))):
        calls = replace(calls_of(world, fake), sampler=TraceSampler(1.0), sinks=(told,))
        record = job(version=version.id, method=next(iter(version.spec.methods)).name, traceparent=link)
        call = await calls.prepare(record, Chosen(version, None, NAMED), b"\x80", 300.0, CallUsage(), start_hook)
        assert (call.link, call.traceparent) == (link, SAMPLED_HERE)
        with contextlib.suppress(FunctionRaised):
            await calls.run(call)
    assert (len(told.ended), [(one.code, one.detail) for one in told.failed]) == (1, [("function_raised", "")])


@pytest.mark.parametrize(("caller", "is_told"), [("acme", True), ("other", False)])
async def test_why_a_container_died_is_told_to_its_owner_alone(world: World, caller: str, is_told: bool) -> None:
    """What is kept of a run is shown to whoever called: of a shared function that is another tenant."""
    (version,) = world.deploy(function("hello"))
    told = Told()
    calls = replace(calls_of(world, FakeCalls(error=ContainerDied("It died: the owner's words."))), sinks=(told,))
    record = job(tenant=caller, version=version.id, method=next(iter(version.spec.methods)).name)
    call = await calls.prepare(record, Chosen(version, None, NAMED), b"\x80", 300.0, CallUsage(), start_hook)
    with pytest.raises(ContainerDied, match="the owner's words"):
        await calls.run(call)
    (failed,) = told.failed
    assert ("the owner's words" in failed.detail) is is_told
