"""How many bytes a tenant has in the blob store."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest

from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model.errors import QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.deploys.blob_usage import KNOWN_FOR_S, LEAST_BYTES, BlobUsage, within_quota
from tests.gateway.world import World


async def put(blobs: MemoryBlobs, tenant: str, content: bytes) -> None:
    await blobs.put(tenant, hashlib.sha256(content).hexdigest(), content)


async def test_a_tenants_bytes_are_counted_again_after_a_while() -> None:
    """Each blob counts a block at least; uploads here are added meanwhile."""
    blobs, now = MemoryBlobs(), [0.0]
    usage = BlobUsage(blobs, lambda: now[0])
    await put(blobs, "acme", b"x")
    await put(blobs, "acme", b"x" * 10_000)
    await put(blobs, "rival", b"x" * 10**6)
    assert await usage.of("acme") == LEAST_BYTES + 10_000

    usage.add("acme", 5_000)
    blobs.kept.clear()
    assert await usage.of("acme") == LEAST_BYTES + 15_000
    now[0] += KNOWN_FOR_S
    assert await usage.of("acme") == 0


async def test_an_upload_is_cut_off_where_it_exceeds_the_limit() -> None:
    """Whatever it announced."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 5_000

    assert [len(piece) async for piece in within_quota(pieces(), "acme", 20_000, 5_000)] == [5_000] * 3
    cut = within_quota(pieces(), "acme", 19_999, 5_000)
    assert [len(await anext(cut)) for _ in range(2)] == [5_000] * 2
    with pytest.raises(QuotaExceeded, match=r"acme may have 19999 bytes of files \(the limit blob_bytes\)"):
        await anext(cut)
    assert len([piece async for piece in within_quota(pieces(), "acme", None, 10**15)]) == 3


async def test_a_tenant_whose_files_fill_its_limit_uploads_no_more(world: World) -> None:
    """It is told which limit; others are not concerned."""
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(blob_bytes=10_000))
    first, second = b"a" * 9_000, b"b"
    async with world.client() as client:
        assert (await client.put(f"/v1/blobs/{hashlib.sha256(first).hexdigest()}", content=first)).status_code == 201
        full = await client.put(f"/v1/blobs/{hashlib.sha256(second).hexdigest()}", content=second)
    assert (full.status_code, full.json()["code"], full.json()["limits"][0]["limit"]) == (
        403, "quota_exceeded", "blob_bytes",
    )  # fmt: skip
    assert len(world.blobs.kept) == 1
    async with world.client(world.add_key("rival", "admin")) as client:
        assert (await client.put(f"/v1/blobs/{hashlib.sha256(second).hexdigest()}", content=second)).status_code == 201
