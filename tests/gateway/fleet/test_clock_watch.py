"""Which clocks are told of: those that differ for several reports by more than two seconds."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.node_api import CLOCK_OFF_S
from pilotlight_gateway.fleet.clock_watch import FORGOTTEN_S, REPORTS, ClockKind, ClockNews, ClockWatch

NODE, GATEWAY = ClockKind.NODE, ClockKind.GATEWAY
AT = 1_790_000_000.0


def hear(watch: ClockWatch, *ahead_s: float, name: str = "n1", at: float = AT) -> list[ClockNews]:
    """A report each second, whose sender's clock is so far ahead, or that comes so late."""
    news = (watch.on_stamp(NODE, name, at + n + ahead, at + n) for n, ahead in enumerate(ahead_s))
    return [each for each in news if each is not None]


@pytest.mark.parametrize("ahead", [2.1, -2.1, 3_600.0, -86_400.0])
def test_a_clock_that_differs_is_told_of_once(ahead: float) -> None:
    """After as many reports as are compared, and again when it ceases to."""
    watch = ClockWatch()
    (news,) = hear(watch, *[ahead] * 20)
    assert (news.kind, news.name, news.is_off) == (NODE, "n1", True)
    assert news.ahead_s == pytest.approx(ahead, abs=0.01)
    assert watch.ahead_s(NODE, "n1") == pytest.approx(ahead, abs=0.01)
    assert len(watch.off(NODE, AT + 20)) == 1
    (again,) = hear(watch, *[0.0] * 20, at=AT + 20)
    assert not again.is_off
    assert watch.off(NODE, AT + 40) == []


@pytest.mark.parametrize("ahead", [0.0, 1.9, -1.9])
def test_one_within_two_seconds_is_not(ahead: float) -> None:
    """The bound is the issue's, for either direction."""
    assert CLOCK_OFF_S == 2.0
    watch = ClockWatch()
    assert hear(watch, *[ahead] * 20) == []
    assert watch.ahead_s(NODE, "n1") == pytest.approx(ahead, abs=0.01)


def test_a_delay_is_no_difference() -> None:
    """Of messages, one of the last few is in time; of the first few nothing is said."""
    watch = ClockWatch()
    assert hear(watch, *[-30.0] * (REPORTS - 1)) == []
    assert watch.ahead_s(NODE, "n1") is None
    assert hear(watch, *[0.0, -5.0, -9.0, -5.0, 0.0] * 4, name="n2") == []


def test_whoever_was_away_is_compared_anew() -> None:
    """A host that slept, or whose clock was set, and this process's own; and nothing is kept of what is gone."""
    watch = ClockWatch()
    hear(watch, *[5.0] * 10)
    assert len(watch.off(NODE, AT + 10 + FORGOTTEN_S / 2)) == 1
    assert watch.off(NODE, AT + 20 + FORGOTTEN_S) == []
    hear(watch, 0.0, at=AT + 100)
    assert watch.ahead_s(NODE, "n1") is None


def test_who_does_not_say_is_not_compared() -> None:
    """An agent of before; a gateway of a node's name is another."""
    watch = ClockWatch()
    assert watch.on_stamp(NODE, "old", 0.0, AT) is None
    assert watch.ahead_s(NODE, "old") is None
    hear(watch, *[5.0] * 10)
    assert watch.ahead_s(GATEWAY, "n1") is None
    assert watch.off(GATEWAY, AT) == []


def test_there_is_a_bound() -> None:
    """Of names that somebody makes up; who was heard of longest ago is forgotten."""
    watch = ClockWatch(most=3)
    for number in range(5):
        hear(watch, *[0.0] * REPORTS, name=f"n{number}")
    assert [watch.ahead_s(NODE, f"n{number}") is None for number in range(5)] == [True, True, False, False, False]
