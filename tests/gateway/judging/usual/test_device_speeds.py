"""How far devices are apart."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.usual.device_speeds import LEAST_CALLS, MOST_CONTAINERS, DeviceSpeeds


def speeds_of(means: list[float], calls: int = LEAST_CALLS) -> DeviceSpeeds:
    """Of containers whose calls never vary."""
    speeds = DeviceSpeeds()
    for number, mean in enumerate(means):
        for _ in range(calls):
            speeds.note(f"c{number}", mean)
    return speeds


def test_the_spread_is_that_of_the_containers_means() -> None:
    """A standard deviation of logarithms."""
    assert speeds_of([0.1, 0.2, 0.3, 0.4]).spread() == pytest.approx(0.1291, abs=1e-4)
    assert speeds_of([0.0] * 5).spread() == 0.0


def test_what_strays_by_chance_is_taken_off() -> None:
    """Containers that differ by less than their calls do are alike."""
    speeds = DeviceSpeeds()
    for number in range(4):
        for call in range(LEAST_CALLS):
            speeds.note(f"c{number}", (0.5 if call % 2 else -0.5) + 0.01 * number)

    assert speeds.spread() == 0.0


def test_few_containers_and_few_calls_say_nothing() -> None:
    """And what is kept is bounded."""
    assert speeds_of([0.1, 0.2, 0.3]).spread() is None
    assert speeds_of([0.1, 0.2, 0.3, 0.4], LEAST_CALLS - 1).spread() is None
    assert len(speeds_of([0.0] * 50, 1).sums) == MOST_CONTAINERS
