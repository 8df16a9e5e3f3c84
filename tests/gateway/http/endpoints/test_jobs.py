"""Durable calls over HTTP: accepted, looked at, waited for, listed, cancelled, driven again."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.model.api.tenancy_api import FunctionShareRequest
from pilotlight_core.model.errors import NotFound
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.job_messages import JobPlace
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.jobs import JobRecord, RunnerIdentity
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.calls.call_fake import SPENT
from pilotlight_gateway.jobs.job_service import KEPT_S, JobService
from pilotlight_gateway.jobs.sealed_cursors import PATTERN
from pilotlight_gateway.storage_quota.job_quota import JobStorageQuota
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.tenancy.function_shares import share_app
from tests.builders.jobs import JOB, dead_job, job
from tests.gateway.world import WALL, World, function
from tests.waiting import until

CALLS = "/v1/functions/shop.hello/calls"


async def submit(client: httpx.AsyncClient, prefer: str = "respond-async", key: str = "", **body: Any) -> Any:
    headers = {"prefer": prefer} | ({"idempotency-key": key} if key else {})
    return await client.post(CALLS, headers=headers, json={"input": {"name": "Ada"}, **body})


async def finish(world: World, name: str, output: Any = "Hi", **more: Any) -> JobRecord:
    """As its home does."""
    found = await world.jobs.read("acme", name)
    assert found is not None
    begun = jobs.started(found.job, RunnerIdentity("one", "one-a"), "call_run", 1, WALL)
    assert begun is not None
    done = jobs.succeeded(begun, WALL + 1, output=msgspec.msgpack.encode(output), **more)
    await world.jobs.update(done, found.revision)
    return done


async def test_a_job_for_later_does_not_start_before(world: World) -> None:
    """Though it is the next of its queue."""
    world.deploy(function("hello"))
    world.job_queue.place = JobPlace(position=0, seconds=20.0)
    async with world.client() as client:
        now, later = await submit(client), await submit(client, run_at=WALL + 3600)
        told = [(await client.get(f"/v1/calls/{one.json()['id']}")).json() for one in (now, later)]

    assert [(one["position"], one["starts_in_s"]) for one in told] == [(0, 20.0), (0, 3600.0)]


async def test_it_is_stored_before_it_is_accepted(world: World) -> None:
    """202 with where it is; nothing has run; the record has everything that running it takes."""
    (version,) = world.deploy(function("hello", retries=2, timeout=10.0))
    async with world.client() as client:
        answer = await submit(client)

    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/calls/{answer.json()['id']}"
    assert answer.headers["pilotlight-call-id"] == answer.json()["id"]
    assert not world.calls.seen
    (stored,) = world.jobs.writes
    assert (stored.version, stored.retries, stored.expires_at) == (version.id, 2, WALL + 86_400.0)
    assert msgspec.msgpack.decode(stored.input) == {"name": "Ada"}
    assert [note.id for _, note in world.job_queue.published] == [stored.id]


async def test_what_is_not_stored_is_not_accepted(world: World) -> None:
    """While the bus does not answer: 503, and its caller may come again."""
    world.deploy(function())
    world.jobs.error = BusTimeout("no answer")
    async with world.client() as client:
        answer = await submit(client)
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")


async def test_its_result_is_there_once_it_has_one(world: World) -> None:
    """As JSON or msgpack; while it is queued there is none."""
    world.deploy(function())
    async with world.client() as client:
        name = (await submit(client)).json()["id"]
        assert "output" not in (await client.get(f"/v1/calls/{name}")).json()
        await finish(world, name, {"a": b"\x00"})
        done = (await client.get(f"/v1/calls/{name}")).json()
        packed = await client.get(f"/v1/calls/{name}", headers={"accept": "application/msgpack"})

    assert (done["state"], done["output"], done["attempts"], done["run"]) == ("succeeded", {"a": "AA=="}, 1, "call_run")
    assert msgspec.msgpack.decode(packed.content)["output"] == {"a": b"\x00"}


async def test_it_is_billed_for_each_slice_that_it_ran_on(world: World) -> None:
    """A part for each, and their sum: the first start was lost on another kind."""
    world.deploy(function())
    used = msgspec.structs.replace(SPENT, price="h100"), SPENT
    async with world.client() as client:
        name = (await submit(client)).json()["id"]
        await finish(world, name, spent=used[1], spent_before=used[:1])
        usage = (await client.get(f"/v1/calls/{name}")).json()["usage"]

    assert {part["price"] for part in usage["parts"]} == {"h100", "cpu"}
    assert usage["ns"] == 2 * SPENT.ns
    assert Decimal(usage["cost"]) == sum(Decimal(part["cost"]) for part in usage["parts"]) > 0


async def test_a_wait_ends_with_the_job(world: World) -> None:
    """Then the submission is answered as a call is, and a question with the result; too short a wait is a 202."""
    world.deploy(function())
    async with world.client() as client:
        first = await submit(client, "respond-async", key="k")
        await finish(world, first.json()["id"])
        waited = await submit(client, "respond-async, wait=5", key="k")
        other = await submit(client, "respond-async, wait=0", key="l")

    assert (waited.status_code, waited.json()["output"], waited.json()["id"]) == (200, "Hi", first.json()["id"])
    assert waited.headers["idempotent-replayed"] == "true"
    assert other.status_code == 202


async def test_who_waits_for_many_jobs_is_refused(world: World) -> None:
    """With the limit named, before anything is stored; when a wait ends there is room again."""
    world.deploy(function())
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(open_requests=1))
    async with world.client() as client, asyncio.TaskGroup() as group:
        job = (await submit(client, key="k")).json()["id"]
        waiting = group.create_task(client.get(f"/v1/calls/{job}", headers={"Prefer": "wait=60"}))
        await until(lambda: world.jobs.bells)
        written = len(world.jobs.writes)
        refused = [await client.get("/v1/apps"), await submit(client, "respond-async, wait=5", key="l")]
        assert len(world.jobs.writes) == written
        assert (await submit(client, key="m")).status_code == 202
        await finish(world, job)
        await waiting
        assert (await client.get("/v1/apps")).status_code == 200

    assert [answer.json()["limits"][0]["limit"] for answer in refused] == ["open_requests"] * 2
    assert {answer.status_code for answer in refused} == {429}


async def test_how_it_failed_is_what_a_caller_would_hear(world: World) -> None:
    """The same status, code and traceback."""
    world.deploy(function())
    async with world.client() as client:
        name = (await submit(client, key="k")).json()["id"]
        found = await world.jobs.read("acme", name)
        assert found is not None
        await world.jobs.update(dead_job(id=name, fingerprint=found.job.fingerprint), found.revision)
        waited = await submit(client, "respond-async, wait=5", key="k")
        looked = (await client.get(f"/v1/calls/{name}")).json()

    assert (waited.status_code, waited.json()["code"]) == (500, "function_raised")
    assert looked["error"]["traceback"] == waited.json()["traceback"]
    assert looked["reason"] == "raised"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"run_at": 1e12}, "run_at"), ({"expires_in_s": 0}, "expires_in_s"), ({"expires_in_s": 1e9}, "expires_in_s"),
        ({"keep_s": 1e9}, "keep_s"), ({"keep_s": -1}, "keep_s"), ({"input": {}}, "name"),
    ],
)  # fmt: skip
async def test_what_cannot_be_is_refused(world: World, body: dict[str, Any], field: str) -> None:
    """Naming the field; nothing is stored."""
    world.deploy(function())
    async with world.client() as client:
        answer = await submit(client, **body)
    assert (answer.status_code, field in answer.json()["field"]) == (422, True)
    assert not world.jobs.writes


async def test_a_live_call_has_no_time_of_its_own(world: World) -> None:
    """It runs now, or not at all."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(CALLS, json={"input": {"name": "Ada"}, "run_at": WALL})
    assert (answer.status_code, answer.json()["field"]) == (422, "run_at")


async def test_keys_and_ids_stand_for_one_job(world: World) -> None:
    """Sent again it is the same one; with another input it is refused; both at once make no sense."""
    world.deploy(function())
    async with world.client() as client:
        one, again = await submit(client, key="k"), await submit(client, key="k")
        other = await submit(client, key="k", input={"name": "Bob"})
        mine = await submit(client, id="cid_12345678")
        taken = await submit(client, id="cid_12345678", input={"name": "Bob"})
        both = await submit(client, key="k", id="cid_12345678")
        found = (await client.get("/v1/calls/cid_12345678")).json()

    assert one.json()["id"] == again.json()["id"]
    assert (other.status_code, taken.status_code, both.status_code) == (422, 409, 422)
    assert found["id"] == mine.json()["id"]
    assert len(world.jobs.writes) == 2


async def test_a_tenants_room_is_bounded(world: World) -> None:
    """429 with when to come back; a repeated submission takes no room."""
    world.deploy(function())
    quota = JobStorageQuota(MemoryQuotaRecords(), limit=22_000, life=KEPT_S, wall=world.wall)
    world.services.jobs = JobService(world.jobs, quota=quota, wall=world.wall)
    async with world.client() as client:
        for number in range(19):
            assert (await submit(client, key=f"k{number}")).status_code == 202
            assert (await submit(client, key=f"k{number}")).status_code == 202
        full = await submit(client, key="more")
    assert (full.status_code, full.json()["code"]) == (429, "rate_limited")
    assert float(full.headers["retry-after"]) > 0


async def test_lists_have_pages_and_filters(world: World) -> None:
    """The last changed first; results are left out."""
    world.deploy(function())
    for number in range(5):
        await world.jobs.create(job(id=f"call_local_1_{number:020d}"))
    await world.jobs.create(dead_job(id=f"call_local_2_{0:020d}", function="acme:shop.other"))
    async with world.client() as client:
        first = (await client.get("/v1/jobs?limit=4")).json()
        rest = (await client.get(f"/v1/jobs?limit=4&cursor={first['next']}")).json()
        dead = (await client.get("/v1/jobs?state=failed,expired")).json()["jobs"]
        theirs = (await client.get("/v1/jobs?function=shop.hello")).json()["jobs"]
        wrong = [
            await client.get(f"/v1/jobs?{query}") for query in ("state=fialed", "limit=0", "cursor=x", "limit=1e3")
        ]

    assert [one["state"] for one in first["jobs"]] == ["failed", "queued", "queued", "queued"]
    assert len({one["id"] for one in first["jobs"] + rest["jobs"]}) == 6
    assert rest["next"] is None
    assert [one["reason"] for one in dead] == ["raised"]
    assert len(theirs) == 5
    assert [one.status_code for one in wrong] == [422] * 4
    assert wrong[0].json()["detail"].endswith("Did you mean failed?")


async def test_a_cursor_tells_nothing_and_is_one_tenants(world: World) -> None:
    """Two of the same place differ; another tenant's is refused, and one that was changed."""
    for number in range(3):
        await world.jobs.create(job(id=f"call_local_1_{number:020d}"))
    async with world.client() as client:
        cursors = [(await client.get("/v1/jobs?limit=1")).json()["next"] for _ in range(2)]
    assert cursors[0] != cursors[1]
    assert all(PATTERN.fullmatch(cursor) for cursor in cursors)
    opened = [await world.services.jobs.cursors.open("acme", cursor) for cursor in cursors]
    assert opened[0] == opened[1]
    other = "B" if cursors[0][5] != "B" else "C"
    for tenant, cursor in (("zoo", cursors[0]), ("acme", cursors[0][:5] + other + cursors[0][6:])):
        with pytest.raises(NotFound, match="begin anew"):
            await world.services.jobs.cursors.open(tenant, cursor)


async def test_a_list_of_a_function_that_there_is_not_is_refused(world: World) -> None:
    """With the one that was meant; one that was deployed once is known, and so is what others share."""
    world.deploy(function("hello"))
    async with world.client() as client:
        wrong = await client.get("/v1/jobs?function=shop.helo")
        assert (wrong.status_code, wrong.json()["code"]) == (404, "unknown_function")
        assert wrong.json()["suggestion"] == "shop.hello"
        assert (await client.get("/v1/jobs?function=shop.hello")).status_code == 200
        assert (await client.get("/v1/jobs?function=acme:shop.hello")).status_code == 200
        assert (await client.get("/v1/jobs?function=zoo:llm.chat")).status_code == 200
        assert (await client.get("/v1/jobs?function=shop.hello@v1")).status_code == 422
        assert (await client.get("/v1/jobs?function=shop")).status_code == 422


async def test_a_list_of_an_own_function_does_not_look_at_what_others_share(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes as long on a platform of a thousand shares; one that only others share is found among theirs."""
    world.deploy(function("hello"))
    world.deploy(function("chat"), app="llm", tenant="zoo")
    await share_app(world.registry, "zoo", "llm", "acme", FunctionShareRequest(functions=("chat",)))
    async with world.client() as client:
        assert (await client.get("/v1/jobs?function=llm.chat")).status_code == 200
        assert (await client.get("/v1/jobs?function=llm.other")).status_code == 404
        monkeypatch.setattr(world.registry, "shares", None)
        assert (await client.get("/v1/jobs?function=shop.hello")).status_code == 200


async def test_a_running_job_is_told_to_stop(world: World) -> None:
    """Its record says so, and so hears whoever runs it; what waits has ended at once."""
    begun = jobs.started(job(), RunnerIdentity("one", "one-a"), "call_run", 1, 101.0)
    assert begun is not None
    await world.jobs.create(begun)
    async with world.client() as client:
        answer = await client.delete(f"/v1/calls/{JOB}")

    assert (answer.status_code, answer.json()) == (202, {"id": JOB, "cancelled": True})
    assert [stopped.run for stopped in world.job_queue.stopped] == ["call_run"]
    assert world.jobs.writes[-1].cancel


async def test_only_the_dead_are_driven_again(world: World) -> None:
    """And the work queue hears of it."""
    await world.jobs.create(dead_job())
    async with world.client() as client:
        driven = await client.post(f"/v1/jobs/{JOB}/redrive")
        again = await client.post(f"/v1/jobs/{JOB}/redrive")
        unknown = await client.post("/v1/jobs/call_local_1_99999999999999999999/redrive")

    assert (driven.status_code, driven.json()["state"], driven.json()["redrives"]) == (202, "queued", 1)
    assert (again.status_code, unknown.status_code) == (409, 404)
    assert [note.id for _, note in world.job_queue.published] == [JOB]
