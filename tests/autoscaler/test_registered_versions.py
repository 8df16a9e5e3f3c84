"""What the registry says of versions, on a real bus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_autoscaler.registered_versions import RegisteredVersions
from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.api.curve_api import Curve, CurvePoint, CurveSource, CurvesRecord
from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from tests.autoscaler.builders import record as version_record
from tests.waiting import until


@pytest.fixture
async def registry(server_url: str) -> AsyncIterator[Registry]:
    """What is deployed in a test goes with it: controllers that others run on this bus would keep its floors."""
    async with connect(server_url, name="registered-versions-test") as bus, Registry(bus) as registry:
        before = {(app.tenant, app.app) for app in registry.iter_apps()}
        yield registry
        for app in list(registry.iter_apps()):
            if (app.tenant, app.app) not in before:
                await registry.delete_app(app)


async def deployed(registry: Registry, tenant: str, *, stopped: bool = False, ends_at: float = 0.0) -> VersionRecord:
    """A version that keeps three containers, deployed as an app of its own."""
    name = f"app{token(6)}"
    version = msgspec.structs.replace(
        version_record(f"ver_{token()}", min_containers=3, max_containers=3), tenant=tenant, app=name
    )
    await registry.put_version(version)
    functions = {"greet": version.id}
    record = AppRecord(tenant=tenant, app=name, revision=1, functions=functions, stopped=stopped, ends_at=ends_at)
    await registry.deploy(record, 0)
    return version


async def test_what_was_stopped_disabled_or_deleted_is_shut_down(registry: Registry) -> None:
    """And is not deployed."""
    good, bad = f"good-{token(6)}", f"bad-{token(6)}"
    await registry.put_tenant(TenantRecord(name=good, created_at=0.0))
    await registry.put_tenant(TenantRecord(name=bad, created_at=0.0, disabled=True))
    serving = await deployed(registry, good)
    stopped = await deployed(registry, good, stopped=True)
    disabled = await deployed(registry, bad)
    orphan = msgspec.structs.replace(version_record(f"ver_{token()}"), tenant=good, app=f"gone{token(6)}")
    await registry.put_version(orphan)
    running, over = await deployed(registry, good, ends_at=101.0), await deployed(registry, good, ends_at=100.0)
    known = RegisteredVersions(registry, wall=lambda: 100.0)
    ids = [serving.id, running.id, over.id, stopped.id, disabled.id, orphan.id, "ver_never_was"]

    records = await known.read(ids)
    shut_down = await known.shut_down(ids, records)

    assert set(records) == set(ids[:6])
    assert shut_down == {
        over.id: "its run has ended",
        stopped.id: "its app is stopped",
        disabled.id: "its tenant is disabled",
        orphan.id: "its app is gone",
        "ver_never_was": "its version is deleted",
    }
    assert known.deployed(ids) == {serving.id, running.id}


async def test_a_run_is_over_when_its_time_is(registry: Registry) -> None:
    """Nobody says so: what else ends an app changes its record."""
    tenant, wall = f"t{token(6)}", [100.0]
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
    run, other = await deployed(registry, tenant, ends_at=150.0), await deployed(registry, tenant)
    known = RegisteredVersions(registry, wall=lambda: wall[0])

    before, wall[0] = known.over(), 150.0

    mine = {run.id, other.id}
    assert (before & mine, known.over() & mine) == (set(), {run.id})


async def test_limits_and_floors_are_the_tenants(registry: Registry) -> None:
    """Its own over its tier's; a floor only as far as they allow."""
    tenant = f"poor-{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0, tier="free"))
    await registry.change_limits(tenant, lambda _: LimitsRecord(tenant=tenant, limits=Limits(floor_containers=2)))
    version = await deployed(registry, tenant)
    known = RegisteredVersions(registry)

    limits = known.limits_of(tenant)

    assert (limits.floor_containers, limits.containers) == (2, registry.tier_of(tenant).limits.containers)
    assert known.floors()[version.id] == 2


async def test_a_floor_comes_and_goes_with_deploys_and_limits(registry: Registry) -> None:
    """What the index was built of is not what there is for ever."""
    tenant = f"poor-{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
    known = RegisteredVersions(registry)
    version = await deployed(registry, tenant)
    assert (known.is_deployed(version.id), known.floors()[version.id]) == (True, 3)

    await registry.change_limits(tenant, lambda _: LimitsRecord(tenant=tenant, limits=Limits(floor_containers=1)))
    assert known.floors()[version.id] == 1

    app = registry.app_nowait(tenant, version.app)
    assert app is not None
    await registry.deploy(msgspec.structs.replace(app, functions={}, revision=2), 1)
    assert (known.is_deployed(version.id), version.id in known.floors()) == (False, False)


async def test_people_s_word_and_warm_windows_bound_a_version(registry: Registry) -> None:
    """From when they are said until they end; a version of which nobody says anything has no entry."""
    tenant, at = f"said-{token(6)}", 100.0
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0, tier="enterprise"))
    version, plain = await deployed(registry, tenant), await deployed(registry, tenant)
    known = RegisteredVersions(registry, wall=lambda: at)
    assert known.bounds([version, plain]) == {}

    override = BoundOverride(value=1, at=at, ends_at=200.0)
    record = ScaleRecord(tenant=tenant, app=version.app, function="greet", min_containers=override)
    await registry.change_scale(tenant, version.app, "greet", lambda _: record)

    assert {name: bounds.least for name, bounds in known.bounds([version, plain]).items()} == {version.id: 1}
    assert (known.floors()[version.id], known.floors()[plain.id]) == (1, 3)
    at = 200.0
    assert known.bounds([version])[version.id].least == 3
    at = 150.0  # the clock was set back
    assert known.bounds([version])[version.id].least == 1
    await registry.change_scale(tenant, version.app, "greet", lambda _: None)
    assert known.bounds([version]) == {}


async def test_an_app_that_is_deleted_takes_people_s_word_along(registry: Registry) -> None:
    """Whoever takes its name next has none of it."""
    tenant = f"gone-{token(6)}"
    version = await deployed(registry, tenant)
    record = ScaleRecord(
        tenant=tenant, app=version.app, function="greet", min_containers=BoundOverride(value=1, at=0.0)
    )
    await registry.change_scale(tenant, version.app, "greet", lambda _: record)
    app = registry.app_nowait(tenant, version.app)
    assert app is not None

    await registry.delete_app(app)

    assert await registry.scale(tenant, version.app, "greet") is None
    assert registry.bytes_of(tenant) == 0


async def test_containers_of_a_warm_window_begin_as_early_as_the_last_start_took(registry: Registry) -> None:
    """Once a start was seen; a trial has none of them."""
    at, took_s = 7 * 3_600.0 - 20.0, dict[str, float]()
    spec = version_record(warm=(Warm("07:00-08:00", 2),)).spec
    version = msgspec.structs.replace(version_record(f"ver_{token()}"), spec=spec, tenant=f"warm-{token(6)}")
    trial = msgspec.structs.replace(
        version, id="ver_trial", spec=msgspec.structs.replace(spec, placing=Placing(slice="T4/whole"))
    )
    known = RegisteredVersions(registry, wall=lambda: at, load_s_of=lambda name: took_s.get(name, 0.0))
    assert known.bounds([version, trial])[version.id].least == 0
    took_s[f"{version.tenant}:hello.greet"] = 19.2
    assert {name: bounds.least for name, bounds in known.bounds([version, trial]).items()} == {version.id: 2}


async def test_a_redeploy_is_noticed_and_leads_to_the_new_version(registry: Registry) -> None:
    """By the name of its function, before anybody calls it; a stopped app has no current version."""
    tenant = f"t{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
    old = await deployed(registry, tenant)
    known = RegisteredVersions(registry, wall=lambda: 100.0)
    known.take_changed()
    function = f"{tenant}:{old.app}.greet"
    assert known.current_of([function, f"{tenant}:{old.app}.other", "nobody:shop.greet"]) == {old.id}

    new = msgspec.structs.replace(old, id=f"ver_{token()}", number=2)
    await registry.put_version(new)
    app = await registry.app(tenant, old.app)
    assert app is not None
    await registry.deploy(msgspec.structs.replace(app, revision=2, functions={"greet": new.id}), 1)
    await until(lambda: known.current_of([function]) == {new.id})
    assert known.take_changed()[0] == {old.id, new.id}
    assert known.take_changed() == (set(), False)

    point = CurvePoint(batch=1, throughput=9.0, p50_ms=1.0, p95_ms=1.0, samples=9)
    curve = Curve(gpu="T4", slice="whole", source=CurveSource.LEARNT, points=(point,))
    await registry.change_curves(old.id, lambda _: CurvesRecord(version=old.id, curves=(curve,)))
    await until(lambda: known.take_changed()[0] == {new.id})  # what the version before it has taught counts too

    await registry.deploy(msgspec.structs.replace(app, revision=3, functions={"greet": new.id}, stopped=True), 2)
    await until(lambda: known.current_of([function]) == set())


async def test_sides_of_a_rollout_are_known_as_long_as_it_runs(registry: Registry) -> None:
    """Also to a controller that starts while it runs."""
    tenant = f"t{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
    old = await deployed(registry, tenant)
    rollout = Rollout(
        id="rol_1", number=1, control={"greet": old.id}, canary={"greet": "ver_new"}, twins={"greet": "ver_twin"},
        salt=b"s" * 32, state=RolloutState.RAMP, step=0, share=100, since=0.0, started_at=0.0, by="key_1",
    )  # fmt: skip
    record = RolloutRecord(tenant=tenant, app=old.app, revision=1, rollout=rollout)
    known = RegisteredVersions(registry)
    known.take_changed()

    await registry.change_rollout(tenant, old.app, lambda _: record)
    await until(lambda: len(known.arms) == 3)

    name = f"{tenant}:{old.app}.greet"
    assert known.arms_of([name, "no:such.one"]) == {old.id, "ver_new", "ver_twin"}
    assert {known.arms[version].arm for version in known.arms} == {Arm.CONTROL, Arm.CANARY, Arm.TWIN}
    assert known.take_changed()[0] >= {old.id, "ver_new", "ver_twin"}
    assert RegisteredVersions(registry).arms == known.arms

    ended = msgspec.structs.replace(
        record, revision=2, rollout=msgspec.structs.replace(rollout, state=RolloutState.ROLLED_BACK)
    )
    await registry.change_rollout(tenant, old.app, lambda _: ended)
    await until(lambda: not known.arms)
    assert not known.arms_of([name])
    assert known.take_changed()[0] >= {old.id, "ver_new", "ver_twin"}


async def test_a_tenants_terms_are_known_until_a_record_changes_them(registry: Registry) -> None:
    """Its weight, and what is guaranteed to it."""
    tenant = f"t{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0, weight=2.0))
    known = RegisteredVersions(registry)
    before = known.share_terms(tenant)
    assert (before.weight, before.guarantee) == (registry.weight_of(tenant), 0.0)
    assert known.share_terms(tenant) is before

    limits = LimitsRecord(tenant=tenant, limits=Limits(guarantee=0.25))
    await registry.change_limits(tenant, lambda _: limits)
    await until(lambda: known.share_terms(tenant).guarantee == 0.25)
    known.close()
