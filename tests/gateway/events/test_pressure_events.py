"""What homes see becomes an event where it begins and where it ends, and once each."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.logs import EventKind
from pilotlight_core.model.messages.scheduling import BreakerReport
from pilotlight_gateway.events.pressure_events import PressureEvents
from pilotlight_gateway.home.slowdown import SlowFlow

FUNCTIONS = {"v1": "acme:shop.sell"}
OPEN = BreakerReport(version="v1", state="open", failures=3, retry_after=5.0)
SLOW = SlowFlow(
    version="v1", function="acme:shop.sell", tenant="quiet", priority="realtime", slowdown=7.0, calls=4,
    neighbour="loud",
)  # fmt: skip


def test_a_breaker_is_told_when_it_opens_and_when_it_lets_calls_through() -> None:
    pressure = PressureEvents()
    (opened,) = pressure.changes([OPEN], [], {}, FUNCTIONS, 1.0)
    assert (opened.kind, opened.tenant, opened.function) == (EventKind.BREAKER_OPENED, "acme", "acme:shop.sell")
    assert "3 failures" in opened.says

    assert pressure.changes([OPEN], [], {}, FUNCTIONS, 2.0) == []
    (closed,) = pressure.changes([], [], {}, FUNCTIONS, 3.0)
    assert (closed.kind, closed.at) == (EventKind.BREAKER_CLOSED, 3.0)


def test_a_breaker_that_only_counts_is_no_event() -> None:
    counting = BreakerReport(version="v1", state="closed", failures=2)
    assert PressureEvents().changes([counting], [], {}, FUNCTIONS, 1.0) == []


def test_who_is_slowed_down_is_told_and_the_neighbour_to_operators_alone() -> None:
    pressure = PressureEvents()
    (slowed,) = pressure.changes([], [SLOW], {}, {}, 1.0)
    assert (slowed.kind, slowed.tenant) == (EventKind.SLOWED, "quiet")
    assert "loud" not in slowed.says + str(slowed.facts)
    assert slowed.operator == {"neighbour": "loud"}

    assert pressure.changes([], [SLOW], {}, {}, 2.0) == []
    (over,) = pressure.changes([], [], {}, {}, 3.0)
    assert over.kind == EventKind.RECOVERED


def test_calls_that_gave_way_are_counted_since_the_last_look() -> None:
    pressure = PressureEvents()
    (first,) = pressure.changes([], [], {0: 3}, {}, 1.0)
    assert first.facts == {"calls": 3, "tier_rank": 0}
    assert pressure.changes([], [], {0: 3}, {}, 2.0) == []
    (more,) = pressure.changes([], [], {0: 5}, {}, 3.0)
    assert (more.facts["calls"], more.tenant) == (2, "")


def test_a_breaker_of_one_callers_calls_says_so() -> None:
    """Its owner reads nothing of a version that takes no calls, and not whose they are."""
    pressure = PressureEvents()
    (opened,) = pressure.changes([msgspec.structs.replace(OPEN, tenant="rival")], [], {}, FUNCTIONS, 1.0)
    assert opened.says.startswith("The breaker of one tenant's calls to version v1 opened")
    assert "rival" not in opened.says + str(opened.facts)
    assert (opened.tenant, opened.operator) == ("acme", {"caller": "rival"})
    (closed,) = pressure.changes([], [], {}, FUNCTIONS, 3.0)
    assert (closed.kind, closed.operator) == (EventKind.BREAKER_CLOSED, {"caller": "rival"})
