"""Webhooks over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from msgspec import structs

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.model.api.webhook_api import DeliveryAttempt, DeliveryState
from tests.gateway.world import World

URL = "https://hooks.example.com/pilotlight"


async def made(client: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    """A new webhook."""
    answer = await client.post("/v1/webhooks", json={"url": URL, **more})
    assert answer.status_code == 201, answer.text
    whole: dict[str, Any] = answer.json()
    return whole


async def test_a_webhook_is_made_listed_changed_and_deleted(world: World) -> None:
    """Its secret is shown when it is made, and never again."""
    async with world.client() as client:
        webhook = await made(client, events=["job.failed", "job.failed"], label="ops")
        secret = webhook.pop("secret")
        listed = await client.get("/v1/webhooks")
        shown = await client.get(f"/v1/webhooks/{webhook['id']}")
        changed = await client.patch(f"/v1/webhooks/{webhook['id']}", json={"events": ["job.succeeded"]})
        deleted = await client.delete(f"/v1/webhooks/{webhook['id']}")
        gone = await client.get(f"/v1/webhooks/{webhook['id']}")

    assert secret.startswith("whsec_")
    assert webhook["events"] == ["job.failed"]
    assert webhook.pop("replaced_until") is None
    assert listed.json() == {"webhooks": [webhook]}
    assert shown.json() == webhook
    assert changed.json() == webhook | {"events": ["job.succeeded"]}
    assert deleted.status_code == 204
    assert gone.status_code == 404
    assert secret not in listed.text + shown.text + changed.text


async def test_every_event_is_heard_of_unless_some_are_named(world: World) -> None:
    """And one that there is not is refused."""
    async with world.client() as client:
        webhook = await made(client)
        refused = await client.post("/v1/webhooks", json={"url": URL, "events": ["job.exploded"]})

    assert webhook["events"] == ["job.succeeded", "job.failed", "job.cancelled", "job.expired"]
    assert refused.status_code == 422


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://127.0.0.1/",
        "ftp://example.com/",
        "https://a b/",
        "https://[00]/",
        "https://a:0/",
    ],
)
async def test_an_address_to_which_nothing_is_sent_is_refused(world: World, url: str) -> None:
    """When a webhook is made and when it is changed; the error names the field."""
    async with world.client() as client:
        refused = await client.post("/v1/webhooks", json={"url": url})
        webhook = await made(client)
        unchanged = await client.patch(f"/v1/webhooks/{webhook['id']}", json={"url": url})

    for answer in (refused, unchanged):
        assert answer.status_code == 422
        assert answer.json()["field"] == "url"


async def test_what_the_operator_allows_is_taken(world: World) -> None:
    """Exactly the address that was named."""
    world.services.webhook_networks = read_networks("127.0.0.1")
    async with world.client() as client:
        assert (await client.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"})).status_code == 201
        assert (await client.post("/v1/webhooks", json={"url": "http://127.0.0.2:9/"})).status_code == 422


async def test_there_are_only_so_many(world: World) -> None:
    """Sixteen of a tenant; another tenant's do not count."""
    async with world.client() as client, world.client(world.add_key("rival", "deploy")) as rival:
        for _ in range(16):
            await made(client)
        refused = await client.post("/v1/webhooks", json={"url": URL})
        await made(rival)

    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


async def test_a_secret_is_rotated(world: World) -> None:
    """The new one is shown here only; the former signs beside it until then."""
    async with world.client() as client:
        webhook = await made(client)
        rotated = await client.post(f"/v1/webhooks/{webhook['id']}/rotate", json={"overlap_s": 60})
        at_once = await client.post(f"/v1/webhooks/{webhook['id']}/rotate", json={"overlap_s": 0})

    (record,) = world.webhooks.webhook_records.values()
    assert rotated.status_code == 201
    assert rotated.json()["secret"] != webhook["secret"]
    assert rotated.json()["replaced_until"] > webhook["created_at"] + 59
    assert record.secrets[0].value == at_once.json()["secret"]
    assert {secret.value for secret in record.secrets[1:]} == {webhook["secret"]}


async def test_a_ping_waits_in_the_log_and_is_sent_again(world: World) -> None:
    """Its delivery keeps its id; no more than a few pings wait."""
    async with world.client() as client:
        webhook = await made(client)
        place = f"/v1/webhooks/{webhook['id']}"
        pinged = await client.post(f"{place}/ping")
        (key,) = world.webhooks.delivery_records
        store = world.webhooks
        attempt = DeliveryAttempt(at=5.0, ms=2.0, status=500)
        store.delivery_records[key] = structs.replace(
            store.delivery_records[key], state=DeliveryState.FAILED, attempts=(attempt,)
        )
        log = await client.get(f"{place}/deliveries")
        again = await client.post(f"{place}/deliveries/{pinged.json()['id']}/resend")
        pings = [await client.post(f"{place}/ping") for _ in range(9)]
        newest = await client.get(f"{place}/deliveries", params={"limit": 2})

    assert pinged.status_code == again.status_code == 202
    assert pinged.json()["event"] == "webhook.ping"
    (logged,) = log.json()["deliveries"]
    assert (logged["state"], logged["next_at"]) == ("failed", None)
    assert logged["attempts"] == [{"at": 5.0, "ms": 2.0, "status": 500, "error": ""}]
    assert again.json()["id"] == pinged.json()["id"]
    assert again.json()["state"] == "pending"
    assert [answer.status_code for answer in pings] == [202] * 7 + [409] * 2
    assert len(newest.json()["deliveries"]) == 2


async def test_a_disabled_webhook_is_sent_nothing_until_it_is_enabled(world: World) -> None:
    """What ended meanwhile is not told: it hears from then on."""
    async with world.client() as client:
        webhook = await made(client)
        place = f"/v1/webhooks/{webhook['id']}"
        disabled = await client.patch(place, json={"disabled": True})
        refused = await client.post(f"{place}/ping")
        world.webhooks.last = 70
        enabled = await client.patch(place, json={"disabled": False})

    assert disabled.json()["disabled"] is True
    assert disabled.json()["disabled_because"] == "its owner disabled it"
    assert refused.status_code == 409
    assert enabled.json()["disabled"] is False
    (record,) = world.webhooks.webhook_records.values()
    assert record.after == 70


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "1e2", "٣"])
async def test_a_wrong_limit_is_refused(world: World, limit: str) -> None:
    """1 to 1000."""
    async with world.client() as client:
        webhook = await made(client)
        answer = await client.get(f"/v1/webhooks/{webhook['id']}/deliveries", params={"limit": limit})

    assert (answer.status_code, answer.json()["field"]) == (422, "limit")


@pytest.mark.parametrize("id", ["wh_short", "wh_0000000000000000000.", "*", "acme.wh", "%3E"])
async def test_what_is_no_id_is_not_found(world: World, id: str) -> None:  # noqa: A002
    """And never becomes a part of a key."""
    async with world.client() as client:
        webhook = await made(client)
        answers = [
            await client.get(f"/v1/webhooks/{id}"),
            await client.delete(f"/v1/webhooks/{id}"),
            await client.patch(f"/v1/webhooks/{id}", json={}),
            await client.post(f"/v1/webhooks/{id}/rotate"),
            await client.post(f"/v1/webhooks/{id}/ping"),
            await client.get(f"/v1/webhooks/{id}/deliveries"),
            await client.post(f"/v1/webhooks/{webhook['id']}/deliveries/{id}/resend"),
        ]

    assert {answer.status_code for answer in answers} == {404}


async def test_scopes(world: World) -> None:
    """Who may only read looks; who may only call sees nothing."""
    async with world.client() as client:
        webhook = await made(client)
    async with world.client(world.add_key("acme", "read")) as reader:
        assert (await reader.get(f"/v1/webhooks/{webhook['id']}")).status_code == 200
        assert (await reader.delete(f"/v1/webhooks/{webhook['id']}")).status_code == 403
    async with world.client(world.add_key("acme", "invoke")) as caller:
        assert (await caller.get("/v1/webhooks")).status_code == 403
