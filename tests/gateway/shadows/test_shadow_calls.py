"""One shadow: what it asks for, in whose name, and what it came to."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from pilotlight_core.model.errors import FunctionRaised, NotFound
from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_core.model.spec import Priority, VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.shadows.shadow_calls import ShadowCalls
from tests.builders.specs import method
from tests.gateway.body_codecs import small_codec
from tests.gateway.world import World, function, generator


def shadows_of(world: World, calls: FakeCalls) -> ShadowCalls:
    return ShadowCalls(
        calls=calls,
        registry=world.registry,
        schemas=VersionSchemas(world.blobs),
        codec=small_codec(),
        budget=ByteBudget(limit=10**7),
        clock=lambda: 50.0,
    )


def primary_of(version: VersionRecord) -> PreparedCall:
    return PreparedCall(
        call_id="call_local_1_00000000000000000000", client_id="cid_mine0000", tenant="acme", version=version,
        method=version.spec.methods[0], input=b"\x80", priority=Priority.INTERACTIVE, deadline_at=60.0, arrived_at=49.0,
        stream=False, traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01", key="key_1",
    )  # fmt: skip


async def test_a_shadow_waits_behind_all_others_and_is_tried_once(world: World) -> None:
    """With the input and in the name of the call it repeats, under an id of its own, and marked to the agent."""
    (version,) = world.deploy(function("hello", retries=3, idempotent=True, timeout=10.0, startup_timeout=20.0))
    calls = FakeCalls(output=msgspec.msgpack.encode(7))
    primary = primary_of(version)

    shadowed = await shadows_of(world, calls).run(primary, version.id)

    call = shadowed.call
    assert (call.tenant, call.key, call.input) == (primary.tenant, primary.key, primary.input)
    assert call.call_id != primary.call_id
    assert (call.client_id, call.traceparent, call.usage, call.principal) == (None, "", None, None)
    assert (call.priority, call.deadline_at) == (Priority.BATCH, 80.0)
    assert (call.version.spec.retries, call.version.spec.idempotent) == (0, False)
    grant = Grant(call_id=call.call_id, container="c1", node="n1", instance="i1", epoch=1, grant_number=1)
    assert call.run(grant, 50.0, "gw").shadow
    assert not primary.run(grant, 50.0, "gw").shadow
    assert shadowed.result is not None
    assert shadowed.result.output == msgspec.msgpack.encode(7)


async def test_how_it_failed_is_told_and_not_raised(world: World) -> None:
    promising = method(attribute="hello", output_schema={"type": "integer"})
    (version,) = world.deploy(function("hello", promising))
    raising = await shadows_of(world, FakeCalls(error=FunctionRaised("no"))).run(primary_of(version), version.id)
    breaking = await shadows_of(world, FakeCalls(output=msgspec.msgpack.encode("no"))).run(
        primary_of(version), version.id
    )
    assert [one.error and one.error.wire_code for one in (raising, breaking)] == ["function_raised", "bad_output"]


async def test_a_streams_chunks_are_its_answer(world: World) -> None:
    (version,) = world.deploy(function("count", generator()))
    chunks = [ChunkEvent(seq=n, data=msgspec.msgpack.encode(n)) for n in (1, 2)]
    calls = FakeCalls(events=chunks)
    shadowed = await shadows_of(world, calls).run(primary_of(version), version.id)
    assert shadowed.result is not None
    assert msgspec.msgpack.decode(shadowed.result.output) == [1, 2]
    times = iter((50.0, 50.0, 50.25, 51.0))
    timed = replace(shadows_of(world, calls), clock=lambda: next(times))
    assert (await timed.run(primary_of(version), version.id)).first_ms == 250.0


async def test_a_version_that_is_gone_has_no_shadows(world: World) -> None:
    (version,) = world.deploy(function("hello"))
    with pytest.raises(NotFound):
        await shadows_of(world, FakeCalls()).run(primary_of(version), "ver_gone")
