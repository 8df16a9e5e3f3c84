"""Functions shared with other tenants: who may call them, and what a stranger is told when they fail."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import (
    BadOutput,
    ContainerDied,
    ExecutionTimeout,
    FunctionRaised,
    LoadFailed,
    PilotlightError,
    TooMuch,
    error_from_code,
)
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.tenancy.function_shares import TENANTS_AT_MOST
from tests.gateway.world import World, events_of, function, generator, packed

CALL = "/v1/functions/acme:shop.hello/calls"
GREET = {"input": {"name": "x"}}


@pytest.fixture
def friend(world: World) -> str:
    return str(world.add_key("friend", "admin"))


async def test_an_app_is_shared_called_and_unshared(world: World, friend: str) -> None:
    """By the owner alone; the call is the caller's, the function stays the owner's."""
    world.deploy(function())
    async with world.client() as owner, world.client(friend) as other:
        assert (await other.post(CALL, json=GREET)).status_code == 404
        assert (await owner.put("/v1/apps/shop/shares/friend")).json() == {"grantee": "friend", "functions": []}
        assert (await other.post(CALL, json=GREET)).json()["version"] == "shop.hello@v1"
        (call,) = world.calls.seen
        assert (call.tenant, call.version.tenant) == ("friend", "acme")
        described = (await other.get("/v1/functions/acme:shop.hello/openapi.json")).json()
        assert list(described["paths"]) == [CALL]
        assert (await owner.get("/v1/apps/shop/shares")).json() == {"shares": [{"grantee": "friend", "functions": []}]}
        assert (await owner.delete("/v1/apps/shop/shares/friend")).status_code == 204
        assert (await other.post(CALL, json=GREET)).status_code == 404
        assert (await owner.delete("/v1/apps/shop/shares/friend")).status_code == 404


async def test_single_functions_are_shared(world: World, friend: str) -> None:
    """The others of the app are as if they were not there; the list has what may be called."""
    world.deploy(function(), function("bye"))
    async with world.client() as owner, world.client(friend) as other:
        await owner.put("/v1/apps/shop/shares/friend", json={"functions": ["bye"]})
        assert (await other.post(CALL, json=GREET)).status_code == 404
        assert (await other.post("/v1/functions/acme:shop.bye/calls", json=GREET)).status_code == 200
        (shared,) = (await other.get("/v1/shared")).json()["shared"]
        assert (shared["ref"], shared["endpoint"]) == ("acme:shop.bye", "/v1/functions/acme:shop.bye/calls")
        assert (await owner.get("/v1/shared")).json() == {"shared": [], "next": None}


async def test_everybody_may_be_let_in(world: World, friend: str) -> None:
    """With a star; a stopped app is shared with nobody."""
    world.deploy(function())
    async with world.client() as owner, world.client(friend) as other:
        assert (await owner.put("/v1/apps/shop/shares/*")).status_code == 200
        assert (await other.post(CALL, json=GREET)).status_code == 200
        assert (await other.get("/v1/shared")).json()["shared"] == []
        (shared,) = (await other.get("/v1/shared?everybody=true&owner=acme&limit=1")).json()["shared"]
        assert shared["ref"] == "acme:shop.hello"
        await owner.post("/v1/apps/shop/stop")
        assert (await other.get("/v1/shared?everybody=true")).json()["shared"] == []
        assert (await other.post(CALL, json=GREET)).status_code == 404


async def test_who_opens_too_much_is_refused(world: World) -> None:
    """With the limit's name; so is who asks for a page of none."""
    world.deploy(function(), function("bye"))
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(open_functions=1))
    async with world.client() as owner:
        refused = await owner.put("/v1/apps/shop/shares/*")
        assert (await owner.put("/v1/apps/shop/shares/*", json={"functions": ["bye"]})).status_code == 200
        page = await owner.get("/v1/shared?limit=0")

    assert (refused.status_code, refused.json()["limits"][0]["limit"]) == (403, "open_functions")
    assert (page.status_code, page.json()["field"]) == (422, "limit")


async def test_a_disabled_owner_shares_nothing(world: World, friend: str) -> None:
    """Its functions are as if they were not there."""
    world.deploy(function())
    async with world.client() as owner, world.client(friend) as other:
        await owner.put("/v1/apps/shop/shares/*")
        async with world.client(world.operator) as operator:
            await operator.patch("/v1/tenants/acme", json={"disabled": True})
        assert (await other.post(CALL, json=GREET)).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [("shop/shares/acme", {}, 409, "grantee"), ("shop/shares/a.b", {}, 422, "grantee"),
     ("nada/shares/zoo", {}, 404, None),
     ("shop/shares/zoo", {"functions": ["gone"]}, 404, "functions"), ("shop/shares/zoo", {"all": True}, 422, "all")],
)  # fmt: skip
async def test_what_cannot_be_shared(world: World, path: str, body: Any, status: int, field: str | None) -> None:
    """With oneself, or what is not there. Whether a tenant exists is not told: a name is enough."""
    world.deploy(function())
    async with world.client() as owner:
        answer = await owner.put(f"/v1/apps/{path}", json=body)
        assert (await owner.put("/v1/apps/shop/shares/never-heard-of")).status_code == 200

    assert (answer.status_code, answer.json().get("field")) == (status, field)


async def test_an_app_is_shared_with_a_bounded_number(world: World) -> None:
    """Beyond it there is everybody."""
    world.deploy(function())
    async with world.client() as owner:
        await owner.put("/v1/apps/shop/shares/first")
        record = world.registry.share_records["acme", "shop"]
        many = {f"t{number}": () for number in range(TENANTS_AT_MOST)}
        world.registry.share_records["acme", "shop"] = msgspec.structs.replace(record, grants=many)
        assert (await owner.put("/v1/apps/shop/shares/another")).status_code == 409
        assert (await owner.put("/v1/apps/shop/shares/t1")).status_code == 200


FAILURES = [
    FunctionRaised("ValueError: the owner's password is hush", traceback="File hush.py", type="HushError"),
    LoadFailed("ImportError: hush", traceback="File hush.py", type="ImportError"),
    BadOutput("hush is no integer", traceback="File hush.py"),
    ExecutionTimeout("hush ran past 3 s"),
    ContainerDied("hush: exit code 139"),
    error_from_code("no_capacity", "hush", traceback="File hush.py", retry_after=3.0),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
async def test_a_stranger_is_told_a_code_and_an_id(world: World, friend: str, failure: PilotlightError) -> None:
    """Nothing that the function said; the owner, calling it itself, hears everything."""
    world.deploy(function())
    world.calls.error = failure
    async with world.client() as owner, world.client(friend) as other:
        await owner.put("/v1/apps/shop/shares/friend")
        told = await other.post(CALL, json=GREET)
        own = await owner.post(CALL, json=GREET)

    assert (told.status_code, told.json()["code"]) == (failure.meaning.status, failure.wire_code)
    assert "hush" not in told.text.lower()
    assert told.json()["call"] == told.headers["pilotlight-call-id"]
    assert told.headers.get("retry-after") == own.headers.get("retry-after")
    assert "hush" in own.text


async def test_a_stranger_is_told_no_more_in_a_stream(world: World, friend: str) -> None:
    """Also when the failure comes after the first chunk."""
    world.deploy(function("hello", generator()))
    world.calls.events = [ChunkEvent(seq=1, data=next(iter(packed("a"))))]
    world.calls.error = FAILURES[0]
    stream = {"accept": "text/event-stream"}
    async with world.client() as owner, world.client(friend) as other:
        await owner.put("/v1/apps/shop/shares/friend")
        told = events_of((await other.post(CALL, headers=stream)).text)
        own = events_of((await owner.post(CALL, headers=stream)).text)

    assert [name for name, _ in told] == [name for name, _ in own] == ["chunk", "error"]
    assert (told[1][1]["code"], "hush" in str(told).lower()) == ("function_raised", False)
    assert "hush" in str(own)


async def test_what_the_platform_refuses_is_told_to_everybody(world: World, friend: str) -> None:
    """A limit or a wrong input is about the caller, not about the owner's code."""
    world.deploy(function())
    async with world.client() as owner, world.client(friend) as other:
        await owner.put("/v1/apps/shop/shares/friend")
        assert (await other.post(CALL, json={"input": {"name": 3}})).json()["field"].startswith("input")
        world.calls.error = TooMuch("Its turn would come in 3.0 s.", code="queue_full", retry_after=3.0)
        assert (await other.post(CALL, json=GREET)).json()["detail"] == "Its turn would come in 3.0 s."
