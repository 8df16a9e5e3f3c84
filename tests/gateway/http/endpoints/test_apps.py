"""Apps over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.call_api import AppInfo, DeployFunction, DeployRequest, DeployResponse
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, entry, function

DEPLOYS = "/v1/apps/shop/deploys"


def deploy_body(content: bytes = b"print()", **more: Any) -> bytes:
    request = DeployRequest(functions=(DeployFunction(spec=function()),), files=(entry(content),))
    return msgspec.json.encode(msgspec.structs.replace(request, **more))


async def test_deploying_asks_for_blobs_takes_them_and_deploys(world: World) -> None:
    """As the SDK does it: ask, upload what is missing, ask again, call, look, stop."""
    async with world.client() as client:
        asked = msgspec.json.decode((await client.post(DEPLOYS, content=deploy_body())).content, type=DeployResponse)
        assert asked.missing == (entry(b"print()").sha256,)
        put = await client.put(f"/v1/blobs/{asked.missing[0]}", content=b"print()")
        assert (put.status_code, put.json()["size"]) == (201, 7)
        done = msgspec.json.decode((await client.post(DEPLOYS, content=deploy_body())).content, type=DeployResponse)
        assert [line.version for line in done.functions] == ["shop.hello@v1"]
        assert (await client.post(done.functions[0].endpoint, json={"input": {"name": "x"}})).status_code == 200

        world.calls.listed = [{"tenant": "acme", "version": done.functions[0].version_id, "id": "c1"}]
        (app,) = (await client.get("/v1/apps")).json()["apps"]
        shown = msgspec.convert((await client.get("/v1/apps/shop")).json(), AppInfo)
        assert shown == msgspec.convert(app, AppInfo)
        assert [(line.version, line.containers) for line in shown.functions] == [("shop.hello@v1", 1)]
        (line,) = (await client.get("/v1/apps/shop/history")).json()["history"]
        assert (line["revision"], line["by"]) == (1, world.key.id)

        assert (await client.post("/v1/apps/shop/stop")).json() == {"app": "shop", "revision": 2, "stopped": True}
        gone = await client.post(done.functions[0].endpoint, json={"input": {"name": "x"}})
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown_function")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 400, None),
        (b"[]", 422, "body"),
        (b'{"functions": [], "files": [], "extra": 1}', 422, "extra"),
        (b'{"functions": [{"spec": {"name": 3}}], "files": []}', 422, "functions.0.spec.name"),
        (deploy_body(files=(entry(b"", "../x"),)), 422, "files.0.path"),
        (b'{"functions":' + b"[" * 5000, 422, "functions.0"),
    ],
)
async def test_a_wrong_deploy_names_its_field(world: World, body: bytes, status: int, field: str | None) -> None:
    """And leaves nothing."""
    async with world.client() as client:
        answer = await client.post(DEPLOYS, content=body)

    assert (answer.status_code, answer.json().get("field")) == (status, field)
    assert not world.registry.apps


@pytest.mark.parametrize(
    ("sha256", "content", "status"),
    [("0" * 64, b"x", 422), ("x", b"x", 422), ("A" * 64, b"x", 422), ("..", b"x", 422)],
)
async def test_a_blob_must_be_what_its_name_says(world: World, sha256: str, content: bytes, status: int) -> None:
    """Nothing is kept of what is not."""
    async with world.client() as client:
        answer = await client.put(f"/v1/blobs/{sha256}", content=content)

    assert answer.status_code in (status, 404)  # httpx resolves ".." itself
    assert not world.blobs.kept
    assert world.services.uploads.taken == 0


async def test_a_blob_has_a_size_limit_and_uploads_a_number(world: World) -> None:
    """200 MB, and so many at a time."""
    wire = Wire()
    bearer = f"Bearer {world.key}"
    await ask(world.app, wire, "PUT", f"/v1/blobs/{'0' * 64}", authorization=bearer, content_length="200000001")
    assert (wire.status, wire.json["code"]) == (413, "too_large")

    world.services.uploads.taken = 10**6
    async with world.client() as client:
        busy = await client.put(f"/v1/blobs/{'0' * 64}", content=b"")
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")


async def test_tenants_do_not_see_each_other(world: World) -> None:
    """Apps, history, logs and stops of another tenant do not exist."""
    world.deploy(function())
    async with world.client(world.add_key("rival", "admin")) as client:
        assert (await client.get("/v1/apps")).json() == {"apps": []}
        for method, path in (("GET", ""), ("GET", "/history"), ("GET", "/logs"), ("POST", "/stop")):
            answer = await client.request(method, f"/v1/apps/shop{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
