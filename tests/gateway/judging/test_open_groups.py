"""What is not whole yet is bounded, and nothing counts twice."""

from __future__ import annotations

from pilotlight_gateway.judging.open_groups import MOST_ENDED, MOST_OPEN, GroupMean, KnownAmount, OpenGroups
from tests.gateway.judging.compared import compared


def test_a_group_ends_with_its_last_call_and_once() -> None:
    groups = OpenGroups()

    def fresh() -> GroupMean:
        return GroupMean("canary", 0.5, 2, 0, 0.0, 0.0)

    assert groups.add("b", fresh(), 1.0, 2.0) == []
    (ended,) = groups.add("b", fresh(), 3.0, 4.0)
    assert (ended.seen, ended.latency, ended.cost) == (2, 4.0, 6.0)
    assert groups.add("b", fresh(), 1.0, 1.0) == []


def test_a_group_that_changes_sides_says_nothing() -> None:
    groups = OpenGroups()
    groups.add("u", GroupMean("twin", 0.5, 3, 0, 0.0, 0.0), 1.0, 1.0)
    assert groups.add("u", GroupMean("canary", 0.5, 3, 0, 0.0, 0.0), 1.0, 1.0) == []
    assert groups.add("u", GroupMean("canary", 0.5, 1, 0, 0.0, 0.0), 1.0, 1.0) == []


def test_everything_is_bounded() -> None:
    groups = OpenGroups()
    for number in range(MOST_OPEN + 10):
        groups.add(f"g{number}", GroupMean("twin", 0.5, 9, 0, 0.0, 0.0), 1.0, 1.0)
        groups.take_first(compared("twin", pair=f"p{number}"))
    for number in range(MOST_ENDED + 10):
        groups.is_first(f"n{number}")
    assert len(groups.groups) <= MOST_OPEN
    assert len(groups.firsts) <= MOST_OPEN
    assert len(groups.ended) <= MOST_ENDED


def test_a_pair_is_two_sides() -> None:
    groups = OpenGroups()
    one, other = compared("canary", pair="p"), compared("twin", pair="p")
    assert groups.take_first(one) is None
    assert groups.take_first(one) is None
    assert groups.take_first(other) == one


def test_an_amount_is_known_from_its_first_values() -> None:
    known = KnownAmount()
    for value in range(60):
        known.learn(float(value))
    assert known.is_settled
    assert known.middle == 24.5
    assert known.values == []
