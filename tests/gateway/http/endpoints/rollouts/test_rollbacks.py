"""Going back over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
from msgspec.structs import replace

from pilotlight_core.model.records.jobs import JobRecord, JobState
from tests.builders.jobs import dead_job
from tests.gateway.http.endpoints.test_apps import deploy_body
from tests.gateway.world import World, entry


async def deploy(client: httpx.AsyncClient, content: bytes, **more: Any) -> dict[str, Any]:
    await client.put(f"/v1/blobs/{entry(content).sha256}", content=content)
    answer = await client.post("/v1/apps/shop/deploys", content=deploy_body(content, **more))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def waiting(number: int, version: str, **more: Any) -> JobRecord:
    job = dead_job(id=f"call_local_1_{number:020}", tenant="acme")
    return replace(job, state=JobState.QUEUED, function="acme:shop.hello", version=version, ref="shop.hello@v2", **more)


async def test_an_app_goes_back_and_says_what_runs_where(world: World) -> None:
    """Also what becomes of the jobs that wait."""
    async with world.client() as client:
        await deploy(client, b"one")
        second = await deploy(client, b"two")
        version = second["functions"][0]["version_id"]
        for number in range(3):
            await world.jobs.create(waiting(number, version, floats=number > 0))
        back = await client.post("/v1/apps/shop/rollback", json={"reason": "slower"})
        history = (await client.get("/v1/apps/shop/history")).json()["history"]
        called = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})

    answer = back.json()
    assert (back.status_code, answer["revision"], answer["back_to"], answer["aborted"]) == (200, 3, 1, "")
    assert [(one["version"], one["changed"]) for one in answer["functions"]] == [("shop.hello@v1", True)]
    assert answer["jobs"] == [
        {"function": "hello", "jobs": 2, "more": False, "runs": "shop.hello@v1"},
        {"function": "hello", "jobs": 1, "more": False, "runs": "shop.hello@v2"},
    ]
    assert answer["sentences"] == [
        "Calls go to shop.hello@v1, also those that waited, and calls that shop.hello@v2 runs end there.",
        "2 jobs of hello: shop.hello@v1 runs them next.",
        "1 job of hello: shop.hello@v2 runs them next.",
    ]
    assert (history[-1]["back_to"], history[-1]["message"]) == (1, "rollback to revision 1: slower")
    assert called.json()["version"] == "shop.hello@v1"
    assert ("rollBackApp", {"reason": "slower"}) in [(one.operation, one.told) for one in world.audit.records]


async def test_there_may_be_nothing_to_go_back_to(world: World) -> None:
    """Which is said."""
    async with world.client() as client:
        await deploy(client, b"one")
        refused = await client.post("/v1/apps/shop/rollback")
        absent = await client.post("/v1/apps/nada/rollback")
        wrong = await client.post("/v1/apps/shop/rollback", json={"to": 0})

    assert (refused.status_code, "nothing to go back to" in refused.json()["detail"]) == (404, True)
    assert (absent.status_code, wrong.status_code) == (404, 422)


async def test_only_who_deploys_goes_back(world: World) -> None:
    """A key that reads or calls may not."""
    async with world.client(world.add_key("acme", "read", "invoke")) as client:
        refused = await client.post("/v1/apps/shop/rollback")

    assert refused.status_code == 403


async def test_a_deploy_without_traffic_is_told_in_the_history(world: World) -> None:
    """It is reached by its number alone."""
    async with world.client() as client:
        await deploy(client, b"one")
        await deploy(client, b"two", no_traffic=True)
        history = (await client.get("/v1/apps/shop/history")).json()["history"]
        (app,) = (await client.get("/v1/apps")).json()["apps"]
        old = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "x"}})
        new = await client.post("/v1/functions/shop.hello@v2/calls", json={"input": {"name": "x"}})

    assert [line["traffic"] for line in history] == [True, False]
    assert app["functions"][0]["version"] == old.json()["version"] == "shop.hello@v1"
    assert new.json()["version"] == "shop.hello@v2"
