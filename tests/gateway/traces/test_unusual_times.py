"""What is slow of a function that names no service level."""

from __future__ import annotations

import pytest

from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.traces.unusual_times import unusual_times
from tests.builders.calls import prepared_call
from tests.gateway.tally.tallied_calls import WallClock, end, version


def test_it_is_what_one_call_of_a_hundred_exceeds() -> None:
    """Once there are some; what was long ago says nothing any more."""
    clock = WallClock()
    tallies, fn = Tallies(clock), version()
    call, unusual = prepared_call(version=fn), unusual_times(tallies, clock)
    assert unusual(call) is None
    for _ in range(100):
        end(tallies, fn, 10.0)
    tallies.fold()
    assert unusual(call) is None
    for number in range(200):
        end(tallies, fn, 500.0 if number % 50 == 0 else 10.0)
    tallies.fold()
    assert unusual(call) == pytest.approx(500.0, rel=0.02)
    assert unusual(prepared_call()) is None
