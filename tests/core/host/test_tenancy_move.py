"""Records of tenants move into their own bucket, once, and never backwards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import DEFAULT_LIMITS, Bus, connect
from pilotlight_core.bus.streams import stream_configs
from pilotlight_core.host.registry import KeyRecord, Registry, TenantRecord
from pilotlight_core.host.tenancy_move import move_tenancy
from pilotlight_core.model.spec import AppRecord
from pilotlight_supervisor.embedded_bus import embedded_nats

TENANT = TenantRecord(name="acme", created_at=1.0)
KEY = KeyRecord(id="k1234567", tenant="acme", sha256="00", scopes=("admin",), created_at=1.0)
APP = AppRecord(tenant="acme", app="shop", revision=1, functions={})


@pytest.fixture
async def earlier(tmp_path: Path) -> AsyncIterator[Bus]:
    """A bus as an earlier version has left it."""
    (config,) = (one for one in stream_configs(DEFAULT_LIMITS) if one["name"] == "KV_REGISTRY")
    without = {name: value for name, value in config.items() if name != "allow_msg_ttl"}
    async with embedded_nats(tmp_path) as server:
        async with connect(server.url, name="earlier", makes_streams=False) as bus:
            await bus.jetstream.ensure_stream(without)
            for key, record in (("tenant.acme", TENANT), ("key.k1234567", KEY), ("app.acme.shop", APP)):
                await bus.kv("REGISTRY").put(key, msgspec.msgpack.encode(record))
        async with connect(server.url, name="gateway") as bus:
            yield bus


async def test_what_an_earlier_version_wrote_is_found(earlier: Bus) -> None:
    """Only what concerns tenants moves; there is nothing left to move afterwards."""
    assert await move_tenancy(earlier) == 2
    assert await move_tenancy(earlier) == 0

    assert await earlier.kv("REGISTRY").keys() == ["app.acme.shop"]
    async with Registry(earlier) as registry:
        assert registry.tenant_nowait("acme") == TENANT
        assert registry.key_nowait("k1234567") == KEY
        assert registry.app_nowait("acme", "shop") == APP


async def test_what_was_changed_since_an_interruption_stays(earlier: Bus) -> None:
    """A key that was moved and then revoked does not come back to life."""
    revoked = msgspec.structs.replace(KEY, revoked=True)
    await earlier.kv("TENANCY").put("key.k1234567", msgspec.msgpack.encode(revoked))

    await move_tenancy(earlier)

    async with Registry(earlier) as registry:
        assert registry.key_nowait("k1234567") == revoked
