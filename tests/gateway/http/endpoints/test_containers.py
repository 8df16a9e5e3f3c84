"""Containers over HTTP: what is listed, and who may end what."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.messages.controller_questions import StopContainer
from pilotlight_gateway.fleet.container_stopper import MemoryStopper
from pilotlight_gateway.http.endpoints.containers import ROWS_OF_A_TURN, _shown
from tests.gateway.world import World, function


@pytest.fixture
def stopper(world: World) -> MemoryStopper:
    """A controller that knows one container of `acme`."""
    stopper = world.services.stopper = MemoryStopper(tenants={"ctr_1": "acme"})
    return stopper


async def test_containers_are_the_tenants_own(world: World) -> None:
    """As the nodes last reported them; on which these are is told to operators."""
    world.calls.listed = [{"tenant": "acme", "id": "c1", "node": "n1"}, {"tenant": "rival", "id": "c2", "node": "n1"}]
    async with world.client() as client:
        assert (await client.get("/v1/containers")).json() == {"containers": [{"tenant": "acme", "id": "c1"}]}
    async with world.client(str(world.operator)) as client:
        assert (await client.get("/v1/containers?all=true")).json() == {"containers": world.calls.listed}


async def test_a_long_list_leaves_others_their_turns() -> None:
    """Calls go on while thousands are listed; each is there once, in its order."""
    rows, turns = [{"id": f"c{number}", "node": "n1"} for number in range(10 * ROWS_OF_A_TURN + 1)], 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.ensure_future(take_turns())
    found = await _shown(iter(rows), operator=True)
    other.cancel()
    assert msgspec.json.decode(bytes(found)) == rows
    assert turns >= 10
    assert bytes(await _shown(iter(()), operator=False)) == b"[]"


async def test_an_owner_ends_its_own_container(world: World, stopper: MemoryStopper) -> None:
    """With the platform's grace, or with the one that it gives."""
    async with world.client() as client:
        plain = await client.post("/v1/containers/ctr_1/stop")
        at_once = await client.post("/v1/containers/ctr_1/stop", json={"grace_s": 0})

    assert (plain.status_code, plain.json()) == (202, {"id": "ctr_1", "node": "", "grace_s": 30.0})
    assert (at_once.status_code, at_once.json()["grace_s"]) == (202, 0.0)
    reason = "stopped by its owner"
    assert stopper.asked == [
        StopContainer(container="ctr_1", tenant="acme", reason=reason),
        StopContainer(container="ctr_1", tenant="acme", within_ms=0.0, reason=reason),
    ]


async def test_an_operator_ends_any_container(world: World, stopper: MemoryStopper) -> None:
    """Whosever it is."""
    stopper.tenants["ctr_9"] = "zoo"
    async with world.client(world.operator) as client:
        answer = await client.post("/v1/containers/ctr_9/stop")

    assert answer.status_code == 202
    assert (stopper.asked[0].tenant, stopper.asked[0].reason) == ("", "stopped by an operator")


async def test_what_is_anothers_is_as_if_it_were_not_there(world: World, stopper: MemoryStopper) -> None:
    """The same answer for a strange container and for none; a slip is pointed out among the tenant's own."""
    stopper.tenants["ctr_9"] = "zoo"
    world.deploy(function())
    world.calls.listed = [{"tenant": "acme", "id": "ctr_greet_1"}, {"tenant": "zoo", "id": "ctr_9"}]
    async with world.client() as client:
        strange, absent = [await client.post(f"/v1/containers/{name}/stop") for name in ("ctr_9", "ctr_8")]
        slip = await client.post("/v1/containers/ctr_gret_1/stop")
        app = await client.post("/v1/containers/shop/stop")

    for answer, name in ((strange, "ctr_9"), (absent, "ctr_8")):
        assert answer.status_code == 404
        assert (answer.json()["code"], answer.json()["detail"]) == ("not_found", f"There is no container {name}.")
    assert slip.json()["suggestion"] == "ctr_greet_1"
    assert "is an app, not a container" in app.json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [("/v1/containers/a%20b/stop", {}, "container"), ("/v1/containers/c/stop", {"grace_s": -1}, "grace_s"),
     ("/v1/containers/c/stop", {"grace_s": 3601}, "grace_s"), ("/v1/containers/c/stop", {"grace": 1}, "grace")],
)  # fmt: skip
async def test_a_wrong_stop_names_its_field(world: World, path: str, body: dict[str, Any], field: str) -> None:
    """422."""
    async with world.client() as client:
        answer = await client.post(path, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_reading_is_not_enough_to_end_one(world: World, stopper: MemoryStopper) -> None:
    """A key needs `deploy`; and without a controller it is told to come back."""
    async with world.client(world.add_key("acme", "read", "invoke")) as client:
        assert (await client.post("/v1/containers/ctr_1/stop")).status_code == 403
    stopper.leads = False
    async with world.client() as client:
        answer = await client.post("/v1/containers/ctr_1/stop")
    assert (answer.status_code, answer.json()["code"]) == (503, "starting")
