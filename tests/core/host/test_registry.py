"""The registry: typed records, compare-and-set deploys, read-through."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.host.registry import FunctionShareRecord, KeyRecord, LimitsRecord, Registry, TenantRecord
from pilotlight_core.model.api.curve_api import CurvesRecord
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import Limits, Tier
from pilotlight_core.model.records.files import FileRecord
from pilotlight_core.model.served.model_records import ModelRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.builders.pools import launch, pool
from tests.builders.specs import function_spec, version_record
from tests.waiting import until


@pytest.fixture
async def registry(bus: Bus) -> AsyncIterator[Registry]:
    async with Registry(bus) as registry:
        yield registry


@pytest.fixture
async def elsewhere(other: Bus) -> AsyncIterator[Registry]:
    """The registry as another process sees it."""
    async with Registry(other) as registry:
        yield registry


def version(tenant: str, app: str = "hello", function: str = "greet") -> VersionRecord:
    return version_record(function_spec(function), id=f"ver_{token()}", tenant=tenant, app=app)


def curves_of(version_id: str, _: CurvesRecord | None) -> CurvesRecord:
    return CurvesRecord(version=version_id)


def shared(tenant: str, app: str, _: FunctionShareRecord | None) -> FunctionShareRecord:
    return FunctionShareRecord(tenant=tenant, app=app, grants={"*": ()})


async def test_records_are_seen_at_once_here_and_soon_elsewhere(registry: Registry, elsewhere: Registry) -> None:
    """The writer's own memory has the record when the write returns; the others' follow."""
    name = token()
    tenant = TenantRecord(name=name, created_at=1.0)
    key = KeyRecord(id=f"k{name}", tenant=name, sha256="00", scopes=("admin",), created_at=1.0, expires_at=2.0)

    await registry.put_tenant(tenant)
    await registry.put_key(key)

    assert registry.tenant_nowait(name) == tenant
    assert list(registry.keys(name)) == [key]
    await until(lambda: elsewhere.key_nowait(key.id) is not None)
    assert elsewhere.key_nowait(key.id) == key
    assert tenant in list(elsewhere.tenants())


async def test_a_tenant_that_was_erased_is_known_as_such(registry: Registry, elsewhere: Registry) -> None:
    """Everywhere; one that is planned for, or unknown, is not."""
    name, planned = token(), token()
    await registry.put_tenant(TenantRecord(name=name, created_at=1.0, disabled=True, erasing="x", erased_at=2.0))
    await registry.put_tenant(TenantRecord(name=planned, created_at=1.0, disabled=True, erasing="x"))

    await until(lambda: elsewhere.is_erased(name))
    assert registry.is_erased(name)
    assert not registry.is_erased(planned)
    assert not registry.is_erased(token())


async def test_a_miss_is_read_through(registry: Registry, elsewhere: Registry) -> None:
    """The async methods find records that memory lacks, and return None for missing ones."""
    name = token()
    await registry.put_tenant(TenantRecord(name=name, created_at=1.0))

    found = await elsewhere.tenant(name)

    assert found is not None
    assert found.name == name
    assert await elsewhere.tenant(token()) is None
    assert await elsewhere.key(token()) is None
    assert await elsewhere.fetch_version(f"ver_{token()}") is None


async def test_a_version_is_immutable(registry: Registry, elsewhere: Registry) -> None:
    """The same version may be kept again; its id can never stand for something else."""
    record = version(token())
    await registry.put_version(record)
    await elsewhere.put_version(record)

    kept = registry.version(record.id)
    assert kept is not None
    assert msgspec.structs.replace(kept, renewed_at=0.0) == record
    stranger = version(token())
    with pytest.raises(Conflict):
        await registry.put_version(
            VersionRecord(**{f: getattr(stranger, f) for f in stranger.__struct_fields__} | {"id": record.id})
        )


async def test_an_app_is_deleted_with_all_that_is_its(registry: Registry, elsewhere: Registry) -> None:
    """Its share goes first, so that whoever takes its name next shares with nobody; other apps stay."""
    tenant = token()
    mine, other = version(tenant, "hello"), version(tenant, "other")
    for one in (mine, other):
        await registry.put_version(one)
        await registry.change_curves(one.id, partial(curves_of, one.id))
        app = AppRecord(tenant=tenant, app=one.app, revision=1, functions={"greet": one.id})
        await registry.deploy(app, 0)
        await registry.change_share(tenant, one.app, partial(shared, tenant, one.app))
    seen = await registry.app(tenant, "hello")
    assert seen is not None
    with pytest.raises(Conflict):
        await elsewhere.delete_app(msgspec.structs.replace(seen, revision=7))

    await registry.delete_app(seen)

    assert [app.app for app in registry.iter_apps(tenant)] == ["other"]
    assert [one.id for one in registry.versions(tenant)] == [other.id]
    assert registry.curves(mine.id) is None
    assert registry.curves(other.id) is not None
    assert await elsewhere.share(tenant, "hello") is None
    assert await elsewhere.share(tenant, "other") is not None
    await registry.deploy(AppRecord(tenant=tenant, app="hello", revision=1, functions={}), 0)


async def test_an_app_that_is_changed_while_it_is_deleted_keeps_its_share(
    registry: Registry, elsewhere: Registry
) -> None:
    """As a run that is renewed, or one whose name is taken anew after another gateway deleted it."""
    tenant = token()
    app = AppRecord(tenant=tenant, app="hello", revision=1, functions={})
    await registry.deploy(app, 0)
    await registry.change_share(tenant, "hello", partial(shared, tenant, "hello"))
    read, changed = elsewhere._records.read, msgspec.structs.replace(app, revision=2)

    async def read_early(key: str, cls: type[Any]) -> tuple[Any, int]:
        found = await read(key, cls)
        if key.startswith("app.") and registry.app_nowait(tenant, "hello") == app:
            await registry.deploy(changed, 1)
        return found

    elsewhere._records.read = read_early  # type: ignore[method-assign]
    with pytest.raises(Conflict):
        await elsewhere.delete_app(app)

    assert await registry.app(tenant, "hello") == changed
    assert await registry.share(tenant, "hello") is not None


async def test_a_version_that_is_deployed_anew_while_its_app_is_deleted_stays(
    bus: Bus, registry: Registry, elsewhere: Registry
) -> None:
    """The deploy that finds no app stores it again, so the delete is of a record that is not there any more."""
    tenant = token()
    record = version(tenant, "hello")
    await registry.put_version(record)
    await until(lambda: elsewhere.version(record.id) is not None)
    app = AppRecord(tenant=tenant, app="hello", revision=1, functions={"greet": record.id})
    await registry.deploy(app, 0)
    remove = elsewhere._records.remove

    async def remove_late(key: str, revision: int | None = None) -> None:
        await remove(key, revision)
        if key.startswith("app."):
            await registry.put_version(record)
            await registry.deploy(app, 0)

    elsewhere._records.remove = remove_late  # type: ignore[method-assign]
    await elsewhere.delete_app(app)

    async with Registry(bus) as anew:
        assert anew.version(record.id) is not None


async def test_a_deploy_follows_what_it_has_seen(registry: Registry, elsewhere: Registry) -> None:
    """Of two deploys that follow the same state one is refused, and then sees what the other did."""
    tenant = token()
    await registry.deploy(AppRecord(tenant=tenant, app="a", revision=1, functions={}), expected_revision=0)

    results = await asyncio.gather(
        registry.deploy(AppRecord(tenant=tenant, app="a", revision=2, functions={"f": "x"}), expected_revision=1),
        elsewhere.deploy(AppRecord(tenant=tenant, app="a", revision=2, functions={"f": "y"}), expected_revision=1),
        return_exceptions=True,
    )

    assert [type(result) for result in results if result is not None] == [Conflict]
    assert registry.app_nowait(tenant, "a") == await elsewhere.app(tenant, "a") == await registry.app(tenant, "a")
    with pytest.raises(Conflict):
        await registry.deploy(AppRecord(tenant=tenant, app="a", revision=1, functions={}), expected_revision=0)


async def test_a_revision_must_be_the_next(registry: Registry) -> None:
    """Otherwise two writers could both believe that they followed the same state."""
    with pytest.raises(ValueError, match="does not follow"):
        await registry.deploy(AppRecord(tenant=token(), app="a", revision=5, functions={}), expected_revision=1)


async def test_apps_are_listed_by_tenant(registry: Registry) -> None:
    """Of one tenant, or of all."""
    one, two = token(), token()
    for tenant in (one, two):
        await registry.deploy(AppRecord(tenant=tenant, app="a", revision=1, functions={}), 0)

    assert [app.tenant for app in registry.iter_apps(one)] == [one]
    assert {one, two} <= {app.tenant for app in registry.iter_apps()}


async def test_of_two_changes_at_once_none_is_lost(registry: Registry, elsewhere: Registry) -> None:
    """After a conflict the change is applied to the new record."""
    tenant = token()

    def adding(name: str) -> Callable[[LimitsRecord | None], LimitsRecord]:
        def change(present: LimitsRecord | None) -> LimitsRecord:
            record = present or LimitsRecord(tenant=tenant)
            return msgspec.structs.replace(record, functions=record.functions | {name: Limits(concurrency=1)})

        return change

    names = [f"f{number}" for number in range(4)]
    await asyncio.gather(
        *(
            where.change_limits(tenant, adding(name))
            for name, where in zip(names, (registry, elsewhere) * 2, strict=True)
        )
    )

    found = await registry.limits_set(tenant)
    assert found is not None
    assert sorted(found.functions) == names
    assert found == await elsewhere.limits_set(tenant)


async def test_a_change_that_refuses_writes_nothing(registry: Registry) -> None:
    """What the function raises comes out; what it leaves as it was is not written; None removes."""
    name = token()

    def refuse(present: TenantRecord | None) -> TenantRecord:
        raise NotFound("No.")

    with pytest.raises(NotFound):
        await registry.change_tenant(name, refuse)
    assert await registry.tenant(name) is None
    assert await registry.change_tier(name, lambda present: present) is None
    await registry.change_tier(name, lambda _: Tier(name=name, rank=50))
    assert registry.tier(name) == Tier(name=name, rank=50)
    assert await registry.change_tier(name, lambda _: None) is None
    assert registry.tier(name) is None


async def test_limits_and_tiers_follow_elsewhere(registry: Registry, elsewhere: Registry) -> None:
    """What one process sets holds in all, without their asking."""
    name, function = token(), "acme:a.f"
    await registry.put_tenant(TenantRecord(name=name, created_at=1.0, tier="free"))
    await until(lambda: elsewhere.tier_of(name).name == "free" and elsewhere.tenant_nowait(name))
    assert elsewhere.limits(name, function).tenant.concurrency == 10

    await registry.change_limits(name, lambda _: LimitsRecord(tenant=name, limits=Limits(concurrency=3)))
    await until(lambda: elsewhere.limits(name, function).tenant.concurrency == 3)
    await registry.change_tenant(name, lambda _: TenantRecord(name=name, created_at=1.0, tier="enterprise", weight=2.0))
    await until(lambda: elsewhere.weight_of(name) == 32.0)

    assert elsewhere.limits(name, function).tenant == Limits(concurrency=3)
    assert elsewhere.tier_configured("free") == next(tier for tier in elsewhere.tiers() if tier.name == "free")


async def test_shares_are_records_of_their_own(registry: Registry, elsewhere: Registry) -> None:
    """They outlive deploys of the app, and are asked for at the bus."""
    owner = token()
    record = FunctionShareRecord(tenant=owner, app="a", grants={"rival": ("f",)})
    await registry.change_share(owner, "a", lambda _: record)

    assert registry.share_nowait(owner, "a") == await elsewhere.share(owner, "a") == record
    assert record in list(elsewhere.shares())
    assert await registry.share(owner, "b") is None


async def test_changes_are_told(registry: Registry, elsewhere: Registry) -> None:
    """A listener gets each record that changes, with its key."""
    name, heard = token(), []
    registry.on_change.append(lambda key, record: heard.append((key, record)))

    await elsewhere.put_tenant(TenantRecord(name=name, created_at=1.0))
    await until(lambda: heard)

    assert heard == [(f"tenant.{name}", TenantRecord(name=name, created_at=1.0))]


async def test_names_are_checked(registry: Registry) -> None:
    """What is no name never becomes a key."""
    with pytest.raises(BadInput):
        await registry.put_tenant(TenantRecord(name="a.b", created_at=1.0))


async def test_an_unreadable_record_is_as_if_it_were_not_there(bus: Bus, registry: Registry) -> None:
    """It is logged; the others stay readable."""
    key = f"tenant.{token()}"
    await bus.kv("TENANCY").put(key, b"\xc1")

    assert await registry.tenant(key.partition(".")[2]) is None
    assert registry.fresh()


async def test_what_a_later_release_wrote_is_not_written_over(bus: Bus, registry: Registry) -> None:
    """A change of what cannot be read would begin from nothing, and lose it."""
    name = token()
    record = msgspec.msgpack.encode({"tenant": name, "limits": {"requests_per_s": "as many as fit"}})
    await bus.kv("TENANCY").put(f"limits.{name}", record)

    with pytest.raises(Conflict, match="later release"):
        await registry.change_limits(name, lambda _: LimitsRecord(tenant=name))

    entry = await bus.kv("TENANCY").get(f"limits.{name}")
    assert entry is not None
    assert entry.value == record


async def test_a_version_that_is_stored_anew_has_what_its_first_writer_did_not_know(registry: Registry) -> None:
    """A gateway of 0.1 knows neither base environments nor features nor artifacts; another one has another key."""
    first = version(token())
    await registry.put_version(first)
    changes = {"base": "torch", "needs": ("artifacts",), "created_at": 5.0, "manifest_sha256": "f" * 64}

    await registry.put_version(msgspec.structs.replace(first, **changes))

    stored = registry.version(first.id)
    assert stored is not None
    assert (stored.base, stored.needs, stored.created_at, stored.renewed_at) == ("torch", ("artifacts",), 0.0, 5.0)
    assert stored.manifest_sha256 == "f" * 64


async def test_without_contact_it_grows_stale(tmp_path: Path) -> None:
    """Without the bus the registry still answers, but is not fresh after 30 s."""
    async with embedded_nats(tmp_path) as server, connect(server.url, name="x") as bus, Registry(bus) as registry:
        await registry.put_tenant(TenantRecord(name="t", created_at=1.0))
        server.kill()
        await until(lambda: not bus.connected)
        loop = asyncio.get_running_loop()

        assert registry.tenant_nowait("t") is not None
        assert registry.fresh(loop.time())
        assert not registry.fresh(loop.time() + 40)


async def test_pools_and_launches_are_listed_until_they_are_gone(registry: Registry, elsewhere: Registry) -> None:
    """A launch has a place of its own in its pool; the one of another process is seen."""
    name = f"pool-{token(6)}"
    record = pool(name)
    made = await registry.change_pool(name, lambda _: record)
    assert made == record == await elsewhere.pool(name)
    first = launch(1, record)
    await registry.change_launch(name, 1, lambda _: first)
    await until(lambda: first in elsewhere.launches())
    assert record in list(elsewhere.pools())
    await elsewhere.change_launch(name, 1, lambda _: None)
    await elsewhere.change_pool(name, lambda _: None)
    await until(lambda: first not in registry.launches() and record not in registry.pools())


async def test_names_of_models_go_with_their_app_unless_another_has_them(
    registry: Registry, elsewhere: Registry
) -> None:
    """They are read through, found by any name, and are their tenant's own."""
    tenant = token()

    def claim(name: str, app: str, _: ModelRecord | None) -> ModelRecord:
        return ModelRecord(tenant=tenant, name=name, app=app, function="f", created_at=1.0, claimed_at=1.0)

    await registry.deploy(AppRecord(tenant=tenant, app="chat", revision=1, functions={}), 0)
    for name, app in (("acme/tiny:8b", "chat"), ("acme/other", "rest")):
        await registry.change_model(tenant, name, partial(claim, name, app))
    found = await elsewhere.model(tenant, "acme/tiny:8b")
    assert found is not None
    assert found.ref == "chat.f"
    assert await elsewhere.model(token(), "acme/tiny:8b") is None
    assert {one.name for one in registry.iter_models(tenant)} == {"acme/tiny:8b", "acme/other"}

    record = registry.app_nowait(tenant, "chat")
    assert record is not None
    await registry.delete_app(record)

    assert {one.name for one in registry.iter_models(tenant)} == {"acme/other"}
    assert registry.model_nowait(tenant, "acme/tiny:8b") is None


async def test_files_are_records_of_their_tenant(registry: Registry, elsewhere: Registry) -> None:
    """They count in the bytes of its records, and are read from the bus."""
    tenant, file_id = token(), f"file-{token()}"
    record = FileRecord(
        tenant=tenant, id=file_id, name="in", purpose="batch", size=1, created_at=1.0, expires_at=2.0, by="k", parts=()
    )
    await registry.change_file(tenant, file_id, lambda _: record)
    assert await elsewhere.file(tenant, file_id) == record
    assert await elsewhere.file(token(), file_id) is None
    assert registry.bytes_of(tenant) > 0
    await elsewhere.change_file(tenant, file_id, lambda _: None)
    await until(lambda: not list(registry.iter_files(tenant)))
