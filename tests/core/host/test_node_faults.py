"""What nodes are not believed is counted, and told now and then."""

from __future__ import annotations

from structlog.testing import capture_logs

from pilotlight_core.host.node_faults import LOG_EVERY_S, NODES, NodeFaults


def test_a_node_that_goes_on_is_told_of_now_and_then() -> None:
    """Each message counts; the next line says how many came between."""
    faults = NodeFaults()
    with capture_logs() as lines:
        for n in range(1_000):
            faults.note("n1", "credit of c1", "not_bound", n / 1_000)
        faults.note("n1", "credit of c1", "not_bound", LOG_EVERY_S)
        faults.note("n2", "report", "other_node", 0.0)

    assert faults.counts == {"not_bound": 1_001, "other_node": 1}
    assert [(line["node"], line["more"]) for line in lines] == [("n1", 0), ("n1", 999), ("n2", 0)]


def test_what_is_remembered_of_nodes_is_bounded() -> None:
    """Beyond it, some lines come sooner."""
    faults = NodeFaults()
    with capture_logs():
        for n in range(3 * NODES):
            faults.note(f"n{n}", "report", "other_node", 0.0)

    assert len(faults._told_at) <= NODES
