"""Schemas that are too large for the registry: a record without them, and calls that are checked all the same."""

from __future__ import annotations

import asyncio
import weakref

import msgspec
import pytest

from pilotlight_core.host.blobs import BlobsDown, MemoryBlobs
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.errors import BadOutput
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.spec import MethodSpec, VersionRecord
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.deploys.deploy_plan import SCHEMA_BYTES_IN_RECORD
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.schemas.version_schemas import READS_AT_A_TIME, VersionSchemas
from pilotlight_gateway.tenancy.auth import Principal
from tests.builders.specs import method
from tests.gateway.jobs.test_job_calls import calls_of, prepared
from tests.gateway.world import World, entry, function
from tests.waiting import until

ACME = Principal(tenant="acme", key_id="key1", scopes=frozenset({"deploy"}))
CALLS = "/v1/functions/shop.hello/calls"
DESCRIPTION = "x" * 60_000


class HangingBlobs(MemoryBlobs):
    """Those of another store, which are read while `go` is set."""

    def __init__(self, blobs: MemoryBlobs) -> None:
        super().__init__()
        self.kept = blobs.kept
        self.go = asyncio.Event()
        self.reading = 0

    async def read(self, tenant: str, sha256: str) -> bytes:
        self.reading += 1
        try:
            await self.go.wait()
            return await super().read(tenant, sha256)
        finally:
            self.reading -= 1


def large_method() -> MethodSpec:
    """Takes a `name` and answers with an integer, which it says at length."""
    return method(
        attribute="hello",
        input_schema={
            "type": "object",
            "properties": {"name": {"type": "string", "description": DESCRIPTION}},
            "required": ["name"],
            "additionalProperties": False,
        },
        output_schema={"type": "integer"},
    )


async def deployed(world: World, *methods: MethodSpec) -> VersionRecord:
    """The record that a deploy of a function with those methods leaves."""
    await world.blobs.put("acme", entry(b"one").sha256, b"one")
    request = DeployRequest(functions=(DeployFunction(spec=function("hello", *methods)),), files=(entry(b"one"),))
    answer = await world.services.deployer.deploy(ACME, "shop", request)
    return world.registry.versions[answer.functions[0].version_id]


async def test_the_record_of_large_schemas_is_small(world: World) -> None:
    """All else of the spec is there, and the whole one comes from the manifest."""
    record = await deployed(world, large_method())

    assert len(msgspec.msgpack.encode(record)) < 1_500
    assert record.schemas_apart
    assert [(one.attribute, one.input_schema) for one in record.spec.methods] == [("hello", {})]
    whole = await VersionSchemas(world.blobs).whole(record)
    assert whole.spec == function("hello", large_method())
    assert await world.services.resolver.resolve("acme", "shop.hello") == record


async def test_small_schemas_stay_in_the_record(world: World) -> None:
    """Up to the bound, so that most calls never wait for the blob store."""
    small = method(attribute="hello", input_schema={"description": "x" * (SCHEMA_BYTES_IN_RECORD - 30)})
    record = await deployed(world, small)

    assert (record.schemas_apart, record.spec.methods) == (False, (small,))
    large = method(attribute="hello", input_schema={"description": "x" * SCHEMA_BYTES_IN_RECORD})
    assert (await deployed(world, large)).schemas_apart


async def test_calls_and_documents_go_by_the_large_schemas(world: World) -> None:
    """A wrong argument is refused by its name, and the function's document says what is taken."""
    await deployed(world, large_method())
    async with world.client() as client:
        refused = await client.post(CALLS, json={"input": {"name": 7}})
        document = (await client.get("/v1/functions/shop.hello/openapi.json")).text

    assert (refused.status_code, refused.json()["field"]) == (422, "input.name")
    assert DESCRIPTION in document


async def test_what_a_job_answers_is_held_to_the_large_schemas(world: World) -> None:
    """It reads its version by id, long after it was checked."""
    record = await deployed(world, large_method())
    jobs = calls_of(world, FakeCalls(output=msgspec.msgpack.encode("no integer")))
    version = world.registry.versions[record.id]

    with pytest.raises(BadOutput):
        await jobs.run(await prepared(jobs, version))


async def test_a_lost_manifest_is_the_platforms_fault(world: World) -> None:
    """Whoever calls may try again; nothing passes unchecked."""
    record = await deployed(world, large_method())
    await world.blobs.delete("acme", record.manifest_sha256)

    with pytest.raises(BlobsDown, match=r"lacks the manifest of shop\.hello@v1"):
        await VersionSchemas(world.blobs).whole(record)
    async with world.client() as client:
        refused = await client.post(CALLS, json={"input": {"name": "Ada"}})
    assert refused.status_code == 503


async def test_a_store_that_hangs_is_waited_for_briefly(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long its own patience is; the next call reads anew."""
    record = await deployed(world, large_method())
    schemas = VersionSchemas(slow := HangingBlobs(world.blobs))
    monkeypatch.setattr("pilotlight_gateway.schemas.version_schemas.READ_S", 0.05)
    with pytest.raises(BlobsDown, match=r"manifest of shop\.hello@v1 could not be read within 0\.05 s"):
        await schemas.whole(record)
    await until(lambda: not slow.reading)
    slow.go.set()
    assert (await schemas.whole(record)).spec.methods == (large_method(),)


async def test_few_are_read_at_a_time(world: World) -> None:
    """However many versions are called at once."""
    schemas = VersionSchemas(slow := HangingBlobs(world.blobs))
    record = await deployed(world, large_method())
    asked = [
        asyncio.create_task(schemas.whole(msgspec.structs.replace(record, manifest_sha256=f"{number:064x}")))
        for number in range(3 * READS_AT_A_TIME)
    ]
    await until(lambda: slow.reading == READS_AT_A_TIME)
    await asyncio.sleep(0.01)
    assert slow.reading == READS_AT_A_TIME
    slow.go.set()
    assert {type(outcome) for outcome in await asyncio.gather(*asked, return_exceptions=True)} == {BlobsDown}


async def test_calls_that_are_open_share_the_schemas(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the cache has no room for them: what a call holds is not made a second time, nor kept after it."""
    monkeypatch.setattr("pilotlight_gateway.schemas.version_schemas.SCHEMA_BYTES_KEPT", 1)
    record = await deployed(world, large_method())
    schemas = VersionSchemas(world.blobs)

    first, second = [await schemas.method(record, "") for _ in range(2)]
    assert first is second
    held = weakref.ref(first)
    del first, second
    await until(lambda: held() is None)


async def test_an_open_call_holds_its_method_alone(world: World) -> None:
    """The schemas of a function's other methods are in nobody's way."""
    await deployed(world, large_method())
    async with world.client() as client:
        await client.post(CALLS, json={"input": {"name": "Ada"}})

    (call,) = world.calls.seen
    assert call.method == large_method()
    assert [one.input_schema for one in call.version.spec.methods] == [{}]


async def test_a_call_that_is_refused_reads_no_schemas(world: World) -> None:
    """Reading them costs more than refusing."""
    await world.blobs.delete("acme", (await deployed(world, large_method())).manifest_sha256)
    one = EffectiveLimits(tenant=Limits(requests_per_s=0.001, burst=1.0), function=NO_LIMITS)
    policy = policy_of(one, "acme:shop.hello")
    world.services.limits = MemoryLimiter(lambda *_: policy)
    async with world.client() as client:
        answers = [await client.post(CALLS, json={"input": {"name": "Ada"}}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [503, 429]
