"""Records in two buckets: the platform's own can be written when tenants' deploys have filled theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_core.bus import Bus, StoreRefused, StreamLimits, connect
from pilotlight_core.host.registry import Registry, TenantRecord
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.ids import token
from pilotlight_core.model.spec import AppRecord
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.builders.specs import function_spec, version_record


async def fill(registry: Registry) -> None:
    for number in range(100):
        record = AppRecord(tenant="greedy", app=f"app{number}", revision=1, functions={"f": "v" * 10_000})
        await registry.deploy(record, 0)


async def test_a_full_bucket_of_deploys_leaves_tenants_and_keys_alone(tmp_path: Path) -> None:
    """Nobody's deploys keep a tenant, a key or a limit from being written."""
    limits = StreamLimits(registry_bytes=100_000)
    async with (
        embedded_nats(tmp_path) as server,
        connect(server.url, name="x", limits=limits) as bus,
        Registry(bus) as registry,
    ):
        with pytest.raises(StoreRefused):
            await fill(registry)

        await registry.put_tenant(TenantRecord(name="late", created_at=1.0))

        assert registry.tenant_nowait("late") is not None


async def test_it_counts_the_bytes_of_what_a_tenant_has_deployed(bus: Bus) -> None:
    """Apps, versions and their curves; what is replaced or removed counts no more."""
    tenant = token()
    async with Registry(bus) as registry:
        assert registry.bytes_of(tenant) == 0
        version = version_record(function_spec("f"), id=f"ver_{token()}", tenant=tenant, app="shop")
        await registry.put_version(version)
        of_version = registry.bytes_of(tenant)
        assert of_version > 100
        await registry.change_curves(version.id, lambda _: CurvesRecord(version=version.id))
        assert registry.bytes_of(tenant) > of_version
        with_curves = registry.bytes_of(tenant)

        record = AppRecord(tenant=tenant, app="shop", revision=1, functions={"f": "v" * 1_000})
        await registry.deploy(record, 0)
        assert 1_000 < registry.bytes_of(tenant) - with_curves < 1_200
        await registry.deploy(AppRecord(tenant=tenant, app="shop", revision=2, functions={}), 1)
        assert registry.bytes_of(tenant) - with_curves < 200
        assert registry.bytes_of(token()) == 0
