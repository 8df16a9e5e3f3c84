"""What the benchmark of hosts makes of processor times."""

from __future__ import annotations

import pytest

from benchmarks.hosts import LARGE, HostTurn, mb_per_s, ratios, runs_by_way, us_per_call, used_between


def turn(us_per_call: float, calls: int = 1000) -> HostTurn:
    return HostTurn(cpu={"gateway": us_per_call * calls / 1e6}, calls=calls)


def test_what_was_used_is_told_by_part() -> None:
    """A process that came meanwhile counts with all that it used; one that went does not count."""
    before = {("gateway", 1): 2.0, ("guests", 2): 1.0, ("guests", 3): 5.0}
    after = {("gateway", 1): 2.5, ("guests", 2): 1.25, ("guests", 4): 0.25}
    assert used_between(before, after) == {"gateway": 0.5, "guests": 0.5}


def test_a_turn_is_held_against_those_around_it() -> None:
    """So that a machine that becomes slower all the time changes nothing; a turn without another behind it is left."""
    plain = [turn(100.0), turn(200.0), turn(300.0)]
    assert ratios(plain, [turn(165.0), turn(275.0), turn(1.0)]) == [pytest.approx(1.1)] * 2


def test_a_part_costs_a_call_what_it_used_in_all_turns() -> None:
    """Turns with more calls count for more; the dearest part comes first."""
    one = HostTurn(cpu={"nats": 0.01, "gateway": 0.1}, calls=1000)
    other = HostTurn(cpu={"nats": 0.05, "gateway": 0.5}, calls=2000)
    found = us_per_call([one, other])
    assert found == {"gateway": pytest.approx(200.0), "nats": pytest.approx(20.0)}
    assert list(found) == ["gateway", "nats"]


def test_the_ways_of_calls_are_those_of_all_gateways() -> None:
    """Other series are passed over."""
    text = """\
pilotlight_runs_sent_total{way="hosts"} 5.0
pilotlight_runs_sent_total{way="bus"} 1.0
pilotlight_links{to="agent",way="hosts"} 1.0
pilotlight_runs_sent_total{way="hosts"} 2.0
"""
    assert runs_by_way(text) == {"hosts": 7, "bus": 1}


def test_bodies_count_both_ways() -> None:
    """Three calls in two seconds are three inputs and three outputs."""
    assert mb_per_s(HostTurn(cpu={}, calls=3, seconds=2.0)) == pytest.approx(3 * LARGE / 1e6)
