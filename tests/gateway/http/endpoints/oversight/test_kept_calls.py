"""Kept calls over HTTP."""

from __future__ import annotations

import re

import msgspec
import pytest

from pilotlight_core.model.messages.scheduling import AskKept
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_gateway.traces.traced_calls import TracedCalls, lone_traces
from tests.builders.jobs import dead_job
from tests.builders.kept import CALL_ID, kept_call
from tests.gateway.world import World, function

RUN = "call_local_1_00000000000000000007"


@pytest.fixture
def asked(world: World) -> list[AskKept]:
    """What is asked of all gateways, of which one does not answer."""
    own, questions = lone_traces(), list[AskKept]()

    async def find(ask: AskKept) -> tuple[list[KeptCall], list[str]]:
        questions.append(ask)
        return (await own.find(ask))[0], ["gateway-2"]

    world.services.tracing = TracedCalls(sampler=own.sampler, keeper=own.keeper, find=find, running=own.running)
    return questions


async def test_a_tenants_kept_calls_are_listed(world: World, asked: list[AskKept]) -> None:
    """Those of the tenant that asks; of gateways that are silent it is told how many there are, an operator which."""
    world.services.tracing.keeper.calls.add(kept_call())
    async with world.client() as client:
        found = (await client.get("/v1/calls")).json()
        await client.get("/v1/calls", params={"function": "shop.rank", "kept": "slow", "limit": 3})
        await client.get("/v1/calls", params={"function": "vendor:shop.rank"})
    assert ([call["id"] for call in found["calls"]], found["unanswered"]) == ([CALL_ID], ["a gateway"])
    assert asked == [
        AskKept(tenant="acme", limit=50),
        AskKept(tenant="acme", function="acme:shop.rank", kept="slow", limit=3),
        AskKept(tenant="acme", function="vendor:shop.rank", limit=50),
    ]
    async with world.client(str(world.operator)) as client:
        assert (await client.get("/v1/calls")).json()["unanswered"] == ["gateway-2"]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("kept", "odd"), ("kept", ""), ("function", "a b"), ("function", ""), ("limit", "0"), ("limit", "201")],
)
async def test_what_cannot_be_asked_for_is_named(world: World, name: str, wrong: str) -> None:
    async with world.client() as client:
        answer = await client.get("/v1/calls", params={name: wrong})
    assert answer.status_code == 422
    assert answer.json()["field"] == name


async def test_a_call_is_explained(world: World) -> None:
    """In numbers and in words."""
    world.services.tracing.keeper.calls.add(kept_call())
    async with world.client() as client:
        found = (await client.get(f"/v1/calls/{CALL_ID}/explanation")).json()
    assert found["sentences"][0] == "shop.rank@v3 took 1.00 s and ended well."
    assert sum(row["ms"] for row in found["rows"] if not row["step_of"]) == pytest.approx(found["total_ms"])


async def test_a_job_is_explained_by_its_last_run(world: World) -> None:
    """Whose id nobody was told."""
    await world.services.jobs.store.create(dead_job(id=CALL_ID, tenant="acme", run=RUN))
    world.services.tracing.keeper.calls.add(kept_call(id=RUN))
    async with world.client() as client:
        assert (await client.get(f"/v1/calls/{CALL_ID}/explanation")).json()["id"] == RUN


@pytest.mark.usefixtures("asked")
async def test_what_is_not_kept_says_why_and_who_did_not_answer(world: World) -> None:
    async with world.client() as client:
        absent = await client.get(f"/v1/calls/{CALL_ID}/explanation")
        strange = await client.get("/v1/calls/what/explanation")
    assert (absent.status_code, strange.status_code) == (404, 404)
    assert "1 gateway did not answer, and may have it." in absent.json()["detail"]
    assert "sampled" in absent.json()["detail"]
    assert "call_… or req_…" in strange.json()["detail"]


async def test_a_refused_request_is_explained_by_its_id(world: World) -> None:
    """As its error has it, before there was a call; and a call that failed by that of its call."""
    world.deploy(function("hello"))
    async with world.client() as client:
        wrong = [
            await client.post("/v1/functions/shop.nothing/calls", json={"input": {}}),
            await client.post("/v1/functions/shop.hello/calls", json={"input": {"hush": 7}}),
        ]
        found = [(await client.get(f"/v1/calls/{one.json()['request_id']}/explanation")).json() for one in wrong]
        other = await client.get("/v1/apps/nothing")
        no_call = await client.get(f"/v1/calls/{other.json()['request_id']}/explanation")
    assert [one["code"] for one in found] == ["unknown_function", "bad_input"]
    assert re.match("req_", found[0]["id"])
    assert found[1]["function"] == "shop.hello"
    assert "hush" not in msgspec.json.encode(found).decode()
    assert no_call.status_code == 404
