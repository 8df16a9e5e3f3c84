"""Each way to say what the next minute needs, on what it is for."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.call_chances import LEVELS, MOST_KEPT, CallChances
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.hybrid_histogram import HybridHistogram
from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes
from pilotlight_autoscaler.policy.prediction.minute_methods import (
    DENSE_MINUTES,
    BusyForecast,
    BusyMinutes,
    FixedWarmth,
    LikelyWarmth,
    MinuteMethod,
    PlannedWarmth,
)


def levels(method: MinuteMethod, *needed: int) -> list[int]:
    """What it said of the minute after each."""
    said = []
    for each in needed:
        method.observe(each)
        said.append(method.level())
    return said


def likely(worth: float) -> LikelyWarmth:
    return LikelyWarmth(CallChances([IdleTimes() for _ in range(LEVELS)]), worth)


def hourly(hours: int) -> list[int]:
    return ([1] + [0] * 59) * hours


def test_a_fixed_warmth_lasts_as_long_as_it_says() -> None:
    """From the minute after a call on; nothing before the first one."""
    assert levels(FixedWarmth(2), 0, 1, 0, 0, 0, 3, 1, 0, 0) == [0, 1, 1, 0, 0, 3, 3, 1, 0]
    assert levels(FixedWarmth(0), 1, 0) == [0, 0]
    assert levels(FixedWarmth(2), 100) == [MOST_KEPT]


def test_a_busy_forecast_is_for_the_busy() -> None:
    """What is called now and then has none."""
    assert levels(BusyForecast(BusyMinutes(HoltForecast()), 0.95), *[2] * (DENSE_MINUTES + 100))[-1] == 2
    assert levels(BusyForecast(BusyMinutes(HoltForecast()), 0.95), *hourly(3))[-1] == 0


def test_what_is_called_every_hour_is_warm_about_the_hour() -> None:
    """And not in between, whichever of the two learns it."""
    for method in (likely(10.0), PlannedWarmth([HybridHistogram(240)])):
        levels(method, *hourly(12))
        ahead = levels(method, 1, *[0] * 59)
        assert ahead[-1] == 1
        assert ahead[30] == 0
        assert sum(ahead) < 25


def test_each_level_of_concurrency_has_its_own_habits() -> None:
    """One container every minute, a second one every twenty."""
    method = likely(5.0)
    levels(method, *([2] + [1] * 19) * 20)

    ahead = levels(method, 2, *[1] * 19)

    assert min(ahead) == 1
    assert ahead[-1] == 2
    assert ahead[10] == 1


def test_a_worthless_start_is_not_prevented() -> None:
    """However regular the calls are."""
    method = likely(0.001)
    levels(method, *hourly(12))

    assert sum(levels(method, *hourly(1))) == 0
