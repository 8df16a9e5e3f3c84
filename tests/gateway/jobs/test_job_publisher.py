"""What is told to the work queue, and in how many messages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.job_messages import JobNote, JobsStored
from pilotlight_core.model.messages.wire import decode
from pilotlight_core.model.subjects import JOB_STREAM, job_flow
from pilotlight_gateway.jobs.job_publisher import JobPublisher
from tests.waiting import until_found


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="jobs") as bus:
        yield bus


async def told(bus: Bus, flow: str, jobs: int) -> list[list[str]]:
    """The jobs that each of the flow's messages names, once they name `jobs` of them."""

    async def named() -> list[list[str]] | None:
        page = await bus.jetstream.page(JOB_STREAM, flow, 1)
        messages = [decode(record.data) for record in page.records]
        found = [[note.id for note in message.jobs] for message in messages if isinstance(message, JobsStored)]
        return found if sum(map(len, found)) >= jobs else None

    return await until_found(named)


async def test_the_first_is_told_at_once_and_those_behind_it_together(bus: Bus) -> None:
    """In their order; each once."""
    publisher, flow = JobPublisher(bus), job_flow("local", f"t:app.{token()}", "t", "standard")
    async with publisher.running():
        publisher.publish(flow, JobNote("first"))
        await told(bus, flow, 1)
        for number in range(50):
            publisher.publish(flow, JobNote(f"{number}"))

        assert await told(bus, flow, 51) == [["first"], [f"{number}" for number in range(50)]]


async def test_what_waits_when_it_ends_is_told_before(bus: Bus) -> None:
    """The block ends when the queue has heard of all."""
    publisher, flow = JobPublisher(bus), job_flow("local", f"t:app.{token()}", "t", "standard")
    async with publisher.running():
        for number in range(600):
            publisher.publish(flow, JobNote(f"{number}"))

    assert [name for names in await told(bus, flow, 600) for name in names] == [f"{number}" for number in range(600)]
