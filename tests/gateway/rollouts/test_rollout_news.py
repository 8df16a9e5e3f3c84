"""What becomes of rollouts is an event, and a delivery of each webhook that wants it: told once, whoever dies."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import BusDown
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.logs import PlatformEvent
from pilotlight_core.model.rollouts.rollout_moves import ended, moved, started, with_news
from pilotlight_core.model.rollouts.rollout_record import LAST_ROLLOUTS, RolloutRecord, RolloutState
from pilotlight_gateway.rollouts.rollout_news import RolloutTeller, about_of, rollout_of
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks
from tests.gateway.rollouts.kept_rollout import record_of, rollout
from tests.gateway.webhooks.makers import webhook_of

SAYS = "Step 1 of 2: 50.00% of calls go to the new version."


class Told:
    """A record with news, and who hears of them."""

    def __init__(self, events: MemoryEventLog | None = None) -> None:
        self.log, self.hooks, self.registry = events or MemoryEventLog(), MemoryWebhooks(), MemoryRegistry()
        record = record_of(rollout(state=RolloutState.RAMP, step=0))
        record = with_news(record, "rollout.started", "It begins.", 4.0)
        self.write(with_news(record, "rollout.step", SAYS, 5.0))

    def write(self, record: RolloutRecord) -> None:
        self.registry.rollout_records["acme", "shop"] = record

    @property
    def record(self) -> RolloutRecord:
        return self.registry.rollout_records["acme", "shop"]

    async def tell(self, record: RolloutRecord | None = None) -> None:
        teller = RolloutTeller(registry=self.registry, events=self.log, hooks=self.hooks)
        await teller.notify_all(record or self.record)


async def test_a_step_is_an_event_and_a_delivery() -> None:
    """What nobody can want of a webhook is an event alone; what is told is struck out, and no revision on."""
    told = Told()
    hook = webhook_of("acme", events=("rollout.step",))
    await told.hooks.change_webhook("acme", hook.id, lambda _: hook)
    before = told.record
    await told.tell()

    assert [event.kind for event in told.log.events] == ["rollout.started", "rollout.step"]
    step = told.log.events[1]
    assert (step.tenant, step.at, step.says[:20], step.facts["step"]) == ("acme", 5.0, "Rollout 1 of shop: S", 1)
    (delivery,) = await told.hooks.deliveries("acme", hook.id)
    assert (delivery.event, b"50.00%" in delivery.body) == ("rollout.step", True)
    assert told.record == replace(before, untold=())


async def test_who_dies_before_it_is_struck_out_leaves_it_to_be_told_again_and_once() -> None:
    """The next one finds the same record: the event and the delivery are those that were made."""
    told = Told()
    hook = webhook_of("acme", events=("rollout.step",))
    await told.hooks.change_webhook("acme", hook.id, lambda _: hook)
    record = told.record
    await told.tell()
    told.write(record)
    await told.tell()

    assert len(told.log.events) == 2
    assert len(await told.hooks.deliveries("acme", hook.id)) == 1
    assert told.record.untold == ()


async def test_what_cannot_be_told_waits_in_its_order_and_loses_nothing_that_came_meanwhile() -> None:
    """Whoever tells them hears why."""

    class Away(MemoryEventLog):
        away = True

        async def store(self, event: PlatformEvent, name: str) -> None:
            if self.away and event.kind == "rollout.step":
                raise BusDown("No bus.")
            await super().store(event, name)

    log = Away()
    told = Told(log)
    found = told.record
    told.write(with_news(moved(found, replace(rollout(), held="calls")), "rollout.held", "It holds.", 6.0))
    with pytest.raises(BusDown):
        await told.tell(found)
    assert [news.kind for news in told.record.untold] == ["rollout.step", "rollout.held"]
    log.away = False
    await told.tell()
    assert [event.kind for event in log.events] == ["rollout.started", "rollout.step", "rollout.held"]


async def test_what_was_to_be_rollout_of_a_rollout_before_says_what_that_was() -> None:
    """Another one has begun meanwhile; of one that is not kept any more, its canary is not known."""
    told = Told()
    record = ended(told.record, 6.0, RolloutState.SUPERSEDED, "deployed anew")
    for number in range(LAST_ROLLOUTS + 1):
        record = started(record, "acme", "shop", rollout(id=f"rol_{number + 2}"))
        record = ended(record, 7.0, RolloutState.SUPERSEDED, "deployed anew")
        kept = rollout_of(record, record.untold[1])
        assert (kept.id if kept is not None else "") == ("rol_1" if number < LAST_ROLLOUTS else "")
    told.write(record)
    await told.tell()
    assert (told.log.events[1].facts["rollout"], told.log.events[1].facts["canary"]) == ("rol_1", {})


async def test_an_app_that_is_gone_is_rollout_of_all_the_same() -> None:
    told = Told()
    record = told.record
    del told.registry.rollout_records["acme", "shop"]
    await told.tell(record)
    assert len(told.log.events) == 2
    assert told.registry.rollout_records == {}


def test_holding_again_for_the_same_reason_is_the_same_news() -> None:
    def about(held: str, at: float) -> str:
        return about_of(with_news(record_of(rollout(held=held)), "rollout.held", "It holds.", at).untold[0])

    assert about("calls", 1.0) == about("calls", 9.0)
    assert about("calls", 1.0) != about("gate", 1.0)
