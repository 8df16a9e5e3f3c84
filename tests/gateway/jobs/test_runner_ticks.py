"""A runner binds the job of a tick to what was deployed at that instant, before it begins."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.records.jobs import JobRecord, JobState
from pilotlight_core.model.spec import AppRecord, DeployRecord, Schedule, VersionRecord
from pilotlight_gateway.schedules.tick_jobs import UNSCHEDULED
from tests.builders.jobs import job
from tests.builders.specs import method
from tests.gateway.jobs.test_job_runner import Bench
from tests.gateway.world import World, function

TICK = 180
ANY = method(attribute="hello", input_schema={"type": "object"})


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world=world)


def deployed(bench: Bench, *timeouts: float, schedule: Schedule | None = None) -> list[VersionRecord]:
    """Versions of `shop.hello`, one every ten seconds from the second 160 on."""
    schedules = (schedule or Schedule(cron="* * * * *"),)
    versions = [bench.world.deploy(function("hello", ANY, timeout=one, schedules=schedules))[0] for one in timeouts]
    history = tuple(
        DeployRecord(revision=number + 1, at=160.0 + 10.0 * number, by="key", functions={"hello": version.id})
        for number, version in enumerate(versions)
    )
    apps = bench.world.registry.apps
    apps["acme", "shop"] = msgspec.structs.replace(apps["acme", "shop"], history=history)
    return versions


async def put(bench: Bench, version: VersionRecord, **more: object) -> JobRecord:
    """The job of a tick, as it was stored ahead for a version."""
    stored = job(**{"version": version.id, "tick": TICK, "run_at": float(TICK), "input": b"\x80", **more})
    await bench.store.create(stored)
    return stored


async def finish(bench: Bench) -> JobRecord:
    """The job once nothing is left to do."""
    while (until := await bench.run()) is not None:
        assert until <= bench.wall
    return await bench.now()


async def test_it_runs_the_version_of_its_tick(bench: Bench) -> None:
    """Not the one that it was stored for, nor the one that is deployed by now."""
    first, second, third = deployed(bench, 10.0, 20.0, 30.0)
    assert third.id != second.id
    bench.world.registry.apps["acme", "shop"] = _moved(bench, third.id, to=TICK + 1.0)
    await put(bench, first)
    done = await finish(bench)

    assert (done.state, done.version, done.timeout, done.attempts) == (JobState.SUCCEEDED, second.id, 20.0, 1)
    assert [call.version.id for call in bench.calls.seen] == [second.id]


def _moved(bench: Bench, version: str, *, to: float) -> AppRecord:
    app = bench.world.registry.apps["acme", "shop"]
    history = tuple(
        msgspec.structs.replace(line, at=to) if line.functions["hello"] == version else line for line in app.history
    )
    return msgspec.structs.replace(app, history=history)


async def test_it_is_withdrawn_where_its_app_is_gone(bench: Bench) -> None:
    """Deleted, stopped before the tick, or of another schedule: nothing is sent."""
    (version,) = deployed(bench, 10.0)
    del bench.world.registry.apps["acme", "shop"]
    await put(bench, version)
    gone = await finish(bench)

    assert (gone.state, gone.attempts) == (JobState.CANCELLED, 0)
    assert gone.error is not None
    assert gone.error.code == UNSCHEDULED
    assert not bench.calls.sent


async def test_it_is_withdrawn_where_its_schedule_is_another(bench: Bench) -> None:
    """The version that is deployed at its tick does not have it."""
    (version,) = deployed(bench, 10.0, schedule=Schedule(cron="30 5 * * *"))
    await put(bench, version)
    assert (await finish(bench)).state is JobState.CANCELLED
    assert not bench.calls.sent


async def test_what_has_begun_keeps_its_version(bench: Bench) -> None:
    """A second try is of the same code, whatever became of the app."""
    (version,) = deployed(bench, 10.0)
    del bench.world.registry.apps["acme", "shop"]
    await put(bench, version, attempts=1, raised=1, retries=2)
    done = await finish(bench)
    assert (done.state, done.version, done.attempts) == (JobState.SUCCEEDED, version.id, 2)
