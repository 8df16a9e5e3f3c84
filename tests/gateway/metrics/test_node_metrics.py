"""What nodes are not believed is shown, also while there is none."""

from __future__ import annotations

from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_gateway.fleet.clock_watch import REPORTS, ClockKind, ClockWatch
from pilotlight_gateway.metrics.node_metrics import clock_gauges, node_fault_counts


def test_every_reason_is_shown() -> None:
    """An alert on a series that begins at its first fault would miss it."""
    (family,) = node_fault_counts({NodeFault.OTHER_NODE: 3})

    shown = {sample.labels["reason"]: sample.value for sample in family.samples}
    assert shown.keys() == set(NodeFault)
    assert (shown["other_node"], shown["not_bound"]) == (3, 0)


def test_clocks_are_counted_by_whose_they_are() -> None:
    """With the most by which one differs, ahead or behind."""
    watch = ClockWatch()
    for name, ahead in (("n1", 3.0), ("n2", -9.0), ("n3", 1.0)):
        for _ in range(REPORTS):
            watch.on_stamp(ClockKind.NODE, name, 1_000.0 + ahead, 1_000.0)

    off, most = (
        {sample.labels["of"]: sample.value for sample in family.samples} for family in clock_gauges(watch, 1_000.0)
    )
    assert off == {"node": 2, "gateway": 0}
    assert most == {"node": 9.0, "gateway": 0.0}
