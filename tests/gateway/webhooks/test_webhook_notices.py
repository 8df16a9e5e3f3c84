"""Deliveries of what becomes of rollouts."""

from __future__ import annotations

from functools import partial

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.model.api.webhook_api import WebhookRecord
from pilotlight_gateway.webhooks.webhook_notices import make_deliveries, notify_webhooks
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks
from tests.gateway.webhooks.makers import webhook_of


def _made(hook: WebhookRecord, _present: WebhookRecord | None) -> WebhookRecord:
    return hook


async def test_only_those_that_want_it_and_are_not_disabled_hear_of_it() -> None:
    hooks = MemoryWebhooks()
    wanting = webhook_of("acme", events=("rollout.promoted",))
    disabled = webhook_of("acme", events=("rollout.promoted",), disabled=True, id="wh_00000000000000000002")
    other = webhook_of("acme", id="wh_00000000000000000003")
    for hook in (wanting, disabled, other):
        await hooks.change_webhook("acme", hook.id, partial(_made, hook))
    await notify_webhooks(hooks, "acme", "rollout.promoted", "rol_1", {"app": "shop"}, 5.0)
    counts = [len(await hooks.deliveries("acme", hook.id)) for hook in (wanting, disabled, other)]
    assert counts == [1, 0, 0]


class Away(MemoryWebhooks):
    async def webhooks(self, tenant: str) -> list[WebhookRecord]:
        raise BusDown(f"No bus for {tenant}.")


async def test_a_bus_that_is_away_stops_nobody() -> None:
    await notify_webhooks(Away(), "acme", "rollout.promoted", "rol_1", {}, 5.0)


async def test_who_tells_it_again_hears_of_a_bus_that_is_away() -> None:
    with pytest.raises(BusDown):
        await make_deliveries(Away(), "acme", "rollout.promoted", "rol_1", {}, 5.0)
