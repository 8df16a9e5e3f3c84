"""Thresholds of budgets become deliveries, each once."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.webhook_api import WebhookEvent
from pilotlight_core.model.money.budgets import HomeTranches, Tranche
from pilotlight_gateway.webhooks.budget_events import TOLD_WITHIN_S, threshold_events
from tests.gateway.webhooks.makers import webhook_of

NOW = 1_790_000_000.0
MONTH = Tranche(
    begins=1_788_220_800,
    amount=250 * 10**9,
    spent=203 * 10**9,
    told=(50, 80),
    told_at=(NOW - 2 * TOLD_WITHIN_S, NOW - 5),
)
RECORD = HomeTranches(tenant="acme", tranches={"month": MONTH})


def test_each_threshold_is_one_event() -> None:
    """Of those reached since the webhook is there; told again, it has the same id."""
    wants = webhook_of("acme", events=(WebhookEvent.THRESHOLD,))
    (event,) = threshold_events(RECORD, wants, NOW)
    (again,) = threshold_events(RECORD, wants, NOW + 60)
    body = msgspec.json.decode(event.body)
    assert (event.id, event.about, event.body) == (again.id, "month@1788220800:80", again.body)
    assert (body["type"], body["data"]["percent"], body["data"]["spent_usd"]) == ("budget.threshold", 80, "203")


def test_who_does_not_want_it_gets_none() -> None:
    """Nor who was made later, nor who is disabled."""
    jobs, late = webhook_of("acme"), webhook_of("acme", events=(WebhookEvent.THRESHOLD,), created_at=NOW)
    off = webhook_of("acme", events=(WebhookEvent.THRESHOLD,), disabled="its owner")
    assert [list(threshold_events(RECORD, one, NOW)) for one in (jobs, late, off)] == [[], [], []]
