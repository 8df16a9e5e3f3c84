"""Where the time of a call went."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import Stages
from pilotlight_gateway.calls.stopwatch import Stopwatch

ms = st.floats(0.0, 1e4)


@settings(deadline=None)  # the machine may be busy
@given(
    laps=st.lists(
        st.tuples(st.sampled_from(["granted", "refused", "lost", "ended"]), st.floats(-1.0, 10.0), ms, ms), max_size=12
    )
)
def test_the_stages_always_sum_to_the_time_that_passed(laps: list[tuple[str, float, float, float]]) -> None:
    """Whatever the agents report, over any number of attempts, and even if a clock is set back."""
    watch = Stopwatch(100.0)
    at = latest = 100.0
    for kind, step, first, second in laps:
        at += step
        latest = max(at, latest)
        if kind == "granted":
            watch.granted(at, first)
        elif kind == "refused":
            watch.refused(at)
        elif kind == "lost":
            watch.lost(at)
        else:
            watch.ended(at, Stages(batch_wait_ms=first, execute_ms=second))
    stages = watch.stages(7.0)
    assert sum(stages.values()) == pytest.approx(7.0 + (latest - 100.0) * 1000.0, abs=1e-3)
    assert min(stages.values()) >= 0.0
