"""What a pass is given to decide on, by the registry on a real bus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from pilotlight_autoscaler.active_versions import TURNS
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.pass_preparation import KEEP_EVERY_S, PassPreparation
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassOptions
from pilotlight_autoscaler.registered_versions import RegisteredVersions
from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.ids import token
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_placement.asks.curve_book import CurveBook
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container


@pytest.fixture
async def registry(server_url: str) -> AsyncIterator[Registry]:
    async with connect(server_url, name="pass-preparation-test") as bus, Registry(bus) as registry:
        yield registry


async def deployed(registry: Registry) -> VersionRecord:
    """A version that keeps no container."""
    tenant = f"t{token(6)}"
    await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0))
    version = msgspec.structs.replace(record(f"ver_{token()}"), tenant=tenant)
    await registry.put_version(version)
    functions = {version.function: version.id}
    await registry.deploy(AppRecord(tenant=tenant, app=version.app, revision=1, functions=functions), 0)
    return version


async def no_pause() -> None:
    pass


def preparation(
    registry: Registry,
    world: World,
    pause: Callable[[], Awaitable[None]] = no_pause,
    wall: Callable[[], float] = lambda: 100.0,
) -> PassPreparation:
    return PassPreparation(
        world=world, registered=RegisteredVersions(registry, wall=wall), book=CurveBook(registry),
        new_id=lambda version: f"ctr_{version.id}", stop_grace_s=30.0, pause=pause,
    )  # fmt: skip


async def test_what_is_called_is_looked_at_first(registry: Registry) -> None:
    """What nobody calls is not."""
    called, _ = await deployed(registry), await deployed(registry)
    world = World()
    world.on_demand(demand(called.id, tenant=called.tenant, queued=1), 1.0)
    prepared = preparation(registry, world)

    first = await prepared.due(1.0, room=False)
    again = await prepared.due(1.2, room=False)

    assert (set(first.certain), set(first.others)) == (set(), {called.id})
    assert (set(again.certain), set(again.others)) == (set(), {called.id})
    given = prepared.given(again.others, PassOptions(), epoch=7, at=1.2, wall=101.2)
    assert (dict(given.versions), set(given.deployed), given.epoch) == ({called.id: called}, {called.id}, 7)
    assert given.renewed == {called.id}
    assert prepared.given((), PassOptions(), epoch=7, at=1.2, wall=101.2).renewed == set()


async def test_what_one_pass_has_no_time_for_is_decided_on_in_the_next(registry: Registry) -> None:
    """It is not looked at again before, and forgotten if nobody calls it any more."""
    called = [await deployed(registry) for _ in range(3)]
    world = World()
    for version in called:
        world.on_demand(demand(version.id, tenant=version.tenant, queued=1), 1.0)
    prepared = preparation(registry, world)
    await prepared.read([version.id for version in called], 1.0)
    prepared.active.put_off = {version.id: None for version in called[1:]} | {"ver_gone": None}

    due = await prepared.due(1.0, room=False)
    first = await prepared.take_first(due, due.others, 1.0)

    assert (set(due.others), list(due.put_off)) == ({called[0].id}, [version.id for version in called[1:]])
    assert first == {version.id for version in called}
    assert not prepared.active.put_off


async def test_what_is_heard_while_it_is_seen_who_is_settled_is_looked_at_too(registry: Registry) -> None:
    """Whether it was known before or not."""
    known, new = await deployed(registry), await deployed(registry)
    world = World()
    world.on_demand(demand(known.id, tenant=known.tenant, running=1), 1.0)

    async def hear() -> None:
        world.on_demand(demand(new.id, tenant=new.tenant, queued=1), 1.1)
        world.on_demand(demand(known.id, tenant=known.tenant, running=0), 1.1)

    prepared = preparation(registry, world, hear)
    await prepared.due(1.0, room=False)
    found = [await prepared.due(1.0 + 0.2 * turn, room=False) for turn in range(1, 1 + TURNS)]

    assert new.id in {version for due in found for version in (*due.certain, *due.others)}
    assert world.changed == set()


async def test_a_run_whose_time_is_over_is_looked_at_although_it_has_what_its_calls_need(registry: Registry) -> None:
    """Nothing but time ends it: its app's record stays as it is."""
    version, world, wall = await deployed(registry), World(), [100.0]
    app = await registry.app(version.tenant, version.app)
    assert app is not None
    await registry.deploy(msgspec.structs.replace(app, revision=2, ends_at=150.0), 1)
    world.on_demand(demand(version.id, tenant=version.tenant, running=1, service_ms=100.0), 1.0)
    world.on_report(report(container("c1", version.id, tenant=version.tenant, running=1)), 1.0)
    prepared = preparation(registry, world, wall=lambda: wall[0])

    async def looked_at(at: float) -> bool:
        due = await prepared.due(at, room=False)
        await prepared.read(due.others, at)
        given = prepared.given((), PassOptions(), epoch=7, at=at, wall=wall[0])
        return version.id in Pass(world, given).inspect((*due.certain, *due.others)) or version.id in due.others

    for at in (1.0, 1.1):
        await looked_at(at)
    before = [await looked_at(1.2) for _ in range(TURNS)]
    wall[0] = 150.0
    after = [await looked_at(1.2) for _ in range(TURNS)]

    assert (sum(before), sum(after)) == (0, 1)


async def test_what_had_no_place_is_decided_on_when_it_is_due(registry: Registry) -> None:
    """It was looked at before."""
    version, world = await deployed(registry), World()
    world.on_demand(demand(version.id, tenant=version.tenant, queued=1), 1.0)
    prepared = preparation(registry, world)
    await prepared.due(1.0, room=False)
    world.refusals.note_limit(version.id, version.tenant, 1.0)
    waiting = await prepared.due(1.2, room=False)
    world.refusals.open_all()

    opened = await prepared.due(1.4, room=False)

    assert (set(waiting.certain), set(waiting.others)) == (set(), set())
    assert set(opened.certain) == {version.id}


async def test_new_calls_are_prepared_alone_and_nothing_is_kept_of_what_is_over(registry: Registry) -> None:
    """A version whose container is gone and that nobody calls any more is forgotten within a second."""
    version, other = await deployed(registry), await deployed(registry)
    world, there = World(), container("c1", other.id, tenant=other.tenant)
    world.on_report(report(there), 1.0)
    prepared = preparation(registry, world)
    await prepared.due(1.0, room=False)
    assert prepared.active.records.keys() == {other.id}

    world.on_report(report(seq=2), 1.1)
    await prepared.read({version.id}, 1.2)
    assert prepared.active.records.keys() == {version.id, other.id}

    world.on_demand(demand(version.id, tenant=version.tenant, queued=1), 1.2)
    await prepared.due(1.0 + KEEP_EVERY_S, room=False)
    assert prepared.active.records.keys() == {version.id}


async def test_a_version_on_which_passes_fail_is_set_aside(registry: Registry) -> None:
    """Of those that the last pass has read, and of all others."""
    version, world = await deployed(registry), World()
    world.on_demand(demand(version.id, tenant=version.tenant, queued=1), 1.0)
    prepared = preparation(registry, world)
    await prepared.due(1.0, room=False)
    assert prepared.find_faults(1.0, 101.0) == {}
    assert prepared.quarantine.is_in_vain

    told = demand(version.id, tenant=version.tenant, queued=1, service_ms=float("nan"))
    world.on_demand(told, 1.1)
    faults = prepared.find_faults(1.1, 101.1)

    assert list(faults) == [version.id]
    await prepared.due(1.2, room=False)
    assert prepared.active.records.keys() == set()
