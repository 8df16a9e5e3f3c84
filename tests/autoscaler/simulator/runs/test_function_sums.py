"""Sums of a function's calls and containers."""

from __future__ import annotations

from pilotlight_autoscaler.simulator.runs.function_sums import FunctionSums
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer


def test_levels_and_container_time_add_up() -> None:
    """Half a GPU for an hour at $4 is $2."""
    sums, more = FunctionSums(), FunctionSums()
    sums.observe_wait(0.4, 2)
    more.observe_wait(6.0)
    container = SimulatedContainer("c", 1, 0.0, 600.0)
    container.gpus, container.dollars_per_hour = 0.5, 2.0
    container.take(600.0)
    container.free(1_200.0)
    more.add_container(container, 3_600.0)

    sums.add(more)

    assert (sums.met, sums.waits.calls) == ([2, 2, 3], 3)
    assert (sums.loading_gpu_s, sums.busy_gpu_s, sums.idle_gpu_s, sums.dollars) == (300.0, 300.0, 1_200.0, 2.0)
