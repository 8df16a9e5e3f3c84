"""What becomes of rollouts is an event, and a delivery of each webhook that wants it."""

from __future__ import annotations

from msgspec.structs import replace

from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.rollouts.rollout_record import RolloutState
from pilotlight_gateway.judging.decisions import RolloutNews
from pilotlight_gateway.rollouts.rollout_news import RolloutTeller, about_of, facts_told
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks
from tests.gateway.rollouts.kept_rollout import record_of, rollout
from tests.gateway.webhooks.makers import webhook_of

NEWS = RolloutNews("rollout.step", "Step 1 of 2: 50.00% of calls go to the new version.")


async def test_a_step_is_an_event_and_a_delivery() -> None:
    """Told twice it is one delivery; what nobody can want of a webhook is an event alone."""
    log, hooks = MemoryEventLog(), MemoryWebhooks()
    hook = webhook_of("acme", events=("rollout.step",))
    await hooks.change_webhook("acme", hook.id, lambda _: hook)
    teller, now = RolloutTeller(events=log, hooks=hooks), rollout(state=RolloutState.RAMP, step=0)
    for news in (NEWS, NEWS, RolloutNews("rollout.started", "It begins.")):
        await teller.notify(record_of(now), now, news, 5.0)

    assert [event.kind for event in log.events] == ["rollout.step", "rollout.step", "rollout.started"]
    assert (log.events[0].tenant, log.events[0].says[:20]) == ("acme", "Rollout 1 of shop: S")
    (delivery,) = await hooks.deliveries("acme", hook.id)
    assert (delivery.event, b"50.00%" in delivery.body) == ("rollout.step", True)


def test_holding_again_for_the_same_reason_is_the_same_news() -> None:
    held = rollout(held="calls")
    assert about_of(held, "rollout.held") == about_of(replace(held, held_since=9.0), "rollout.held")
    assert about_of(held, "rollout.held") != about_of(replace(held, held="gate"), "rollout.held")
    assert facts_told(record_of(held), held)["held"] == "calls"
