"""Events are thin, and known by what they are about."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.webhook_api import DeliveryState, WebhookEvent
from pilotlight_gateway.webhooks.webhook_events import delivery_id, event_body, job_event, ping_event


def test_an_event_has_one_id_per_webhook_and_round() -> None:
    """Found twice it is one delivery; driven again, or sent to another webhook, it is another one."""
    one = delivery_id("wh_a", "job.failed", "call_1")

    assert one == delivery_id("wh_a", "job.failed", "call_1", 0)
    others = {
        delivery_id("wh_a", "job.failed", "call_1", 1),
        delivery_id("wh_b", "job.failed", "call_1"),
        delivery_id("wh_a", "job.succeeded", "call_1"),
        delivery_id("wh_a", "job.failed", "call_2"),
    }
    assert len(others | {one}) == 5
    assert all(len(name) == 36 and name.startswith("msg_") for name in others)


def test_a_body_says_what_happened_and_when() -> None:
    """As Standard Webhooks has it: the instant in UTC, to the millisecond."""
    assert msgspec.json.decode(event_body("job.failed", 1.5, {"id": "call_1"})) == {
        "type": "job.failed",
        "timestamp": "1970-01-01T00:00:01.500Z",
        "data": {"id": "call_1"},
    }


def test_a_jobs_event_waits_to_be_sent_at_once() -> None:
    """Under the id that follows from the job, whoever finds that it ended."""
    made = job_event("acme", "wh_a", "job.failed", "call_1", {}, 7.0, round=2)

    assert made.id == delivery_id("wh_a", "job.failed", "call_1", 2)
    assert (made.tenant, made.webhook, made.about, made.state) == ("acme", "wh_a", "call_1", DeliveryState.PENDING)
    assert (made.created_at, made.next_at) == (7.0, 7.0)


def test_each_ping_is_its_own() -> None:
    """However often it is asked for."""
    one, two = ping_event("acme", "wh_a", 1.0), ping_event("acme", "wh_a", 1.0)

    assert one.id != two.id
    assert one.event == WebhookEvent.PING
