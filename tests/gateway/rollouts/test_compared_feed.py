"""What is told of compared calls is stored once, in order; nobody waits, and what does not fit is counted."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.bus import Bus, MessageTooLarge, connect
from pilotlight_core.model.ids import token
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.rollouts import compared_feed
from pilotlight_gateway.rollouts.compared_feed import AT_ONCE, KEPT, ComparedFeed
from pilotlight_gateway.rollouts.evidence_store import BusEvidence
from tests.gateway.rollouts.kept_rollout import compared
from tests.waiting import until


async def stored(bus: Bus, tenant: str) -> list[str]:
    page = await BusEvidence(bus, region="local").page(tenant, "shop", 0)
    return [call.call_id for _, message in page.messages for call in message.calls]


async def test_calls_are_stored_in_their_order(server_url: str) -> None:
    """Also those that came last, when it ends."""
    tenant = f"t{token(8)}"
    async with connect(server_url, name="feed") as bus:
        feed = ComparedFeed(bus, region="local", gateway="gw1")
        async with feed.running():
            for number in range(AT_ONCE + 3):
                feed.note(tenant, "shop", compared(number, Arm.TWIN))
        assert await stored(bus, tenant) == [f"call_{number}" for number in range(AT_ONCE + 3)]
    assert (feed.stored, feed.dropped) == (AT_ONCE + 3, 0)
    assert {metric.name for metric in feed.collect()} == {
        "pilotlight_rollout_calls_told",
        "pilotlight_rollout_calls_dropped",
    }


async def test_the_oldest_are_lost_of_the_app_that_has_the_most(server_url: str) -> None:
    """A busy app costs no quiet one its calls."""
    async with connect(server_url, name="feed") as bus:
        feed = ComparedFeed(bus, region="local", gateway="gw1")  # nothing is stored: it does not run
        feed.note("quiet", "shop", compared(0, Arm.TWIN))
        for number in range(KEPT + 2):
            feed.note("busy", "shop", compared(number, Arm.TWIN))
    assert feed.dropped == 3


class Refusing:
    """A stream that says of the first message that it can never be stored."""

    def __init__(self) -> None:
        self.jetstream, self.stored = self, list[bytes]()

    async def store(self, _subject: str, data: bytes, **_more: object) -> None:
        self.stored.append(data)
        if len(self.stored) == 1:
            raise MessageTooLarge("too large")


async def test_what_can_never_be_stored_holds_nothing_else_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is lost, and counted; its gateway goes on."""
    monkeypatch.setattr(compared_feed, "EVERY_S", 0.0)
    monkeypatch.setattr(compared_feed, "RETRY_S", 0.0)
    bus: Any = Refusing()
    feed = ComparedFeed(bus, region="local", gateway="gw1")
    async with feed.running():
        feed.note("acme", "shop", compared(0, Arm.TWIN))
        await until(lambda: feed.dropped == 1)
        feed.note("acme", "shop", compared(1, Arm.TWIN))
        await until(lambda: feed.stored == 1)
