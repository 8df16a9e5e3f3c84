"""Batches over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from msgspec import structs

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.records import jobs
from pilotlight_core.model.records.batches import BatchState, ItemCounts, job_of
from pilotlight_core.model.records.jobs import FailurePoint, JobError
from pilotlight_core.model.tenancy import LimitsRecord
from tests.builders.jobs import job as job_record
from tests.gateway.batches.makers import batch
from tests.gateway.world import WALL, World, function

LINES = b'{"custom_id": "a", "input": {"name": "Ada"}}\n{"input": {"name": "Bob"}}\n'
NDJSON = {"content-type": "application/x-ndjson"}
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def submitted(
    client: httpx.AsyncClient, content: bytes = LINES, headers: dict[str, str] | None = None, **params: Any
) -> httpx.Response:
    """The answer to a submission."""
    asked = {"function": "shop.hello", **params}
    return await client.post("/v1/batches", content=content, params=asked, headers=NDJSON | (headers or {}))


async def end(world: World, batch_id: str, index: int, *, code: str = "") -> None:
    """An item's job, as whoever ran it leaves it."""
    queued = job_record(id=job_of("local", "acme", batch_id, index), input=msgspec.msgpack.encode({"name": index}))
    found = await world.jobs.create(queued)
    if code:
        done = jobs.failed(found.job, FailurePoint.FINAL, JobError(code=code, detail="no"), WALL)
    else:
        done = jobs.succeeded(found.job, WALL, output=msgspec.msgpack.encode(f"Hello {index}"))
    await world.jobs.update(done, found.revision)


async def test_a_batch_is_stored_once_every_line_is_checked(world: World) -> None:
    """What it says of itself; nothing of it is a job yet."""
    world.deploy(function())
    async with world.client() as client:
        answer = await submitted(client, headers={"traceparent": TRACE}, label="night", expires_in_s=600)
        shown = await client.get(f"/v1/batches/{answer.json()['id']}")
        listed = await client.get("/v1/batches")

    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["state"], told["function"], told["total"], told["label"]) == ("running", "shop.hello@v1", 2, "night")
    assert told["expires_at"] == told["created_at"] + 600
    assert told["counts"] == {"succeeded": 0, "failed": 0, "cancelled": 0, "expired": 0}
    assert shown.json() == told
    assert [record.traceparent for record, _ in world.batches.kept.values()] == [TRACE]
    page = {"object": "list", "data": [told], "has_more": False, "first_id": told["id"], "last_id": told["id"]}
    assert listed.json() == page | {"batches": [told]}
    assert not world.jobs.writes


async def test_a_line_that_is_wrong_is_named_and_nothing_is_kept(world: World) -> None:
    """Line and field; no batch, no blob."""
    world.deploy(function())
    blobs = dict(world.blobs.kept)
    async with world.client() as client:
        answer = await submitted(client, LINES + b'{"input": {"name": 3}}\n{"input": {}}\n')

    problem = answer.json()
    assert (answer.status_code, problem["line"], problem["field"]) == (422, 3, "input.name")
    assert problem["detail"].startswith("line 3: input.name: ")
    assert [(error["line"], error["field"]) for error in problem["errors"]] == [(3, "input.name"), (4, "input.name")]
    assert not world.batches.kept
    assert world.blobs.kept == blobs


@pytest.mark.parametrize(
    ("params", "status", "field"),
    [
        ({"function": "shop.nothing"}, 404, None),
        ({"method": "nothing"}, 422, "method"),
        ({"expires_in_s": "soon"}, 422, "expires_in_s"),
        ({"expires_in_s": "1"}, 422, "expires_in_s"),
        ({"expires_in_s": "99999999"}, 422, "expires_in_s"),
        ({"label": "x" * 101}, 422, "label"),
        ({"label": "a\x1b"}, 422, "label"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(
    world: World, params: dict[str, Any], status: int, field: str | None
) -> None:
    """By the name of the parameter."""
    world.deploy(function())
    async with world.client() as client:
        answer = await submitted(client, **params)

    assert (answer.status_code, answer.json().get("field")) == (status, field)
    assert not world.batches.kept


async def test_other_bodies_are_refused(world: World) -> None:
    """JSON is of requests, which name no function; no function is none; no line is none."""
    world.deploy(function())
    async with world.client() as client:
        whole = await client.post("/v1/batches", json=[], params={"function": "shop.hello"})
        text = await client.post("/v1/batches", content=LINES, headers={"content-type": "text/plain"})
        nameless = await client.post("/v1/batches", content=LINES, headers=NDJSON)
        empty = await submitted(client, b"\n")

    assert (whole.status_code, whole.json()["field"]) == (422, "function")
    assert "lines of application/x-ndjson" in whole.json()["detail"]
    assert (text.status_code, text.json()["code"]) == (415, "unsupported_media_type")
    assert "This takes application/x-ndjson" in text.json()["detail"]
    assert "application/json" not in text.json()["advice"]  # the detail names the type, and calls take others
    assert (nameless.status_code, nameless.json()["field"]) == (422, "function")
    assert empty.status_code == 422


async def test_a_batch_whose_items_could_run_too_long_is_refused(world: World) -> None:
    """Before its lines are read: a job is bounded by its function's timeout alone."""
    world.deploy(function(timeout=300.0))
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(timeout_s=100.0))
    async with world.client() as client:
        answer = await submitted(client)

    assert (answer.status_code, answer.json()["field"]) == (422, "timeout")
    assert answer.json()["limits"][0]["limit"] == "timeout_s"


async def test_a_repeated_submission_is_the_same_batch(world: World) -> None:
    """By its Idempotency-Key; another body under it is refused. Without one it is another batch."""
    world.deploy(function())
    key = {"idempotency-key": "night-1"}
    async with world.client() as client:
        first = await submitted(client, headers=key)
        again = await submitted(client, headers=key)
        other = await submitted(client, LINES + LINES.replace(b'"a"', b'"b"'), headers=key)
        fresh = await submitted(client)

    assert again.json() == first.json()
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert fresh.json()["id"] != first.json()["id"]


async def test_results_are_lines_in_the_order_of_the_inputs(world: World) -> None:
    """Those that have ended; the others later."""
    world.deploy(function())
    async with world.client() as client:
        made = (await submitted(client, LINES + b'{"input": {"name": "Eve"}}')).json()
        before = await client.get(f"/v1/batches/{made['id']}/results")
        await end(world, made["id"], 2, code="bad_output")
        await end(world, made["id"], 0)
        partial = await client.get(f"/v1/batches/{made['id']}/results")
        failed = await client.get(f"/v1/batches/{made['id']}/results", params={"state": "failed,expired"})
        refused = await client.get(f"/v1/batches/{made['id']}/results", params={"state": "running"})

    assert before.status_code == 200
    assert before.text == ""
    assert before.headers["content-type"] == "application/x-ndjson"
    first, last = (json.loads(line) for line in partial.text.splitlines())
    assert (first["index"], first["custom_id"], first["state"], first["output"]) == (0, "a", "succeeded", "Hello 0")
    assert "error" not in first
    assert (last["index"], last["custom_id"], last["state"]) == (2, "3", "failed")
    assert last["error"] == {"code": "bad_output", "detail": "no"}
    assert [json.loads(line)["index"] for line in failed.text.splitlines()] == [2]
    assert (refused.status_code, refused.json()["field"]) == (422, "state")


async def test_a_batch_is_cancelled_and_resumed(world: World) -> None:
    """Its driver does the rest; one that is over is neither."""
    world.deploy(function())
    over = batch(state=BatchState.COMPLETED, counts=ItemCounts(succeeded=2))
    await world.batches.create(over)
    async with world.client() as client:
        made = (await submitted(client)).json()
        place = f"/v1/batches/{made['id']}"
        too_early = await client.post(f"{place}/resume")
        cancelled = [await client.post(f"{place}/cancel") for _ in range(2)]
        resumed = await client.post(f"{place}/resume")
        refused = [await client.post(f"/v1/batches/{over.id}/{verb}") for verb in ("cancel", "resume")]

    assert too_early.status_code == 409
    assert [(answer.status_code, answer.json()["state"]) for answer in cancelled] == [(202, "cancelling")] * 2
    assert (resumed.status_code, resumed.json()["state"]) == (202, "running")
    assert [answer.status_code for answer in refused] == [409, 409]


async def test_there_are_only_so_many(world: World) -> None:
    """A hundred of a tenant."""
    world.deploy(function())
    for number in range(100):
        await world.batches.create(structs.replace(batch(), id=f"batch_{number:020}"))
    async with world.client() as client:
        answer = await submitted(client)

    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")


@pytest.mark.parametrize("id", ["batch_x", "*", "acme.x", "%3E"])
async def test_what_is_no_id_is_not_found(world: World, id: str) -> None:  # noqa: A002
    """And never becomes a part of a key."""
    async with world.client() as client:
        answers = [
            await client.get(f"/v1/batches/{id}"),
            await client.get(f"/v1/batches/{id}/results"),
            await client.post(f"/v1/batches/{id}/cancel"),
            await client.post(f"/v1/batches/{id}/resume"),
        ]

    assert {answer.status_code for answer in answers} == {404}


async def test_a_tenant_submits_two_at_a_time(world: World) -> None:
    """Others have room beside it; once one is stored there is room for the next."""
    world.deploy(function())
    go_on = asyncio.Event()
    began = asyncio.Semaphore(0)

    async def slow() -> AsyncIterator[bytes]:
        began.release()
        await go_on.wait()
        yield LINES

    async def send(client: httpx.AsyncClient, content: Any) -> int:
        asked = {"function": "shop.hello"}
        return (await client.post("/v1/batches", content=content, params=asked, headers=NDJSON)).status_code

    async with world.client() as client, asyncio.TaskGroup() as group:
        slow_ones = [group.create_task(send(client, slow())) for _ in range(2)]
        for _ in slow_ones:
            await began.acquire()
        refused = await send(client, LINES)
        go_on.set()
        stored = [await one for one in slow_ones]
        later = await send(client, LINES)

    assert (refused, stored, later) == (429, [201, 201], 201)
