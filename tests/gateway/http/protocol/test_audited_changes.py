"""Whatever is changed is in the audit log before it is changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from pilotlight_core.model.api.audit_api import UNKNOWN
from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.audit.audit_entries import EVERY
from pilotlight_gateway.audit.audit_log import MemoryAuditLog
from pilotlight_gateway.http.protocol.audited_changes import LONGEST_TARGET, make_audited
from pilotlight_gateway.http.protocol.http_exchange import Exchange
from pilotlight_gateway.http.routes import OPERATIONS
from tests.gateway.world import World

NOT_AUDITED = {
    # calls and what becomes of them
    "callFunction", "inferModel", "inferModelVersion", "runInference",
    "cancelCall", "redriveJob", "submitBatch", "cancelBatch", "resumeBatch",
    "createChatCompletion", "createCompletion", "createResponse", "createEmbeddings", "uploadFile", "deleteFile",
    # nothing that stays is changed
    "putBlob", "planPlacement", "renewApp", "pingWebhook", "resendDelivery",
    # by anybody who has no key, and could fill the log: the making of the token by which a node joins is in it
    "joinNode",
    # the same of the code of a link: nobody whose word counts has asked yet, and the code's making is in it
    "exchangeCode",
}  # fmt: skip


async def send(_: Any) -> None:
    """Nobody hears it."""


def test_all_that_changes_something_is_audited() -> None:
    """A new operation is, unless it is named here."""
    writes = {operation.name for operation in OPERATIONS if operation.method != "GET"}
    assert {operation.name for operation in OPERATIONS if operation.is_audited} == writes - NOT_AUDITED


async def test_a_change_is_written_before_it_is_made_and_with_what_came_of_it(world: World) -> None:
    """Whose it is, whose key asked for it, from where, and what the body says."""
    async with world.client(world.operator) as client:
        answer = await client.put("/v1/tenants/acme/limits", json={"concurrency": 3})
        assert answer.status_code == 200, answer.text

    before, after = world.audit.records
    assert (before.status, before.told) == (UNKNOWN, {})
    assert (after.status, after.code, after.told) == (200, "", {"concurrency": 3})
    assert before.id == after.id == answer.headers["x-request-id"]
    assert (after.tenant, after.by, after.operation, after.target) == (
        "acme", "platform", "setLimits", {"tenant": "acme"},
    )  # fmt: skip
    assert after.key in world.operator
    assert after.address


async def test_what_was_refused_is_written_too(world: World) -> None:
    """With its error."""
    async with world.client() as client:
        refused = await client.delete("/v1/keys/nosuchkey")

    assert refused.status_code == 404
    assert [(one.operation, one.status, one.code) for one in world.audit.records] == [
        ("revokeKey", UNKNOWN, ""), ("revokeKey", 404, "not_found"),
    ]  # fmt: skip


async def test_nothing_is_changed_that_cannot_be_written(world: World) -> None:
    """The caller hears that it may try again."""
    world.audit.error = Unavailable("The audit log cannot be written now.")
    async with world.client(world.operator) as client:
        refused = await client.put("/v1/tenants/acme/limits", json={"concurrency": 3})
        limits = await client.get("/v1/tenants/acme/limits")

    assert refused.status_code == 503
    assert "concurrency" not in limits.json()["limits"]


async def test_a_failure_of_the_platform_is_written_too() -> None:
    """As one, and it is raised as it was."""
    log, operation = MemoryAuditLog(), next(one for one in OPERATIONS if one.name == "stopApp")
    scope: dict[str, Any] = {"type": "http", "path_params": {"app": "shop"}, "query_string": b"", "headers": []}

    async def break_down() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await make_audited(log, operation, scope, Exchange(scope, send, 0.0), break_down)
    assert [(one.status, one.code) for one in log.records] == [(UNKNOWN, ""), (500, "internal")]


async def test_nobody_writes_into_anothers_log(world: World) -> None:
    """Nor into one that it invents: it is in its own, with what it named."""
    world.add_key("otherco", "admin")
    async with world.client() as client:
        for name in ("otherco", "invented", "*", "a" * 5_000):
            assert (await client.put(f"/v1/tenants/{name}/budgets", json={"usd": "1"})).is_error

    assert {one.tenant for one in world.audit.records} == {"acme"}
    assert max(len(one.target["tenant"]) for one in world.audit.records) <= LONGEST_TARGET + 1


async def test_what_is_made_and_how_it_was_asked_for_is_told(world: World) -> None:
    """The id of a new key, the defaults of an empty body, and what the query says."""
    async with world.client() as client:
        made = (await client.post("/v1/keys", json={"label": "ci"})).json()
        await client.delete(f"/v1/keys/{made['id']}?force=true")
        await client.delete(f"/v1/keys/{made['key']}")

    ends = [one for one in world.audit.records if one.status != UNKNOWN]
    assert ends[0].told == {"label": "ci", "made": made["id"]}
    assert (ends[1].target, ends[1].told) == ({"id": made["id"]}, {"force": "true"})
    assert made["key"].rpartition("_")[2] not in str(world.audit.records)


def test_what_is_told_is_in_the_body() -> None:
    """A name of a field that there is not would tell nothing."""
    for operation in OPERATIONS:
        if operation.tells and operation.tells != EVERY:
            assert operation.request is not None
            assert set(operation.tells) <= {field.name for field in msgspec.structs.fields(operation.request)}


async def test_secrets_are_not_repeated(world: World) -> None:
    """Neither of a new key nor of a webhook's address."""
    async with world.client() as client:
        made = await client.post("/v1/keys", json={"scopes": ["invoke"], "label": "ci"})
        url = "https://user:hidden@hooks.example.com/?token=hidden"
        await client.post("/v1/webhooks", json={"url": url})

    told = str(world.audit.records)
    assert "'label': 'ci'" in told
    assert "hidden" not in told
    assert made.json()["key"] not in told


async def test_each_request_with_a_break_glass_key_is_written(world: World) -> None:
    """What only reads, too, or it is not answered. The log and a metric say it, of what was refused as well."""
    key = world.add_key("ops", "operator", break_glass=True)
    with capture_logs() as logs:
        async with world.client(key) as client:
            for _ in range(2):
                assert (await client.get("/v1/tenants")).status_code == 200
            assert (await client.post("/v1/functions/shop.hello/calls", json={})).status_code == 403
            world.audit.error = Unavailable("The audit log cannot be written now.")
            assert (await client.get("/v1/tenants")).status_code == 503

    assert [(one.operation, one.status, one.break_glass) for one in world.audit.records] == [
        *[("listTenants", UNKNOWN, True), ("listTenants", 200, True)] * 2,
        ("callFunction", UNKNOWN, True), ("callFunction", 403, True),
    ]  # fmt: skip
    assert [one["key"] for one in logs if one["event"] == "a break-glass key is used"] == [key.id] * 4
    assert "pilotlight_break_glass_requests_total 4.0" in world.services.exposition()


async def test_what_a_break_glass_key_is_refused_is_written(world: World) -> None:
    """It may have been stolen: what it tries is told. Nobody is told so much of other keys."""
    async with world.client(world.add_key("ops", "operator", break_glass=True)) as client:
        assert (await client.get("/v1/apps")).status_code == 403
        world.audit.error = Unavailable("The audit log cannot be written now.")
        assert (await client.get("/v1/apps")).status_code == 503
        world.audit.error = None
    async with world.client(world.add_key("ops", "operator")) as client:
        assert (await client.get("/v1/apps")).status_code == 403
    assert [(one.operation, one.status, one.code) for one in world.audit.records] == [
        ("listApps", UNKNOWN, ""), ("listApps", 403, "forbidden"),
    ]  # fmt: skip


async def test_a_call_that_a_break_glass_key_tries_is_written(world: World) -> None:
    """It calls nothing, and says what it would have called; without the log not even that is answered."""
    async with world.client(world.add_key("ops", "operator", break_glass=True)) as client:
        assert (await client.post("/v1/functions/shop.hello/calls", json={})).status_code == 403
        world.audit.error = Unavailable("The audit log cannot be written now.")
        assert (await client.post("/v1/functions/shop.hello/calls", json={})).status_code == 503
        world.audit.error = None
    async with world.client(world.add_key("ops", "operator")) as client:
        assert (await client.post("/v1/functions/shop.hello/calls", json={})).status_code == 403
    assert [(one.operation, one.target, one.code) for one in world.audit.records] == [
        ("callFunction", {"ref": "shop.hello"}, code) for code in ("", "forbidden")
    ]


async def test_a_break_glass_key_needs_no_issuer(world: World) -> None:
    """That is what it is for."""
    world.jwks.silent = "cut"
    async with world.client(world.add_key("ops", "operator", break_glass=True)) as client:
        assert (await client.delete("/v1/issuers/corp")).status_code == 404
        assert (await client.get("/v1/whoami")).json()["break_glass"]
