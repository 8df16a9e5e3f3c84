"""Webhooks over HTTP: only what is given is changed, and ids are no paths."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.resources.webhooks import WebhooksClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.definitions.errors import BadInput, NotFound
from pilotlight_core.model.api.webhook_api import WebhookChange, WebhookRequest, WebhookRotation
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

HOOK = {"id": "wh_1", "url": "https://example.com/"}


@pytest.fixture
def webhooks(connection: PlatformConnection) -> WebhooksClient:
    return WebhooksClient(PlatformClient(connection))


async def test_an_address_that_the_platform_refuses_is_an_error(
    platform: ScriptedPlatform, webhooks: WebhooksClient
) -> None:
    """The error has the field."""
    platform.will("POST", "/v1/webhooks", problem("bad_input", "url: not https", field="url"))
    with pytest.raises(BadInput, match="not https") as caught:
        await webhooks.create(WebhookRequest(url="http://example.com/", events=("job.failed",)))
    assert caught.value.more["field"] == "url"


async def test_an_id_with_slashes_stays_one_part_of_the_path(
    platform: ScriptedPlatform, webhooks: WebhooksClient
) -> None:
    """This holds for webhooks and deliveries."""
    platform.will("DELETE", "/v1/keys/k1", Answer(status=204))
    platform.will("POST", "/v1/webhooks/wh_1/ping/resend", answer({}))
    with pytest.raises(NotFound):
        await webhooks.delete("../keys/k1")
    with pytest.raises(NotFound):
        await webhooks.resend("wh_1", "../ping")
    assert not platform.asked("/v1/keys/k1") + platform.asked("/v1/webhooks/wh_1/ping/resend")


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        (WebhookChange(url="https://x.example/"), {"url": "https://x.example/"}),
        (WebhookChange(disabled=False), {"disabled": False}),
        (WebhookChange(), {}),
    ],
)
async def test_only_what_is_given_is_changed(
    platform: ScriptedPlatform, webhooks: WebhooksClient, change: WebhookChange, sent: dict[str, object]
) -> None:
    """A field that is None is not sent."""
    platform.will("PATCH", "/v1/webhooks/wh_1", answer(HOOK))
    assert await webhooks.update("wh_1", change) == HOOK
    assert platform.requests[0].json == sent


async def test_each_request_has_its_route(platform: ScriptedPlatform, webhooks: WebhooksClient) -> None:
    """Lists come without their envelope."""
    platform.will("GET", "/v1/webhooks", answer({"webhooks": [HOOK]}))
    platform.will("GET", "/v1/webhooks/wh_1", answer(HOOK))
    platform.will("DELETE", "/v1/webhooks/wh_1", Answer(status=204))
    platform.will("POST", "/v1/webhooks/wh_1/rotate", answer(HOOK | {"secret": "whsec_y"}, 201))
    platform.will("POST", "/v1/webhooks/wh_1/ping", answer({"id": "msg_1"}, 202))
    platform.will("GET", "/v1/webhooks/wh_1/deliveries", answer({"deliveries": [{"id": "msg_1"}]}))
    platform.will("POST", "/v1/webhooks/wh_1/deliveries/msg_1/resend", answer({"id": "msg_1"}, 202))
    assert await webhooks.list_webhooks() == [HOOK]
    assert await webhooks.get("wh_1") == HOOK
    assert (await webhooks.rotate("wh_1", WebhookRotation(overlap_s=60.0)))["secret"] == "whsec_y"
    assert await webhooks.ping("wh_1") == await webhooks.resend("wh_1", "msg_1") == {"id": "msg_1"}
    assert await webhooks.list_deliveries("wh_1", 3) == [{"id": "msg_1"}]
    assert platform.asked("/v1/webhooks/wh_1/deliveries")[0].query == "limit=3"
    await webhooks.delete("wh_1")
