"""When a promise is kept."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.suspects import Promise, Suspect


def test_a_promise_is_kept_within_its_tolerance_or_by_less_where_less_is_better() -> None:
    about = Promise(metric="rate", value=100.0, tolerance=0.05)
    most = Promise(metric="p95_ms", value=100.0, tolerance=0.5, at_most=True)

    assert [about.is_kept(now) for now in (94.0, 96.0, 104.0, 106.0)] == [False, True, True, True]
    assert [most.is_kept(now) for now in (3.0, 149.0, 160.0)] == [True, True, False]


def test_a_promise_of_nothing_is_broken_by_anything_but_chance() -> None:
    none = Promise(metric="limited_part", value=0.0, tolerance=0.0, at_most=True)

    assert [none.is_kept(now) for now in (0.0, 0.005, 0.2)] == [True, True, False]


def test_a_cause_without_a_cure_goes_last() -> None:
    assert Suspect(name="x", gains={}, says="", evidence=(), cures=()).first_cost.name == "HARDWARE"
