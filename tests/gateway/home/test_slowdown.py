"""How much longer calls take than they would alone."""

from __future__ import annotations

import pytest

from pilotlight_gateway.home.slowdown import ALERT, ENOUGH, FLOWS, Slowdowns
from tests.builders.calls import call


def test_a_tenant_that_floods_is_not_slowed_down() -> None:
    """Forty calls at once on two slots wait for each other, alone or not."""
    slowdowns = Slowdowns()
    for n in range(40):
        slowdowns.ended(call(str(n)), 0.0, 0.0, 1.0, 2, 1.0 + n // 2)
    assert slowdowns.of("acme", "standard") == pytest.approx(1.0, abs=0.05)
    assert slowdowns.slow("v", "f") == []


def test_a_tenant_that_waits_for_others_is_slow_and_they_are_named() -> None:
    """A call of 100 ms that ends after a second is ten times slower than alone; the neighbour floods."""
    slowdowns = Slowdowns()
    for n in range(2 * ENOUGH):
        slowdowns.ended(call(f"e{n}", "elephant"), 0.0, 0.0, 1.0, 1, 1.0 + n)
        slowdowns.ended(call(f"m{n}", "mouse"), float(n), 0.0, 0.1, 1, n + 1.0)
        slowdowns.ended(call(f"o{n}", "other"), float(n), 0.0, 0.1, 1, n + 0.1)
    assert slowdowns.of("mouse", "standard") == pytest.approx(10.0)
    (slow,) = slowdowns.slow("ver_1", "acme:app.fn")
    assert (slow.tenant, slow.priority, slow.neighbour) == ("mouse", "standard", "elephant")
    assert slow.slowdown >= ALERT
    assert slowdowns.worst() == {"standard": pytest.approx(10.0)}


def test_a_start_is_waited_for_alone_too() -> None:
    """The wait for a start counts for the tenant alone as well."""
    slowdowns = Slowdowns()
    for n in range(ENOUGH):
        slowdowns.ended(call(str(n)), 100.0 * n, 9_000.0, 1.0, 1, 100.0 * n + 10.0)
    assert slowdowns.of("acme", "standard") == pytest.approx(1.0)


def test_a_few_calls_are_no_alert() -> None:
    """One slow call is no slow flow."""
    slowdowns = Slowdowns()
    for n in range(ENOUGH - 1):
        slowdowns.ended(call(str(n)), 100.0 * n, 0.0, 1.0, 1, 100.0 * n + 50.0)
    assert slowdowns.slow("v", "f") == []
    assert slowdowns.worst() == {}


def test_the_number_of_followed_flows_is_bounded() -> None:
    """A function that many tenants call once each does not fill the memory."""
    slowdowns = Slowdowns()
    for n in range(FLOWS + 100):
        slowdowns.ended(call("x", f"t{n}"), 0.0, 0.0, 1.0, 1, 2.0)
    assert len(slowdowns._flows) == FLOWS
    slowdowns.age()


def test_a_slow_flow_says_how_much_of_the_slots_it_and_its_neighbour_hold() -> None:
    """And how long its calls take, on average over the last ones."""
    slowdowns = Slowdowns()
    for number in range(ENOUGH):
        slowdowns.ended(call(f"e{number}", "elephant"), float(number), 0.0, 0.9, 1, number + 0.9)
        slowdowns.ended(call(f"m{number}", "mouse"), float(number), 0.0, 0.1, 1, number + 1.0)
    (slow,) = slowdowns.slow("ver_1", "acme:shop.f", 2.0)

    assert (slow.tenant, slow.neighbour) == ("mouse", "elephant")
    assert (round(slow.held_part, 2), round(slow.neighbour_part, 2)) == (0.1, 0.9)
    assert round(slow.mean_ms) == 1_000
