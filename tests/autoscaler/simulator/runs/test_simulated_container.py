"""A container of a simulation passes for the report of one."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_core.model.messages.node_messages import ContainerReport


def test_it_has_everything_that_a_report_has() -> None:
    """A field that reports gain later must be had here too."""
    container = SimulatedContainer("c", 1, 0.0, 20.0)
    for field in msgspec.structs.fields(ContainerReport):
        assert hasattr(container, field.name), field.name


def test_its_time_is_loading_busy_or_idle() -> None:
    """It adds up; two calls at once are one busy time."""
    container = SimulatedContainer("c", 1, 10.0, 20.0)
    container.take(40.0)
    container.take(41.0)
    container.free(42.0)
    container.free(45.0)
    container.clock.at = 50.0

    spent = container.spent(50.0)

    assert (spent.loading_s, spent.busy_s, spent.idle_s, spent.total_s) == (20.0, 5.0, 15.0, 40.0)
    assert (container.age_s, container.idle_s, container.calls) == (40.0, 5.0, 2)
    container.take(50.0)
    assert container.idle_s == 0.0
    assert container.spent(53.0).busy_s == pytest.approx(8.0)
