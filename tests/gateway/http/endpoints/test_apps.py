"""Apps over HTTP."""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.call_api import AppInfo, DeployFunction, DeployRequest, DeployResponse
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.tenancy import LimitsRecord
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, entry, function

DEPLOYS = "/v1/apps/shop/deploys"
JSON = {"content-type": "application/json"}


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
        assert (line["revision"], line["by"], line["versions"]) == (1, world.key.id, {"hello": "v1"})

        assert (await client.post("/v1/apps/shop/stop")).json() == {"app": "shop", "revision": 2, "stopped": True}
        gone = await client.post(done.functions[0].endpoint, json={"input": {"name": "x"}})
        assert (gone.status_code, gone.json()["code"]) == (404, "unknown_function")


async def test_what_looks_like_a_secret_is_warned_of_and_hidden(world: World) -> None:
    """The deployer is told by name; lists show no value; the container gets it."""
    spec = function(env={"OPENAI_API_KEY": "sk-secret", "MODE": "fast"})
    body = deploy_body(functions=(DeployFunction(spec=spec),))
    async with world.client() as client:
        await client.put(f"/v1/blobs/{entry(b'print()').sha256}", content=b"print()")
        done = (await client.post(DEPLOYS, content=body)).json()
        lists = [await client.get(f"/v1/apps{path}") for path in ("", "/shop", "/shop/history")]

    (warning,) = done["warnings"]
    assert warning.startswith("hello: env OPENAI_API_KEY looks like a secret.")
    assert "sk-secret" not in "".join(answer.text for answer in lists) + warning
    assert lists[1].json()["functions"][0]["spec"]["env"] == {"OPENAI_API_KEY": "***", "MODE": "fast"}
    assert world.registry.versions[done["functions"][0]["version_id"]].spec.env["OPENAI_API_KEY"] == "sk-secret"


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

    with ExitStack() as held:
        for _ in range(8):
            held.enter_context(world.services.uploads.slot("acme"))
        async with world.client() as client:
            busy = await client.put(f"/v1/blobs/{'0' * 64}", content=b"")
        async with world.client(world.add_key("rival", "admin")) as client:
            free = await client.put(f"/v1/blobs/{entry(b'x').sha256}", content=b"x")
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
    assert free.status_code == 201


async def test_a_deploy_that_removes_functions_has_to_say_so(world: World) -> None:
    """Another file under an app's name takes nothing out of service unawares."""
    world.deploy(function("hello"), function("other"))
    await world.blobs.put("acme", entry(b"print()").sha256, b"print()")
    async with world.client() as client:
        refused = await client.post(DEPLOYS, content=deploy_body())
        assert (refused.status_code, refused.json()["code"]) == (409, "removes_functions")
        assert refused.json()["removes"] == ["other"]
        assert "which would be removed: other" in refused.json()["detail"]
        assert set(world.registry.apps["acme", "shop"].functions) == {"hello", "other"}

        done = await client.post(DEPLOYS, content=deploy_body(prune=True))
        assert (done.status_code, done.json()["removed"]) == (200, ["other"])
        assert set(world.registry.apps["acme", "shop"].functions) == {"hello"}
        again = await client.post(DEPLOYS, content=deploy_body())
        assert (again.status_code, again.json()["removed"]) == (200, [])


async def test_an_app_is_deleted_with_its_versions(world: World) -> None:
    """And its name is free; another tenant's of the same name stays."""
    world.deploy(function())
    world.deploy(function(), tenant="rival")
    async with world.client() as client:
        assert (await client.delete("/v1/apps/shop")).json() == {"app": "shop", "revision": 1, "deleted": True}
        assert (await client.get("/v1/apps")).json() == {"apps": []}
        assert (await client.delete("/v1/apps/shop")).status_code == 404

    assert {version.tenant for version in world.registry.versions.values()} == {"rival"}


async def test_quotas_refuse_a_deploy_by_the_limits_name(world: World) -> None:
    """What is deployed already stays, and may be deployed anew."""
    world.deploy(function(), app="first")
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(apps=1, deploys_per_hour=40))
    await world.blobs.put("acme", entry(b"print()").sha256, b"print()")
    async with world.client() as client:
        answer = await client.post(DEPLOYS, content=deploy_body())
        assert (answer.status_code, answer.json()["code"]) == (403, "quota_exceeded")
        assert answer.json()["limits"] == [{"limit": "apps", "tenant": "acme", "allowed": 1, "current": 2}]
        assert (await client.post("/v1/apps/first/deploys", content=deploy_body())).status_code == 200

        for _ in range(2):
            await client.post(DEPLOYS, content=deploy_body())
        late = await client.post(DEPLOYS, content=deploy_body())
        assert (late.status_code, late.json()["limits"][0]["limit"]) == (429, "deploys_per_hour")
        assert int(late.headers["retry-after"]) >= 89


async def test_requests_to_the_api_have_a_rate(world: World) -> None:
    """Uploads of files have none: a deploy makes thousands."""
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(api_requests_per_s=0.1))
    async with world.client() as client:
        assert (await client.get("/v1/apps")).status_code == 200
        late = await client.get("/v1/apps")
        assert (late.status_code, late.json()["limits"][0]["limit"]) == (429, "api_requests_per_s")
        assert (await client.put(f"/v1/blobs/{entry(b'x').sha256}", content=b"x")).status_code == 201


async def test_tenants_do_not_see_each_other(world: World) -> None:
    """Apps, history, logs and stops of another tenant do not exist."""
    world.deploy(function())
    async with world.client(world.add_key("rival", "admin")) as client:
        assert (await client.get("/v1/apps")).json() == {"apps": []}
        for method, path in (("GET", ""), ("GET", "/history"), ("GET", "/logs"), ("POST", "/stop")):
            answer = await client.request(method, f"/v1/apps/shop{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_run_is_in_no_list_and_ends_when_it_is_told_to(world: World) -> None:
    """It is called by its name, renewed and deleted; a time that is no run's is refused by its field."""
    content = b"print()"
    await world.blobs.put("acme", hashlib.sha256(content).hexdigest(), content)
    async with world.client() as client:
        body = deploy_body(content, ends_in_s=60.0)
        deployed = await client.post("/v1/apps/shop-run-1/deploys", content=body, headers=JSON)
        assert deployed.status_code == 200, deployed.text
        assert (await client.get("/v1/apps")).json()["apps"] == []
        assert (await client.get("/v1/apps/shop-run-1")).status_code == 200
        called = await client.post("/v1/functions/shop-run-1.hello/calls", json={"input": {"name": "x"}})
        assert called.json()["version"] == "shop-run-1.hello@v1"
        misspelt = await client.post("/v1/functions/shop-run-2.hello/calls", json={"input": {"name": "x"}})
        assert "suggestion" not in misspelt.json()
        renewed = await client.post("/v1/apps/shop-run-1/renew", json={"ends_in_s": 600})
        assert renewed.json()["ends_at"] > time.time() + 500
        refused = [
            await client.post("/v1/apps/shop-run-1/renew", json={"ends_in_s": 5}),
            await client.post("/v1/apps/more/deploys", content=deploy_body(content, ends_in_s=1e9), headers=JSON),
        ]
        assert [(one.status_code, one.json()["field"]) for one in refused] == [(422, "ends_in_s")] * 2
        assert (await client.delete("/v1/apps/shop-run-1")).status_code == 200
        assert (await client.post("/v1/apps/shop-run-1/renew", json={"ends_in_s": 60})).status_code == 404
