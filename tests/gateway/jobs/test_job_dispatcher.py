"""A home works off the queues of its shards, and of no others; what it leaves, the next one takes up."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.bus.doorbells import PAUSES_S
from pilotlight_core.bus.jetstream import StreamPage
from pilotlight_core.host.blobs import MemoryBlobs
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.demand import NO_BACKLOG
from pilotlight_core.model.messages.job_messages import JobNote, JobsStored, PlannedStarts
from pilotlight_core.model.records.jobs import JobState, RunnerIdentity
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.jobs import job_dispatcher as feeder_module
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_gateway.jobs.job_calls import JobCalls
from pilotlight_gateway.jobs.job_dispatcher import DRAIN_S, WAITING, JobDispatcher
from pilotlight_gateway.jobs.job_permit import JobPermits
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_results import JobResults
from pilotlight_gateway.jobs.job_runner import JobDependencies
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from tests.builders.jobs import job
from tests.gateway.body_codecs import small_codec
from tests.gateway.jobs.test_job_runner import OUTPUT, Calls
from tests.gateway.world import World, function
from tests.waiting import until, until_found


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="feeder") as bus:
        yield bus


@dataclass(kw_only=True)
class Site:
    """A region of its own: one function, whose jobs gateways look after."""

    bus: Bus
    world: World
    version: VersionRecord
    region: str
    store: BusJobs
    limits: MemoryLimiter = field(default_factory=MemoryLimiter)
    began: float = field(default_factory=time.monotonic)

    @property
    def shard(self) -> int:
        return subjects.shard_of("acme:shop.hello")

    @property
    def flow(self) -> str:
        return subjects.job_flow(self.region, "acme:shop.hello", "acme", "standard")

    def ground_wall(self) -> float:
        """The clock of its gateways, in unix seconds."""
        return 200.0 + time.monotonic() - self.began

    @asynccontextmanager
    async def gateway(self, name: str, calls: Calls, drain_s: float = DRAIN_S) -> AsyncIterator[JobDispatcher]:
        """One that runs its calls at once."""
        ground = JobDependencies(
            store=self.store,
            calls=JobCalls(
                calls=calls,
                registry=self.world.registry,
                schemas=VersionSchemas(self.world.blobs),
                codec=small_codec(),
                budget=ByteBudget(limit=10**7),
                clock=lambda: 0.0,
            ),
            permits=JobPermits(limits=self.limits, costs=Estimates()),
            results=JobResults(
                blobs=MemoryBlobs(),
                quota=JobStorageQuota(MemoryQuotaRecords(), limit=10**9, life=1_000.0, wall=lambda: 200.0),
                wall=lambda: 200.0,
            ),
            me=RunnerIdentity(name, name),
            wall=self.ground_wall,
        )
        feeder = JobDispatcher(self.bus, ground, region=self.region, gateway=name, drain_s=drain_s)
        async with feeder.running():
            yield feeder

    async def submit(self, count: int) -> list[str]:
        """Stored, and told of."""
        names = [f"call_{self.region}_1_{token()}" for _ in range(count)]
        publisher = JobPublisher(self.bus)
        async with publisher.running():
            for name in names:
                await self.store.create(job(id=name, version=self.version.id))
                publisher.publish(self.flow, JobNote(name))
        return names

    async def states(self, names: list[str]) -> set[JobState]:
        found = [await self.store.read("acme", name) for name in names]
        return {one.job.state for one in found if one is not None}

    async def messages(self) -> int:
        return sum((await self.bus.jetstream.depths(subjects.JOB_STREAM, self.flow)).values())


@pytest.fixture
def site(bus: Bus, world: World) -> Site:
    (version,) = world.deploy(function("hello"))
    return Site(bus=bus, world=world, version=version, region=f"r{token(8)}", store=BusJobs(bus))


async def until_states(site: Site, names: list[str], wanted: set[JobState]) -> None:
    async def are_there() -> bool:
        return await site.states(names) == wanted

    await until_found(are_there)


async def test_it_works_off_what_is_there_and_what_comes(site: Site) -> None:
    """More than may wait at a time; in the end the queue is empty, and the flow forgotten."""
    names = await site.submit(50)
    calls = Calls(output=OUTPUT)
    async with site.gateway("one", calls) as feeder:
        feeder.begin(site.shard, 1, b"")
        names += await site.submit(20)
        await until_states(site, names, {JobState.SUCCEEDED})
        await until(lambda: feeder.statistics().flows == 0)

    assert len(calls.sent) == len(names)
    assert await site.messages() == 0


async def test_a_job_alone_does_not_wait_for_a_look(site: Site) -> None:
    """A message is heard of before it is stored: a home that finds nothing looks again at once, not in five seconds."""
    async with asyncio.timeout(30), site.gateway("one", Calls(output=OUTPUT)) as feeder:
        feeder.begin(site.shard, 1, b"")
        for _ in range(25):
            await until_states(site, await site.submit(1), {JobState.SUCCEEDED})


async def test_what_was_heard_of_is_looked_for_however_often_the_bell_rings(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that start ring it too, before a server that is behind has what was stored."""
    monkeypatch.setattr(feeder_module, "POLL_S", 3_600.0)
    page, behind = site.bus.jetstream.page, True

    async def lagging(stream: str, subject: str, seq: int, *, timeout: float) -> StreamPage:
        return StreamPage(records=(), pending=0) if behind else await page(stream, subject, seq, timeout=timeout)

    monkeypatch.setattr(site.bus.jetstream, "page", lagging)
    async with asyncio.timeout(30), site.gateway("one", Calls(output=OUTPUT)) as feeder:
        feeder.begin(site.shard, 1, b"")
        names = await site.submit(1)
        await until(lambda: bool(feeder._work))
        bell = feeder._work[site.flow].bell
        for _ in range(5 * len(PAUSES_S)):
            bell.set()
            await until(lambda: not bell.is_set())
        behind = False
        await until_states(site, names, {JobState.SUCCEEDED})


async def test_a_message_that_cannot_be_read_holds_nothing_up(site: Site) -> None:
    """Nor does it end its gateway, and the next one, and so on: it is removed, and its jobs are told of anew."""
    await site.bus.jetstream.store(site.flow, b"\xc1 of a version to come")
    names = await site.submit(3)
    async with site.gateway("one", Calls(output=OUTPUT)) as feeder:
        feeder.begin(site.shard, 1, b"")
        await until_states(site, names, {JobState.SUCCEEDED})
        await until(lambda: feeder.statistics().flows == 0)
    assert await site.messages() == 0


async def test_jobs_behind_those_that_wait_at_the_home_are_its_backlog(site: Site) -> None:
    """Of their function alone; those that limits of their tenant hold back apart, and none once they are elsewhere."""
    held = Calls(output=OUTPUT, grants=0, hold=asyncio.Event())
    async with site.gateway("one", held) as feeder:
        assert feeder.backlog("acme:shop.hello") == NO_BACKLOG
        feeder.begin(site.shard, 1, b"")
        await site.submit(WAITING + 7)
        await until(lambda: feeder.backlog("acme:shop.hello") == (7, 0) and feeder.statistics().waiting == WAITING)
        assert feeder.backlog("acme:shop.other") == NO_BACKLOG

        feeder._work[site.flow].held_until = math.inf
        assert feeder.backlog("acme:shop.hello") == (0, 7)
        feeder._work[site.flow].held_until = 0.0
        feeder._work[site.flow].lacks_money = True
        assert feeder.backlog("acme:shop.hello") == (0, 7)
        feeder.end(site.shard)
        assert feeder.backlog("acme:shop.hello") == NO_BACKLOG


async def test_controllers_hear_of_jobs_whose_time_comes_soon(site: Site) -> None:
    """With their function and when; not of those of another day, nor of what a tenant's limits hold back."""
    heard: list[PlannedStarts] = []
    await site.bus.subscribe(subjects.planned(site.region), lambda _, message, __: heard.append(message))
    soon, later = site.ground_wall() + 30.0, site.ground_wall() + 86_400.0
    async with site.gateway("one", Calls(output=OUTPUT)) as feeder:
        feeder.begin(site.shard, 1, b"")
        for name, run_at in (("a", soon), ("b", soon + 1.0), ("c", later)):
            note = JobNote(name, run_at, "acme:shop.hello", "ver_1")
            await site.bus.store(site.flow, JobsStored(jobs=(note,)), id=token())
        await until(lambda: any(told.items[0].jobs == 2 for told in heard))
        (item,) = heard[-1].items
        assert (item.function, item.version) == ("acme:shop.hello", "ver_1")
        assert 0.0 < item.due_in_ms <= 30_000.0

        feeder._work[site.flow].held_until = math.inf
        assert feeder.planned() == []
        feeder._work[site.flow].held_until = 0.0
        assert len(feeder.planned()) == 1
        feeder._work[site.flow].lacks_money = True
        assert feeder.planned() == []


async def test_another_homes_jobs_are_left_alone(site: Site) -> None:
    """It hears of them as everybody does."""
    calls = Calls(output=OUTPUT)
    async with site.gateway("one", calls) as feeder:
        feeder.begin((site.shard + 1) % subjects.SHARDS, 1, b"")
        names = await site.submit(3)
        assert feeder.statistics().flows == 0
    assert await site.states(names) == {JobState.QUEUED}
    assert not calls.seen


async def test_what_has_not_started_is_left_to_the_next_home(site: Site) -> None:
    """The first one has taken them up, and got no container; its place is known while it has them."""
    held = Calls(output=OUTPUT, grants=0, hold=asyncio.Event())
    async with site.gateway("one", held) as first:
        first.begin(site.shard, 1, b"")
        names = await site.submit(3)
        await until(lambda: len(held.seen) == 3)
        assert sorted(first.place(site.flow, name).position or 0 for name in names) == [0, 1, 2]
        assert first.end(site.shard) == b""
        assert first.place(site.flow, names[0]).position is None

        calls = Calls(output=OUTPUT)
        async with site.gateway("two", calls) as second:
            second.begin(site.shard, 2, b"")
            await until_states(site, names, {JobState.SUCCEEDED})
    assert len(calls.sent) == 3
    assert not held.sent


async def test_a_flow_that_is_left_while_it_is_read_is_not_begun(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs are the next home's."""
    page, reads, go_on = site.bus.jetstream.page, asyncio.Event(), asyncio.Event()

    async def slow(stream: str, subject: str, seq: int, *, timeout: float) -> StreamPage:
        reads.set()
        await go_on.wait()
        return await page(stream, subject, seq, timeout=timeout)

    calls, names = Calls(output=OUTPUT), await site.submit(2)
    monkeypatch.setattr(site.bus.jetstream, "page", slow)
    async with asyncio.timeout(30), site.gateway("one", calls) as feeder:
        feeder.begin(site.shard, 1, b"")
        await reads.wait()
        feeder.end(site.shard)
        assert feeder._group is not None
        (feeding,) = [task for task in feeder._group._tasks if "_feed" in repr(task)]
        go_on.set()
        await asyncio.wait([feeding])

    assert not calls.seen
    assert await site.states(names) == {JobState.QUEUED}


async def test_what_runs_when_its_gateway_ends_is_interrupted(site: Site) -> None:
    """It is not left as running by somebody who is gone."""
    held = Calls(output=OUTPUT, hold=asyncio.Event())
    async with site.gateway("one", held, drain_s=0.1) as feeder:
        feeder.begin(site.shard, 1, b"")
        names = await site.submit(1)
        await until(lambda: feeder.statistics().running == 1)
    assert await site.states(names) == {JobState.FAILED}


async def test_no_more_run_than_the_tenant_may(site: Site) -> None:
    """Its jobs wait for each other, and for a live call; when one ends, the next begins."""
    policy = policy_of(EffectiveLimits(tenant=Limits(concurrency=2), function=NO_LIMITS), "acme:shop.hello")
    site.limits = MemoryLimiter(lambda *_: policy)
    live = await site.limits.admit("acme", "acme:shop.hello", policy, 0.0)
    calls = Calls(output=OUTPUT, hold=asyncio.Event())
    async with asyncio.timeout(30), site.gateway("one", calls) as feeder:
        feeder.begin(site.shard, 1, b"")
        names = await site.submit(6)
        await until(lambda: len(calls.sent) == 1)
        live.end(0.0)
        await until(lambda: len(calls.sent) == 2)
        assert site.limits.home.statistics().permits == feeder.statistics().running == 2
        assert calls.hold is not None
        calls.hold.set()
        await until_states(site, names, {JobState.SUCCEEDED})
    assert site.limits.home.statistics().permits == 0
    assert len(calls.sent) == 6
