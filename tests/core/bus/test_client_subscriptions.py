"""Subscriptions end one by one, and with the bus."""

from __future__ import annotations

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Started
from tests.waiting import until


def started(number: int) -> Started:
    return Started(call_id="a", grant_number=number)


async def test_after_unsubscribing_nothing_is_heard_of_the_subject(bus: Bus, other: Bus) -> None:
    """Another subscription of the same subject goes on; unsubscribing again does nothing."""
    subject, heard, still = f"t.{token()}", list[object](), list[object]()
    first = await bus.subscribe(subject, lambda _, message, __: heard.append(message))
    second = await bus.subscribe(subject, lambda _, message, __: still.append(message))
    await bus.flush()
    other.publish_nowait(subject, started(1))
    await until(lambda: heard and still)

    await first.unsubscribe()
    await bus.flush()
    other.publish_nowait(subject, started(2))
    await until(lambda: len(still) == 2)

    assert heard == [started(1)]
    assert first.subject == second.subject == subject
    await first.unsubscribe()


async def test_who_shares_a_queue_gets_the_others_part_when_they_leave(bus: Bus, other: Bus) -> None:
    """A message goes to one of them, and after an end to the other."""
    subject, here, there = f"t.{token()}", list[object](), list[object]()
    leaves = await bus.subscribe(subject, lambda _, message, __: here.append(message), queue="q")
    await other.subscribe(subject, lambda _, message, __: there.append(message), queue="q")
    await bus.flush()
    await other.flush()
    for number in range(20):
        bus.publish_nowait(subject, started(number))
    await until(lambda: len(here) + len(there) == 20)

    await leaves.unsubscribe()
    await bus.flush()
    before = len(there)
    for number in range(20):
        bus.publish_nowait(subject, started(number))
    await until(lambda: len(there) == before + 20)


async def test_unsubscribing_from_a_bus_that_has_closed_is_nothing(server_url: str) -> None:
    """The close has ended the subscription."""
    async with connect(server_url, name="closes") as bus:
        subscription = await bus.subscribe(f"t.{token()}", lambda *_: None)

    await subscription.unsubscribe()
