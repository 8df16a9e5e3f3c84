"""The figures of a simulation."""

from __future__ import annotations

from pilotlight_autoscaler.simulator.results.simulation_result import OF_PARKED, ROWS, as_table
from tests.autoscaler.simulator.simulated import recorded, simulation


def test_every_figure_is_in_the_table_and_in_the_document() -> None:
    """Two simulations stand beside each other; the timeline has a value for each minute."""
    result = simulation({"f": recorded((0.0, 2.0), (100.0, 2.0))}, minutes=5, forecast=0).run()

    figures, told = result.figures(), result.as_json()

    assert set(ROWS) <= set(figures)
    assert told["figures"] == figures
    assert (figures["calls"], figures["cold_start_rate"], figures["starts"]) == (2, 1.0, 2)
    assert figures["loading_gpu_s"] == 40.0
    assert figures["busy_gpu_s"] == 4.0
    assert told["timeline"]["ready"] == [1, 1, 1, 0, 0]
    assert told["timeline"]["parked"] == [0] * 5
    assert sum(told["timeline"]["actions"]) == 4
    table = as_table({"one": figures, "two": figures})
    assert len(table) == len(ROWS) - len(OF_PARKED) + 1
    assert len(as_table({"one": figures | {"unparks": 1}})) == len(ROWS)
    assert table[0].split() == ["one", "two"]
    assert table[2].split()[-2:] == ["100.000%", "100.000%"]
