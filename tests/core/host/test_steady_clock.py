"""A clock that is set is believed once that has lasted."""

from __future__ import annotations

import pytest

from pilotlight_core.host.steady_clock import LASTS_S, SteadyClock

HOUR = 3_600.0


class Machine:
    """Its two clocks."""

    def __init__(self) -> None:
        self.at = 50.0
        self.offset = 1_000_000.0

    def wall(self) -> float:
        return self.at + self.offset

    def clock(self) -> float:
        return self.at

    def pass_by(self, seconds: float) -> None:
        self.at += seconds


@pytest.mark.parametrize("step", [3 * HOUR, -3 * HOUR, 60.0, -60.0])
def test_a_step_that_does_not_last_is_not_seen(step: float) -> None:
    """Time goes on meanwhile, and after the clock is right again."""
    machine = Machine()
    steady = SteadyClock(machine.wall, machine.clock)
    right = machine.offset
    for offset in (step, 0.0, -step, 2 * step, 0.0):
        machine.offset = right + offset
        for _ in range(4):
            assert steady() == pytest.approx(machine.at + right)
            machine.pass_by(LASTS_S / 5)


@pytest.mark.parametrize("step", [3 * HOUR, -3 * HOUR])
def test_a_step_that_lasts_is_followed(step: float) -> None:
    """From then on it is the wall clock again."""
    machine = Machine()
    steady = SteadyClock(machine.wall, machine.clock)
    before = steady()
    machine.offset += step
    assert steady() == before
    machine.pass_by(LASTS_S - 1.0)
    assert steady() == before + LASTS_S - 1.0
    machine.pass_by(1.0)
    assert steady() == machine.wall()
    machine.pass_by(HOUR)
    assert steady() == machine.wall()


def test_a_clock_that_is_steered_is_followed_at_once() -> None:
    """Also when that comes to more than a step in the end."""
    machine = Machine()
    steady = SteadyClock(machine.wall, machine.clock)
    for _ in range(10):
        machine.pass_by(1.0)
        machine.offset += 0.5
        assert steady() == machine.wall()


def test_what_ends_may_follow_a_step_back_at_once_and_none_ahead() -> None:
    """So what is renewed by the wall clock has not ended, whichever way that was set."""
    machine = Machine()
    cautious = SteadyClock(machine.wall, machine.clock, back_s=0.0)
    for step in (3 * HOUR, -3 * HOUR, -2 * HOUR, 2 * HOUR, 24 * HOUR):
        ends_at = machine.wall() + 60.0
        machine.offset += step
        assert cautious() < ends_at
        machine.pass_by(20.0)
        assert cautious() < machine.wall() + 60.0
