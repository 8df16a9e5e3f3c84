"""The work queue as a gateway reaches it, on a real bus: homes and runners answer as they do."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import AskJob, JobNote, JobPlace, JobsStored
from pilotlight_core.model.messages.scheduling import AskCall
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, RunnerIdentity
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from pilotlight_gateway.jobs.job_queue_client import JobQueueClient
from tests.builders.jobs import job

PLACE = JobPlace(position=3, seconds=7.0)


class Site:
    """A gateway with a client, and another one that is the home of every function and runs every job."""

    def __init__(self, bus: Bus, other: Bus) -> None:
        self.bus = bus
        self.other = other
        self.region = f"r{token(8)}"
        self.shards = MemoryShardOwnership(gateway="gw-here")
        self.home("gw-home")
        self.publisher = JobPublisher(bus)
        self.client = JobQueueClient(bus, self.publisher, self.shards, region=self.region)
        self.heard: list[object] = []
        self.flow = subjects.job_flow(self.region, job().function, "acme", "standard")

    def home(self, gateway: str | None) -> None:
        """The home of every function."""
        self.shards.home = None if gateway is None else ShardOwner(gateway, 1)


@pytest.fixture
async def site(bus: Bus, other: Bus) -> AsyncIterator[Site]:
    site = Site(bus, other)

    def answer(_: str, message: object, reply: str) -> None:
        site.heard.append(message)
        other.publish_nowait(reply, PLACE)

    handlers = {
        subjects.jobs_asked(site.region, "gw-home"): answer,
        subjects.ask(site.region, "one-a"): answer,
    }
    async with other.listening(handlers):
        await other.flush()
        yield site


def running() -> JobRecord:
    """A job that another gateway runs."""
    made = jobs.started(job(), RunnerIdentity("one", "one-a"), "call_run", 1, 150.0)
    assert made is not None
    return made


async def test_its_home_says_where_a_job_is(site: Site) -> None:
    """Asked by the id of the job and its flow."""
    assert await site.client.locate(job(), site.flow) == PLACE
    assert site.heard == [AskJob(flow=site.flow, job=job().id)]


@pytest.mark.parametrize("home", [None, "gw-gone"])
async def test_without_a_home_that_answers_the_place_is_not_known(site: Site, home: str | None) -> None:
    """The job is stored all the same."""
    site.home(home)
    assert await site.client.locate(job(), site.flow) == JobPlace()


async def test_whoever_runs_a_job_is_asked_to_cancel_its_run(site: Site) -> None:
    """Not the job: by its run, and in the name of its tenant."""
    await site.client.stop(running())

    assert site.heard == [AskCall(tenant="acme", id="call_run", cancel=True)]


async def test_a_runner_that_is_gone_or_none_is_no_error(site: Site) -> None:
    """The job's record says already that its end is wanted."""
    await site.client.stop(msgspec.structs.replace(running(), runner=RunnerIdentity("two", "two-a")))
    await site.client.stop(job())

    assert site.heard == []


async def test_a_stored_job_is_published(site: Site) -> None:
    """In its flow."""
    async with site.publisher.running():
        site.client.publish(site.flow, JobNote("call_1"))
        async for stored in site.bus.read_stream(subjects.JOB_STREAM, site.flow, follow=True):
            assert stored.message == JobsStored(jobs=(JobNote("call_1"),))
            break
