"""Who runs is known by name, so that nothing is given back twice."""

from __future__ import annotations

import pytest

from pilotlight_gateway.limits.permits import UNKNOWN_S, Permits


def test_a_permit_comes_back_once() -> None:
    """A second end of the same call, or of one that is not known, frees nothing."""
    permits = Permits()
    permits.enter(("g1", 1), 0.0)
    permits.enter(("g2", 1), 0.0)

    permits.leave(("g1", 1), 1.0)
    permits.leave(("g1", 1), 1.0)
    permits.drop(("g3", 1))

    assert permits.keys() == {("g2", 1)}


def test_the_wait_is_until_the_oldest_ends() -> None:
    """By how long calls ran so far; what is overdue may end any moment, and one of many sooner than one alone."""
    permits = Permits()
    permits.enter(("g1", 1), 0.0)
    assert permits.wait(0.0) == UNKNOWN_S
    permits.leave(("g1", 1), 4.0)

    permits.enter(("g1", 2), 10.0)
    permits.enter(("g1", 3), 11.0)
    assert permits.wait(11.0) == 3.0
    assert permits.wait(100.0) == pytest.approx(4.0 / 3)


def test_the_mean_follows_slowly_and_the_dropped_do_not_count() -> None:
    """One long call does not move what the others are told; a lost one says nothing."""
    permits = Permits()
    for number, seconds in enumerate((2.0, 2.0, 12.0)):
        permits.enter(("g1", number), 0.0)
        permits.leave(("g1", number), seconds)
    permits.enter(("g1", 9), 0.0)
    permits.drop(("g1", 9))
    permits.enter(("g1", 10), 0.0)

    assert permits.wait(0.0) == pytest.approx(3.0)
