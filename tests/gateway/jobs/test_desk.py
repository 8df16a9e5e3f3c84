"""What a submission leaves behind that was refused, or that another one was before."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.jobs import JobRecord
from pilotlight_gateway.jobs.desk import Jobs
from pilotlight_gateway.jobs.memory import MemoryJobs
from pilotlight_gateway.jobs.port import Found
from tests.gateway.http.test_jobs import submit
from tests.gateway.world import World, function

BIG = "x" * 100_000


class Full(MemoryJobs):
    """Has no room."""

    async def create(self, job: JobRecord) -> Found:
        raise Unavailable("no room", code="overloaded")


async def test_a_key_that_is_used_leaves_no_second_input(world: World) -> None:
    """Neither the same one again nor another one: the blob store would fill with what nobody counts."""
    world.deploy(function())
    async with world.client() as client:
        first = await submit(client, key="once", input={"name": BIG})
        kept = dict(world.blobs.kept)
        same = await submit(client, key="once", input={"name": BIG})
        others = [await submit(client, key="once", input={"name": f"{BIG}{number}"}) for number in range(3)]

    assert (first.status_code, same.status_code, {other.status_code for other in others}) == (202, 202, {422})
    assert world.blobs.kept == kept
    assert len(kept) == 1


@pytest.mark.parametrize("name", ["Ada", BIG], ids=["small", "large"])
async def test_what_there_is_no_room_for_leaves_nothing(world: World, name: str) -> None:
    """Neither a record nor a blob, nor room taken."""
    world.deploy(function())
    world.services.jobs = Jobs(Full(), blobs=world.blobs, wall=world.wall, share_bytes=200_000)
    async with world.client() as client:
        answers = [await submit(client, input={"name": name}) for _ in range(4)]

    assert [answer.json()["code"] for answer in answers] == ["overloaded"] * 4
    assert not world.blobs.kept
