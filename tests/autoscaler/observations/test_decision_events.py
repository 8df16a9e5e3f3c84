"""What a controller decides and sees, in sentences; one that does not lead says nothing."""

from __future__ import annotations

import dataclasses

from pilotlight_autoscaler.observations.decision_events import DecisionEvents
from pilotlight_autoscaler.observations.wish_log import WishChange
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth, Wish
from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.logs import EventKind

WISH = Wish(
    count=2, tier=Warmth.READY, rule=ScalingRule.NOBODY_CALLS, because="calls wait.", look_again_at=5.0,
)  # fmt: skip
CHANGE = WishChange(at=7.0, wish=WISH, there=1, more_needs="")


def told(*, leads: bool) -> tuple[DecisionEvents, MemoryEventLog]:
    log = MemoryEventLog()
    return DecisionEvents(log, lambda: leads, lambda: 9.0), log


def test_another_number_of_containers_is_told_with_its_reason() -> None:
    events, log = told(leads=True)
    events.scaled("acme:shop.sell", CHANGE)

    (event,) = log.events
    assert (event.at, event.kind, event.tenant, event.function) == (
        7.0, EventKind.SCALED, "acme", "acme:shop.sell",
    )  # fmt: skip
    assert event.says == "shop.sell should have 2 containers, and has 1: calls wait."
    assert event.facts["wanted"] == 2


def test_the_same_number_for_another_reason_is_no_event() -> None:
    events, log = told(leads=True)
    for count in (2, 2, 3, 2):
        wish = dataclasses.replace(WISH, count=count, because=f"reason {len(log.events)}")
        events.scaled("acme:shop.sell", dataclasses.replace(CHANGE, wish=wish))
    assert [event.facts["wanted"] for event in log.events] == [2, 3, 2]


def test_who_does_not_lead_says_nothing_of_what_all_see() -> None:
    events, log = told(leads=False)
    events.scaled("acme:shop.sell", CHANGE)
    events.note_money("acme", {"month"}, set())
    assert log.events == []


def test_nodes_that_fell_silent_are_told_once() -> None:
    events, log = told(leads=True)
    nodes = ["n1", "n2"]

    assert events.lost(nodes) == 2
    assert events.lost(nodes) == 0
    assert [(event.kind, event.operator) for event in log.events] == [
        (EventKind.NODE_LOST, {"node": "n1"}), (EventKind.NODE_LOST, {"node": "n2"}),
    ]  # fmt: skip


def test_what_a_pass_decides_is_for_operators() -> None:
    events, log = told(leads=True)
    events.decided(["b:x.y: ctr_1 drains: room for acme"])
    assert [(event.tenant, event.kind) for event in log.events] == [("", EventKind.DECIDED)]


def test_money_that_is_used_up_and_there_again_is_told_to_its_tenant() -> None:
    events, log = told(leads=True)
    events.note_money("acme", {"month"}, {"day"})
    assert [(event.tenant, event.kind, event.facts) for event in log.events] == [
        ("acme", EventKind.BUDGET_SPENT, {"budget": "month"}), ("acme", EventKind.BUDGET_FREE, {"budget": "day"}),
    ]  # fmt: skip
