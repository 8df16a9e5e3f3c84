"""Whatever is changed is in the audit log before it is changed."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.audit_api import UNKNOWN
from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.http.routes import OPERATIONS
from tests.gateway.world import World

NOT_AUDITED = {
    # calls and what becomes of them
    "callFunction", "cancelCall", "redriveJob", "submitBatch", "cancelBatch", "resumeBatch",
    # nothing that stays is changed
    "putBlob", "planPlacement", "renewApp", "pingWebhook", "resendDelivery",
    # by anybody who has no key, and could fill the log: the making of the token by which a node joins is in it
    "joinNode",
}  # fmt: skip


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


async def test_a_change_stands_although_its_end_cannot_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has been made: its entry says that it was asked for."""
    written = world.audit.write

    async def only_first(entry: object) -> None:
        await written(entry)  # type: ignore[arg-type]
        world.audit.error = Unavailable("The audit log cannot be written now.")

    monkeypatch.setattr(world.audit, "write", only_first)
    world.services.audit = world.audit
    async with world.client() as client:
        made = await client.post("/v1/keys", json={"scopes": ["invoke"]})

    assert made.status_code == 201
    assert [one.status for one in world.audit.records][:1] == [UNKNOWN]


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
