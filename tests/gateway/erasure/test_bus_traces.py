"""What the bus has of a tenant goes, and nothing of another's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pilotlight_core.bus import Bus, bus_users, connect
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model import subjects
from pilotlight_core.model.tenancy import FunctionShareRecord, KeyRecord
from pilotlight_gateway.erasure.bus_traces import (
    ANSWERS,
    CURVES,
    FOLLOWED,
    KEYS,
    PURGED,
    SECRETS,
    SHARES,
    TRUST,
    VERSIONS,
    BusTraces,
)
from pilotlight_gateway.idempotency.key_record import CallOwner, begun, place_of
from pilotlight_supervisor.embedded_bus import EmbeddedNats, embedded_nats

pack = msgspec.msgpack.encode
TENANTS = ("acme", "acme-2")


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[EmbeddedNats]:
    async with embedded_nats(tmp_path) as server:
        yield server


@pytest.fixture
async def operator(server: EmbeddedNats) -> AsyncIterator[Bus]:
    user = bus_users.operator()
    async with connect(server.url_of(user.name), name="operator", inbox=user.inbox) as bus:
        for tenant in TENANTS:
            await fill(bus, tenant)
        yield bus


@pytest.fixture
async def gateway(server: EmbeddedNats, operator: Bus) -> AsyncIterator[Bus]:
    """With a gateway's rights."""
    user = bus_users.gateway()
    async with connect(server.url_of(user.name), name="gateway", inbox=user.inbox) as bus:
        yield bus


async def fill(bus: Bus, tenant: str) -> None:
    """One of everything."""
    for bucket, keys in FOLLOWED.values():
        await bus.kv(bucket).put(keys.format(tenant=tenant).replace("*", "one").replace(">", "one.two"), b"x")
    for stream, subject in PURGED.values():
        named = subject.format(tenant=tenant).replace("*", "one").replace(">", "one.two")
        await bus.jetstream.store(named, b"x", message_id=f"{stream}{named}")
    tenancy, registry = bus.kv(subjects.TENANCY_BUCKET), bus.kv(subjects.REGISTRY_BUCKET)
    await tenancy.put(f"key.of-{tenant}", pack({"id": "x", "tenant": tenant}))
    await tenancy.put(f"tenant.{tenant}", pack({"name": tenant, "tenant": tenant}))
    await tenancy.put(f"credit.{tenant}", pack({"tenant": tenant}))
    await registry.put(f"version.of-{tenant}", pack({"id": "x", "tenant": tenant}))
    await registry.put(f"curves.of-{tenant}", b"\x80")
    await registry.put(f"verdict.of-{tenant}", b"\x80")
    await bus.kv(subjects.PLATFORM_BUCKET).put(f"trust.{tenant}", b"x")
    await bus.kv(subjects.SECRET_BUCKET).put(f"secret.{tenant}.token", b"sealed")
    first = begun(b"f", "call_1", CallOwner(name="g", instance="1"), at=1.0, timeout_s=1.0, tenant=tenant)
    await bus.kv(subjects.IDEMPOTENCY_BUCKET).put(place_of(tenant, "k"), pack(first))
    share = FunctionShareRecord(tenant="owner", app="llm", grants=dict.fromkeys(TENANTS, ()))
    await registry.put("share.owner.llm", pack(share))
    await bus.jetstream.store(subjects.usage("local", "n1", tenant), b"x", message_id=f"usage{tenant}")
    await bus.jetstream.store(subjects.audit("local", tenant), b"x", message_id=f"audit{tenant}")


async def test_revoked_and_mapped_certificates_of_an_erased_tenant_stay_worthless(gateway: Bus) -> None:
    """Since the holder may be mapped to another tenant later; nothing else of the mapping stays."""
    kv = gateway.kv(subjects.TENANCY_BUCKET)
    mapped = KeyRecord(id="c1", tenant="acme", sha256="", scopes=("admin",), created_at=1.0, label="x", certificate="h")
    revoked = replace(mapped, id="c2", revoked=True, revoked_at=5.0)
    for record in (mapped, revoked):
        await kv.put(f"key.{record.id}", pack(record))
    assert (await BusTraces(gateway, lambda: 9.0).erase("acme"))[KEYS] == 3

    for record, at in ((mapped, 9.0), (revoked, 5.0)):
        entry = await kv.get(f"key.{record.id}")
        assert entry is not None
        left = msgspec.msgpack.decode(entry.value, type=KeyRecord)
        assert left == replace(record, tenant="", scopes=(), label="", revoked=True, revoked_at=at)
    assert KEYS not in await BusTraces(gateway).count("acme")


COUNTED = {*FOLLOWED, *PURGED, KEYS, VERSIONS, SHARES, SECRETS, TRUST}


async def test_everything_is_counted(gateway: Bus) -> None:
    """Once, but for what it takes long to look through."""
    assert await BusTraces(gateway).count("acme") == dict.fromkeys(COUNTED, 1)
    assert await BusTraces(gateway).count("nobody") == {}


async def everything(bus: Bus) -> set[str]:
    """All subjects that have a record, which is no marker."""
    found = set[str]()
    for stream in (
        *(bucket_stream(bucket) for bucket in (
            subjects.TENANCY_BUCKET, subjects.REGISTRY_BUCKET, subjects.BATCH_BUCKET, subjects.WEBHOOK_BUCKET,
            subjects.BUDGET_BUCKET, subjects.JOB_BUCKET, subjects.DELIVERY_BUCKET, subjects.SCALING_BUCKET,
            subjects.SECRET_BUCKET, subjects.IDEMPOTENCY_BUCKET, subjects.PLATFORM_BUCKET,
        )),
        subjects.JOB_STREAM, subjects.LOGS_STREAM, subjects.USAGE_STREAM, subjects.AUDIT_STREAM,
    ):  # fmt: skip
        page = await bus.jetstream.page(stream, ">", 1)
        found |= {record.subject for record in page.records if not record.gone}
    return found


async def test_everything_goes_but_what_stays(gateway: Bus, operator: Bus) -> None:
    """With a gateway's rights: the tenant's own record, its credits, usage and audit log stay, and all of another's."""
    before = await everything(operator)
    found = await BusTraces(gateway).erase("acme")
    after = await everything(operator)

    assert found == dict.fromkeys(COUNTED | {CURVES, ANSWERS}, 1)
    kept = {
        key_subject(subjects.TENANCY_BUCKET, "tenant.acme"), key_subject(subjects.TENANCY_BUCKET, "credit.acme"),
        subjects.usage("local", "n1", "acme"), subjects.audit("local", "acme"),
    }  # fmt: skip
    others = {name for name in before if "acme-2" in name or name.startswith("$KV.REGISTRY.share.owner")}
    answer = key_subject(subjects.IDEMPOTENCY_BUCKET, place_of("acme-2", "k"))
    assert after == kept | others | {answer}
    share = await operator.kv(subjects.REGISTRY_BUCKET).get("share.owner.llm")
    assert share is not None
    assert set(msgspec.msgpack.decode(share.value, type=FunctionShareRecord).grants) == {"acme-2"}


async def test_a_repetition_finds_nothing(gateway: Bus) -> None:
    """However often."""
    await BusTraces(gateway).erase("acme")
    assert await BusTraces(gateway).erase("acme") == {}
    assert await BusTraces(gateway).count("acme") == {}
    assert (await BusTraces(gateway).count("acme-2"))[KEYS] == 1
