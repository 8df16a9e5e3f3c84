"""The fleet of a simulation."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.simulator.fleet_options import groups_of
from pilotlight_autoscaler.simulator.function_table import FunctionTable
from pilotlight_autoscaler.simulator.simulated_fleet import SimulatedFleet
from pilotlight_placement.fleet.audit import check_integrity


@pytest.mark.parametrize(
    ("words", "vram", "places", "gpus"),
    [
        (["T4:3"], "0", 3, 1.0),
        (["A100-80GB:2:mig"], "9", 14, 1 / 7),
        (["T4:1:shared"], "4", 3, 0.25),
        (["CPU:5"], "0", 5, 0.0),
    ],
)
def test_containers_start_where_there_is_a_place(words: list[str], vram: str, places: int, gpus: float) -> None:
    """Until it is full, which is known then; what goes makes room again."""
    fleet = SimulatedFleet(groups_of(words))
    gpu = "CPU" if words[0].startswith("CPU") else "ANY"
    function = FunctionTable(given={"gpu": gpu, "vram_gib": vram}).function(("", "f"))
    fleet.expect([function.ask])

    started = fleet.start(function, 50, 0.0)

    assert len(started) >= places
    assert started[0].gpus == pytest.approx(gpus, rel=0.3)
    assert started[0].dollars_per_hour > 0
    assert fleet.is_full_for(function.ask)
    fleet.release(started[0])
    assert not fleet.is_full_for(function.ask)
    assert len(fleet.start(function, 2, 1.0)) == 1
    check_integrity(fleet.fleet)


def test_an_idle_gpu_is_cut_for_a_small_function() -> None:
    """As the planner decides: an H100 changes its mode without a reset."""
    fleet = SimulatedFleet(groups_of(["H100-80GB:1"]))
    function = FunctionTable(given={"vram_gib": "9"}).function(("", "f"))
    assert len(fleet.start(function, 9, 0.0)) == 7
    check_integrity(fleet.fleet)
