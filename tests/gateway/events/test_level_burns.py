"""When a level of a function is broken."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.seeing.tallies import FunctionTally
from pilotlight_core.model.spec import SLO
from pilotlight_gateway.events.level_burns import (
    FIELDS,
    LEAST_BAD,
    LEAST_CALLS,
    NS_PER_MINUTE,
    OBJECTIVE,
    PAIRS,
    broken_by,
    levels_of,
)
from tools.monitoring import service_levels


def tally(good: int, bad: int, minutes: float = 60.0) -> FunctionTally:
    return FunctionTally(until_ns=int(minutes * NS_PER_MINUTE), good={"unary": good}, bad={"unary": bad})


@pytest.mark.parametrize(
    ("short", "long", "by"),
    [
        ({5: tally(10, 90)}, {60: tally(20, 80)}, 60),
        ({5: tally(90, 10)}, {60: tally(20, 80)}, None),  # it is over
        ({5: tally(10, 90)}, {60: tally(900, 100)}, None),  # it has just begun
        ({5: tally(0, 3)}, {60: tally(0, 3)}, None),  # three calls at night
        ({5: tally(0, 10)}, {60: tally(0, 10)}, 60),
        ({5: tally(60, 40), 30: tally(60, 40)}, {360: tally(60, 40)}, 360),
        ({120: tally(80, 20)}, {1_440: tally(80, 20, 700)}, None),  # too young to tell more than the shorter ones
        ({120: tally(80, 20)}, {1_440: tally(80, 20, 730)}, 1_440),
        ({120: tally(90, 10)}, {1_440: tally(90, 10, 730)}, None),
        ({360: tally(93, 7)}, {4_320: tally(93, 7, 1_400)}, None),  # and so is this one
        ({360: tally(93, 7)}, {4_320: tally(93, 7, 1_450)}, 4_320),
        ({360: tally(96, 4)}, {4_320: tally(93, 7, 1_450)}, None),
        ({5: FunctionTally()}, {60: FunctionTally()}, None),
    ],
)
def test_a_level_is_broken_over_two_windows(
    short: dict[int, FunctionTally], long: dict[int, FunctionTally], by: int | None
) -> None:
    """The long one says that it matters, the short one that it goes on."""
    pair = broken_by("unary", short, long)
    assert (pair.long if pair else None) == by
    assert broken_by("gap", short, long) is None


def test_windows_and_guards_are_those_of_the_alerts() -> None:
    minutes = {"5m": 5, "30m": 30, "1h": 60, "2h": 120, "6h": 360, "12h": 720, "1d": 1_440, "3d": 4_320}
    young = service_levels.YOUNG
    alerts = [
        (minutes[burn.long], minutes[burn.short], burn.rate, minutes[young[burn.long]] if burn.long in young else 0)
        for burn in service_levels.BURNS
    ]
    assert [tuple(pair) for pair in PAIRS] == alerts
    assert (LEAST_BAD, LEAST_CALLS) == (service_levels.LEAST_BAD, service_levels.LEAST_CALLS)
    assert {level.name: level.objective for level in service_levels.LEVELS if level.name in FIELDS} == dict.fromkeys(
        FIELDS, OBJECTIVE
    )


def test_levels_are_those_that_a_function_names() -> None:
    assert levels_of(SLO(p95_ms=300, itl_ms=50)) == {"unary": 300.0, "gap": 50.0}
    assert levels_of(SLO()) == {}
