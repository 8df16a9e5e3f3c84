"""The last changes of each function are kept, and no more."""

from __future__ import annotations

import math

import pytest

from pilotlight_autoscaler.observations import wish_log
from pilotlight_autoscaler.observations.wish_log import MOST_CHANGES, WishChange, WishLog
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth, Wish


def change(at: float, count: int, there: int = 0, rule: ScalingRule = ScalingRule.CALLS) -> WishChange:
    wish = Wish(count=count, tier=Warmth.READY, rule=rule, because=f"{count} calls wait", look_again_at=math.inf)
    return WishChange(at=at, wish=wish, there=there, more_needs="a call")


def test_what_says_the_same_is_kept_once() -> None:
    """A pass wishes four times a second."""
    log = WishLog()
    for at, count, there in ((1.0, 2, 0), (1.25, 2, 0), (1.5, 2, 1), (1.75, 3, 1), (2.0, 3, 1)):
        log.add("a", change(at, count, there))

    assert [each.at for each in log.of_function("a")] == [1.0, 1.5, 1.75]
    assert [each.at for each in log.of_function("a", 1.6)] == [1.0, 1.5]


def test_a_function_that_has_nothing_and_wants_nothing_is_not_kept() -> None:
    """Until it does; then also that it wants nothing again."""
    log = WishLog()
    log.add("a", change(1.0, 0))
    assert log.of_function("a") == []
    log.add("a", change(2.0, 1))
    log.add("a", change(3.0, 0))
    assert [each.wish.count for each in log.of_function("a")] == [1, 0]


def test_changes_and_functions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go."""
    monkeypatch.setattr(wish_log, "MOST_FUNCTIONS", 2)
    log = WishLog()
    for number in range(1, MOST_CHANGES + 10):
        log.add("a", change(number, number))
    assert log.of_function("a")[0].at == 10.0

    for name in ("b", "a", "c"):
        log.add(name, change(1e3, 7))
    assert log.of_function("b") == []
    assert len(log.of_function("a")) == MOST_CHANGES


def test_who_listens_hears_each_change_once() -> None:
    """What says the same is no change."""
    heard: list[tuple[str, int]] = []
    log = WishLog(on_change=lambda function, change: heard.append((function, change.wish.count)))
    for at, count in ((1.0, 2), (1.25, 2), (1.5, 3)):
        log.add("a", change(at, count))

    assert heard == [("a", 2), ("a", 3)]
