"""By counts a function behaves as it does call by call."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_autoscaler.simulator.results.simulation_result import SimulationResult
from pilotlight_autoscaler.simulator.runs import function_run
from pilotlight_autoscaler.simulator.traffic.function_traffic import CountedCalls
from tests.autoscaler.simulator.simulated import simulation


def simulated(counts: dict[int, int], **settings: float) -> SimulationResult:
    traffic = CountedCalls(counts, settings.pop("mean_s", 1.0), "seed")
    given: dict[str, Any] = {"max_containers": 60, **settings}
    return simulation({"f": traffic}, minutes=len(counts) + 2, **given).run()


@pytest.mark.parametrize("slots", [1, 4])
def test_counts_agree_with_calls(monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    """Containers, cold calls and waits, within a tenth; of several slots each, busy ones are packed a fifth denser."""
    counts = dict.fromkeys(range(20), 900)
    by_counts = simulated(counts, slots=slots)
    assert by_counts.runs[0].by_counts is False  # the end is quiet again
    monkeypatch.setattr(function_run, "FLUID_ABOVE", 1e9)
    by_calls = simulated(counts, slots=slots)

    fluid, exact = by_counts.figures(), by_calls.figures()
    assert fluid["calls"] == exact["calls"] == 18_000
    assert fluid["cold_start_rate"] == pytest.approx(exact["cold_start_rate"], rel=0.1)
    assert fluid["busy_gpu_s"] == pytest.approx(exact["busy_gpu_s"], rel=0.1 if slots == 1 else 0.2)
    ready = (sum(each.timeline.ready[5:20]) for each in (by_counts, by_calls))
    assert next(ready) == pytest.approx(next(ready), rel=0.15)
    for level in ("met_0.5s", "met_5s", "met_30s"):
        assert fluid[level] == pytest.approx(exact[level], abs=0.01)


def test_no_call_is_lost() -> None:
    """What came was granted, refused or late, or still waits."""
    result = simulated({0: 6_000, 1: 60, 2: 6_000}, mean_s=4.0, timeout_s=15)
    run, sums = result.runs[0], result.totals()
    assert sums.calls == 12_060
    assert sums.waits.calls + sums.refused + sums.late + run.queued == sums.calls
    assert sums.refused > 0
    assert sums.late > 0
